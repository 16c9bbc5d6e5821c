"""A policy file is changed whole, as it was, and only over what the change was made from."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toolgate.errors import ConflictError, UsageError
from toolgate.policy.loader import load_policy
from toolgate.policy.writing import is_writable, write_texts

OLD, NEW = "version: 1\n", "version: 1\ndefault: ask\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "toolgate.yaml"
    file.write_text(OLD)
    file.chmod(0o640)
    return file


def test_a_file_keeps_its_rights_and_owner(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy, owners = load_policy(file), []
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    monkeypatch.setattr(os, "chown", lambda _new, uid, gid: owners.append((uid, gid)))
    write_texts(policy, {str(file): NEW})
    status = file.stat()
    assert (file.read_text(), status.st_mode & 0o777) == (NEW, 0o640)
    assert owners == [(status.st_uid, status.st_gid)]
    assert [one.name for one in file.parent.iterdir()] == ["toolgate.yaml"]
    assert is_writable([str(file)])


def test_a_link_stays_a_link(file: Path, tmp_path: Path) -> None:
    (tmp_path / "link.yaml").symlink_to(file)
    policy = load_policy(tmp_path / "link.yaml")
    write_texts(policy, {document.name: NEW for document in policy.documents})
    assert ((tmp_path / "link.yaml").is_symlink(), file.read_text()) == (True, NEW)


def test_what_changed_or_is_gone_is_left_alone(file: Path) -> None:
    policy = load_policy(file)
    file.write_text("version: 1 # mine\n")
    with pytest.raises(ConflictError, match="changed meanwhile"):
        write_texts(policy, {str(file): NEW})
    file.unlink()
    with pytest.raises(UsageError, match="Apply the diff yourself"):
        write_texts(policy, {str(file): NEW})
    assert not is_writable([str(file)])
