"""Moving a database: with its key and its log, never while it is in use, and whole whenever it dies."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

import toolgate
from toolgate.adapters.sqlite import move as moving
from toolgate.adapters.sqlite.move import move
from toolgate.errors import StoreError


@toolgate.tool
async def note(text: str) -> str:
    return text


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "place").mkdir()
    return tmp_path / "place" / "toolgate.db"


def call(path: Path) -> str:
    with toolgate.open(path, tools=[note]) as gate:
        return gate.sync.call("note", {"text": "a"}, call_id="one").status.value


def names(path: Path) -> list[str]:
    return sorted(one.name for one in path.parent.iterdir() if one.name.startswith(path.name))


def test_everything_moves_and_nothing_is_left(database: Path, target: Path) -> None:
    call(database)
    key = Path(f"{database}.key").read_bytes()
    with closing(sqlite3.connect(database)) as left:  # what a killed process leaves in the log
        left.execute("PRAGMA wal_autocheckpoint=0")
        left.execute("CREATE TABLE told (word TEXT)")
        left.commit()
    move(database, target)
    assert names(database) == []
    assert names(target) == ["toolgate.db", "toolgate.db.key", "toolgate.db.owners"]
    assert {one.stat().st_mode & 0o777 for one in (target, Path(f"{target}.key"))} == {0o600}
    assert Path(f"{target}.key").read_bytes() == key
    with closing(sqlite3.connect(target)) as moved:
        assert moved.execute("SELECT count(*) FROM told").fetchone() == (0,)
    assert call(target) == "COMPLETED"  # joined: the arguments can be unsealed


def test_a_database_in_use_stays(database: Path, target: Path) -> None:
    with toolgate.open(database), pytest.raises(StoreError, match="is in use; nothing was moved"):
        move(database, target)
    with closing(sqlite3.connect(database)) as other:  # no gate: what `toolgate token` has open
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="is in use"):
            move(database, target)
    assert not target.exists()
    assert call(database) == "COMPLETED"


STEPS = ["_copy_key", "make_private", "_sync", "_write", "sync_folder", "_remove"]


@pytest.mark.parametrize("after", range(3))
@pytest.mark.parametrize("step", STEPS)
def test_whenever_it_dies_the_next_run_finishes(
    database: Path, target: Path, monkeypatch: pytest.MonkeyPatch, step: str, after: int
) -> None:
    call(database)
    real, calls = getattr(moving, step), []

    def dies(*given: object) -> object:
        calls.append(given)
        if len(calls) > after:
            raise KeyboardInterrupt
        return real(*given)

    with monkeypatch.context() as patch:
        patch.setattr(moving, step, dies)
        with suppress(KeyboardInterrupt):
            move(database, target)
    if len(calls) > after:
        move(database, target)
    assert names(database) == []
    assert names(target) == ["toolgate.db", "toolgate.db.key", "toolgate.db.owners"]
    assert call(target) == "COMPLETED"


def test_a_run_that_died_while_removing_is_finished(
    database: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_given: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("shutil.rmtree", die)
    with pytest.raises(KeyboardInterrupt):
        move(database, target)
    monkeypatch.undo()
    assert target.exists()
    assert not database.exists()
    move(database, target)
    assert names(database) == []
    with pytest.raises(StoreError, match="no database at"):
        move(database, target)


def test_both_used_after_a_run_that_died_are_both_kept(
    database: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_given: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(moving, "_remove", die)
    with pytest.raises(KeyboardInterrupt):
        move(database, target)
    monkeypatch.undo()
    call(database)
    with pytest.raises(StoreError, match="both were used"):
        move(database, target)
    assert database.exists()
    assert target.exists()


def test_another_database_or_key_is_never_replaced(database: Path, target: Path) -> None:
    Path(f"{target}.key").write_text("another")
    with pytest.raises(StoreError, match="belongs to another database"):
        move(database, target)
    Path(f"{target}.key").unlink()
    call(target)
    with pytest.raises(StoreError, match="already, which is another one; nothing was moved"):
        move(database, target)
    with pytest.raises(StoreError, match="already"):
        move(target, target)
    with pytest.raises(StoreError, match="does not exist; create it first"):
        move(database, target.parent / "gone" / "x.db")
    assert call(database) == "COMPLETED"


def test_what_is_no_database_stays(tmp_path: Path, target: Path) -> None:
    (tmp_path / "text.db").write_text("no database" * 100)
    with pytest.raises(StoreError, match="not a usable database"):
        move(tmp_path / "text.db", target)
    assert (tmp_path / "text.db").exists()


def test_a_copy_that_is_damaged_is_not_taken(database: Path, target: Path) -> None:
    with closing(sqlite3.connect(database)) as broken:
        broken.execute("PRAGMA journal_mode=DELETE")
        [(page, size)] = broken.execute(
            "SELECT rootpage, (SELECT page_size FROM pragma_page_size) FROM sqlite_master WHERE name='settings'"
        ).fetchall()
    content = bytearray(database.read_bytes())
    content[(page - 1) * size : page * size] = b"\xff" * size
    database.write_bytes(content)
    with pytest.raises(StoreError, match=r"damaged|malformed"):
        move(database, target)
    assert database.exists()
    assert not target.exists()


def test_a_key_in_the_environment_need_not_be_a_file(database: Path, target: Path) -> None:
    Path(f"{database}.key").unlink()
    move(database, target)
    assert names(target) == ["toolgate.db", "toolgate.db.owners"]
