"""Only a database of ours is opened, and whatever else is at the path stays as it is."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.unit.adapters.sql.people import as_nobody

from toolgate.adapters import sealing
from toolgate.adapters.sql.versions import HEAD
from toolgate.adapters.sqlite.file import APPLICATION_ID, connect, keys_of, open_file, prepare, revision_of
from toolgate.adapters.sqlite.store import SqliteStore
from toolgate.errors import StoreError


@pytest.fixture(autouse=True)
def no_key_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(sealing.ENVIRONMENT, raising=False)


def script(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(sql)


@pytest.fixture
def untouched(tmp_path: Path) -> Iterator[Path]:
    """A path; whatever a test puts there must be the same afterwards, with nothing beside it."""
    path = tmp_path / "toolgate.db"
    seen: dict[str, bytes] = {}
    yield path
    seen = {name: (tmp_path / name).read_bytes() for name in sorted(os.listdir(tmp_path)) if name != "before"}
    before = (tmp_path / "before").read_bytes()
    assert seen == {"toolgate.db": before}


def remember(path: Path) -> None:
    shutil.copy(path, path.with_name("before"))


def refuse(path: Path, match: str) -> None:
    remember(path)
    with pytest.raises(StoreError, match=match):
        SqliteStore(path, owner="me")


def test_a_file_that_is_not_a_database_is_refused(untouched: Path) -> None:
    untouched.write_bytes(b"Dear diary,\n" * 1000)
    refuse(untouched, "not a usable database")


def test_a_file_too_short_to_be_a_database_is_refused(untouched: Path) -> None:
    untouched.write_bytes(b"x")
    refuse(untouched, "not")


def test_a_database_of_another_application_is_refused(untouched: Path) -> None:
    script(untouched, "CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('mine')")
    refuse(untouched, "not one of Toolgate's")


def test_another_application_that_also_numbers_its_schema_is_refused(untouched: Path) -> None:
    script(
        untouched,
        f"CREATE TABLE alembic_version (version_num TEXT); INSERT INTO alembic_version VALUES ('{HEAD}');"
        "CREATE TABLE settings (name TEXT, value TEXT)",
    )
    refuse(untouched, "not one of Toolgate's")


def test_a_database_of_a_newer_version_is_refused_and_kept(database: Path) -> None:
    script(database, "UPDATE alembic_version SET version_num='9999'")
    before = database.read_bytes()
    with pytest.raises(StoreError, match=r"'9999'.*newer Toolgate"):
        SqliteStore(database, owner="me")
    assert database.read_bytes() == before


def test_a_directory_is_refused_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"is a directory; .*toolgate\.db"):
        SqliteStore(tmp_path, owner="me")
    assert os.listdir(tmp_path) == []


def test_a_missing_folder_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="does not exist"):
        SqliteStore(tmp_path / "no" / "toolgate.db", owner="me")
    assert os.listdir(tmp_path) == []


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError):
        SqliteStore(tmp_path / "file" / "toolgate.db", owner="me")


async def test_an_empty_file_becomes_a_database(tmp_path: Path) -> None:
    path = tmp_path / "toolgate.db"
    path.touch()
    await SqliteStore(path, owner="me").close()
    assert revision_of(path) == HEAD


async def test_a_name_with_every_kind_of_character_is_just_a_name(tmp_path: Path) -> None:
    path = tmp_path / "to ol?mode=ro&x#y%41:é.db"
    await SqliteStore(path, owner="me").close()
    await SqliteStore(path, owner="me").close()
    assert sorted(os.listdir(tmp_path)) == [path.name, f"{path.name}.key", f"{path.name}.owners"]


def test_a_new_file_carries_our_mark(empty_database: Path) -> None:
    with closing(sqlite3.connect(empty_database)) as connection:
        assert connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"


def test_preparing_a_file_that_is_ready_changes_nothing(database: Path) -> None:
    before = database.read_bytes()
    prepare(database)
    assert database.read_bytes() == before


def test_a_file_nobody_may_read_is_refused(tmp_path: Path, empty_database: Path) -> None:
    shutil.copy(empty_database, tmp_path / "toolgate.db")
    (tmp_path / "toolgate.db").chmod(0)
    told = as_nobody(
        tmp_path,
        """
        try:
            toolgate.adapters.sqlite.store.SqliteStore(folder / "toolgate.db", owner="me")
        except StoreError as error:
            print(error)
        """,
    )
    assert told == "The file toolgate.db is read-only; nothing was changed. Check its permissions.\n"


@pytest.mark.parametrize(
    ("mode", "says"), [(0o000, "cannot be reached"), (0o500, "cannot be used")], ids=["closed", "read-only"]
)
def test_a_folder_without_permission_is_refused(tmp_path: Path, mode: int, says: str) -> None:
    (tmp_path / "inner").mkdir()
    told = as_nobody(
        tmp_path / "inner",
        f"""
        os.chmod(folder, {mode})
        try:
            toolgate.adapters.sqlite.store.SqliteStore(folder / "toolgate.db", owner="me")
        except StoreError as error:
            print(error)
        os.chmod(folder, 0o700)
        """,
    )
    assert says in told


@pytest.mark.parametrize("trouble", ["missing", "other", "garbage", "readable"])
def test_a_wrong_key_is_found_at_the_opening_and_nothing_is_changed(database: Path, trouble: str) -> None:
    key = database.with_name(database.name + ".key")
    _use_once(database)
    before = database.read_bytes()
    if trouble == "missing":
        key.unlink()
    elif trouble == "readable":
        key.chmod(0o644)
    else:
        key.write_text("garbage" if trouble == "garbage" else sealing.new_key())
    kept = key.read_bytes() if key.exists() else None
    with pytest.raises(StoreError, match="key"):
        SqliteStore(database, owner="me")
    assert database.read_bytes() == before
    assert (key.read_bytes() if key.exists() else None) == kept


def _use_once(path: Path) -> None:
    import asyncio

    asyncio.run(SqliteStore(path, owner="first").close())


async def test_a_database_that_was_never_opened_gets_a_key_when_it_is(database: Path) -> None:
    key = database.with_name(database.name + ".key")
    key.unlink()
    await SqliteStore(database, owner="me").close()
    assert key.exists()


async def test_keys_are_rotated_by_putting_a_new_one_on_top(database: Path) -> None:
    key = database.with_name(database.name + ".key")
    old = key.read_text()
    await SqliteStore(database, owner="me").close()
    key.write_text(sealing.new_key() + "\n" + old)
    await SqliteStore(database, owner="me").close()
    with closing(connect(database, busy_s=1)) as connection:
        assert len(keys_of(connection)) == 2
    key.write_text(old)
    with pytest.raises(StoreError, match="not among the keys given"):
        SqliteStore(database, owner="me")


def test_a_connection_to_what_cannot_be_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be opened as a database"):
        connect(tmp_path / "no" / "x", busy_s=0)


def test_a_connection_waits_for_others_who_open_a_new_file(database: Path) -> None:
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.executescript("PRAGMA journal_mode=DELETE; BEGIN")
        other.execute("SELECT * FROM settings").fetchall()
        with pytest.raises(StoreError, match="locked"):
            open_file(database, busy_s=0.02)
        other.rollback()
    open_file(database, busy_s=1).close()
