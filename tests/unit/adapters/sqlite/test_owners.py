"""An owner is alive for as long as somebody holds its lock, and not a moment longer."""

from __future__ import annotations

import fcntl
import os
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.unit.adapters.sql.people import as_nobody

from toolgate.adapters.sqlite import owners
from toolgate.adapters.sqlite.owners import OwnerLock
from toolgate.errors import StoreError

HOLD = """
import sys
from pathlib import Path
from toolgate.adapters.sqlite.owners import OwnerLock
lock = OwnerLock(Path(sys.argv[1]), sys.argv[2])
print("held", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "toolgate.db.owners"


def test_an_owner_is_alive_until_it_is_closed(folder: Path) -> None:
    me = OwnerLock(folder, "me")
    assert me.is_alive("me")
    me.close()
    me.close()
    assert not me.is_alive("me")
    assert os.listdir(folder) == []


def test_two_owners_of_one_process_see_each_other(folder: Path) -> None:
    one, two = OwnerLock(folder, "one"), OwnerLock(folder, "two")
    assert one.is_alive("two")
    two.close()
    assert not one.is_alive("two")
    assert two.is_alive("one")
    one.close()


def test_nobody_has_heard_of_a_stranger(folder: Path) -> None:
    me = OwnerLock(folder, "me")
    assert not me.is_alive("stranger")
    me.close()


def test_the_locks_are_for_their_owner_only(folder: Path) -> None:
    me = OwnerLock(folder, "me")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "me.lock").stat().st_mode) == 0o600
    me.close()


def test_another_process_is_alive_until_it_dies(folder: Path) -> None:
    me = OwnerLock(folder, "me")
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder), "other"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert me.is_alive("other")
        assert (folder / "other.lock").exists()
        other.kill()
    assert not me.is_alive("other")
    assert not (folder / "other.lock").exists(), "what the dead leave behind is tidied up"
    me.close()


def test_a_folder_that_cannot_be_used_is_an_error(folder: Path) -> None:
    folder.write_text("a file")
    with pytest.raises(StoreError, match="lock folder"):
        OwnerLock(folder, "me")


def test_a_lock_that_may_not_be_looked_at_counts_as_alive(tmp_path: Path) -> None:
    told = as_nobody(
        tmp_path,
        """
        import os
        from toolgate.adapters.sqlite.owners import OwnerLock
        me = OwnerLock(folder / "owners", "me")
        (folder / "owners" / "other.lock").touch()
        os.chmod(folder / "owners" / "other.lock", 0)
        print(me.is_alive("other"))
        """,
    )
    assert told == "True\n"


def test_what_the_dead_left_is_tidied_up_and_the_living_are_spared(folder: Path) -> None:
    other = OwnerLock(folder, "other")
    (folder / "dead.lock").touch()
    (folder / "schema.lock").touch()
    (folder / "notes").touch()
    me = OwnerLock(folder, "me")
    me.tidy()
    assert sorted(os.listdir(folder)) == ["me.lock", "notes", "other.lock", "schema.lock"]
    assert me.is_alive("other")
    me.close()
    other.close()


def test_a_lock_that_is_tidied_away_while_it_is_taken_is_taken_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tidied: list[int] = []

    def flock(descriptor: int, how: int) -> None:
        if not tidied:
            tidied.append(descriptor)
            (folder / "me.lock").unlink()
        fcntl.flock(descriptor, how)

    monkeypatch.setattr(owners, "fcntl", SimpleNamespace(flock=flock, LOCK_EX=fcntl.LOCK_EX, LOCK_NB=fcntl.LOCK_NB))
    me = OwnerLock(folder, "me")
    monkeypatch.undo()
    other = OwnerLock(folder, "other")
    assert tidied
    assert other.is_alive("me")
    me.close()
    other.close()


def test_an_owner_that_is_there_already_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owners, "TRIES", 2)
    me = OwnerLock(folder, "me")
    with pytest.raises(StoreError, match="somebody else holds it"):
        OwnerLock(folder, "me")
    assert me.is_alive("me")
    me.close()


def test_a_lock_that_the_system_refuses_leaves_nothing_open(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(37, "No locks available")

    before = os.listdir("/proc/self/fd")
    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(StoreError, match="No locks available"):
        OwnerLock(folder, "me")
    assert os.listdir("/proc/self/fd") == before
