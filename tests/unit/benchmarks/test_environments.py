"""The environment of an earlier commit: its own tree, and today's pins."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from benchmarks.environments import LOCK, PYDANTIC, EnvironmentFailedError, locked, unpack


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.com")
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_a_commit_is_unpacked_as_it_was(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    git(repository, "init", "--quiet")
    (repository / "code.py").write_text("old\n", encoding="utf-8")
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "--message=old")
    old = git(repository, "rev-parse", "--short", "HEAD")
    (repository / "code.py").write_text("new\n", encoding="utf-8")
    git(repository, "commit", "--quiet", "--all", "--message=new")
    unpack(repository, old, tmp_path / "tree")
    assert (tmp_path / "tree" / "code.py").read_text(encoding="utf-8") == "old\n"
    assert (repository / "code.py").read_text(encoding="utf-8") == "new\n"


def test_a_clone_without_the_commit_says_so(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    with pytest.raises(EnvironmentFailedError, match="0000000 is not in this repository"):
        unpack(tmp_path, "0000000", tmp_path / "tree")


def test_pins_are_read_off_a_lock_without_hashes() -> None:
    lock = (
        "# made by hand\n"
        "one==1.0 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n    # via two\n"
        "two-b.c==2.0rc1 ; python_full_version < '3.12' \\\n    --hash=sha256:cc\n"
    )
    assert locked(lock) == ["one==1.0", "two-b.c==2.0rc1 ; python_full_version < '3.12'"]


def test_the_peers_pydantic_is_the_one_toolgate_is_locked_to() -> None:
    assert PYDANTIC in locked(LOCK.read_text(encoding="utf-8"))
