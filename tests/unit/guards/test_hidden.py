"""What commands must not see is found by every name it has."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from toolgate.guards.edges import Edges
from toolgate.guards.files import Workspace
from toolgate.guards.hidden import hidden_in, kept_in


def test_other_names_of_a_hidden_file_are_hidden_too(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / ".env").write_text("TOKEN=x")
    (tmp_path / "a.txt").write_text("x")
    os.link(tmp_path / ".env", tmp_path / "src" / "innocent.txt")
    os.link(tmp_path / "a.txt", tmp_path / "b.txt")
    (tmp_path / ".ssh").mkdir()
    os.link(tmp_path / ".env", tmp_path / ".ssh" / "copy")  # hidden with its directory
    with Workspace(str(tmp_path)) as workspace:
        found = hidden_in(Edges(workspace=workspace))
    assert sorted(found) == [str(tmp_path / name) for name in (".env", ".ssh", "src/innocent.txt")]


def test_what_steers_the_gate_is_kept_whatever_it_is_called(tmp_path: Path) -> None:
    for name in ("rules.yaml", "gate.sqlite", "gate.sqlite-wal", ".env"):
        (tmp_path / name).write_text("x")
    (tmp_path / "link.yaml").symlink_to("rules.yaml")
    os.link(tmp_path / "rules.yaml", tmp_path / "same.txt")
    private = tuple(str(tmp_path / name) for name in ("gate.sqlite", "gate.sqlite-wal", "gate.sqlite-shm", ".env"))
    policy = (str(tmp_path / "link.yaml"), "/etc/hostname")
    with Workspace(str(tmp_path)) as workspace:
        kept = kept_in(Edges(workspace=workspace, policy_files=policy, private_files=private))
    assert kept.hidden == tuple(str(tmp_path / name) for name in (".env", "gate.sqlite", "gate.sqlite-wal"))
    assert kept.locked == (str(tmp_path / "same.txt"), str(tmp_path / "rules.yaml"))


@pytest.mark.parametrize("mode", [0o000, 0o111, 0o444])
def test_a_folder_that_cannot_be_listed_is_hidden_as_a_whole(mode: int) -> None:
    was = os.geteuid()
    with tempfile.TemporaryDirectory(prefix="toolgate-test-") as top, Workspace(top) as workspace:
        os.chmod(top, 0o755)
        shut = Path(top, "conf", "shut")
        shut.mkdir(parents=True)
        (shut / ".env").write_text("x")
        shut.chmod(mode)
        os.seteuid(65534 if was == 0 else was)  # root can list everything
        try:
            found = hidden_in(Edges(workspace=workspace))
        finally:
            os.seteuid(was)
            shut.chmod(0o755)
    assert found == (str(shut),)
