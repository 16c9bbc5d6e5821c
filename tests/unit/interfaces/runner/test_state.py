"""A runner's folder: private, for one runner at a time, and for one piece of work."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toolgate.errors import UsageError
from toolgate.interfaces.runner.state import StateFolder, default_folder


def opened(path: Path, **changes: str) -> StateFolder:
    work = {"server": "http://localhost:1", "project": "demo", **changes}
    return StateFolder(path, workspace=Path("/ws"), **work)


def test_two_runners_do_not_share_a_journal(tmp_path: Path) -> None:
    with opened(tmp_path / "s") as state:
        assert state.path.stat().st_mode & 0o077 == 0
        with pytest.raises(UsageError, match=rf"Another runner \(process {os.getpid()}\).*--state"):
            opened(tmp_path / "s")
    opened(tmp_path / "s").close()


@pytest.mark.parametrize("change", [{"server": "http://localhost:2"}, {"project": "other"}])
def test_a_folder_belongs_to_one_piece_of_work(tmp_path: Path, change: dict[str, str]) -> None:
    opened(tmp_path / "s").close()
    with pytest.raises(UsageError, match=r"belongs to other work.*http://localhost:1"):
        opened(tmp_path / "s", **change)
    opened(tmp_path / "s").close()  # the refused one let go of the lock


def test_a_folder_whose_binding_is_broken_is_not_guessed_about(tmp_path: Path) -> None:
    opened(tmp_path / "s").close()
    (tmp_path / "s" / "runner.json").write_text("{")
    with pytest.raises(UsageError, match="belongs to other work"):
        opened(tmp_path / "s")


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("a file")
    with pytest.raises(UsageError, match="cannot be used"):
        opened(tmp_path / "s")


def test_every_piece_of_work_has_its_own_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    one, two = (default_folder("http://a", project, Path("/ws")) for project in ("x", "y"))
    assert one != two
    assert one.is_relative_to(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert default_folder("http://a", "x", Path("/ws")).is_relative_to(Path.home() / ".local" / "state")


def test_a_disk_that_is_full_leaves_no_lock_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    before = os.listdir("/proc/self/fd")
    with monkeypatch.context() as full:
        full.setattr(os, "pwrite", refuse)
        with pytest.raises(UsageError, match="No space left"):
            opened(tmp_path / "s")
    assert os.listdir("/proc/self/fd") == before
    opened(tmp_path / "s").close()
