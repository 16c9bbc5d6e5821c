"""Large arguments and undo data are written once, sealed, and gone when they should be."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, event

import toolgate
from toolgate import Policy
from toolgate.adapters import sealing
from toolgate.adapters.sql import migrate
from toolgate.adapters.sql.rows import row_name, uuid_hex
from toolgate.adapters.sqlite.file import prepare
from toolgate.adapters.sqlite.rekey import rekey
from toolgate.adapters.sqlite.store import SqliteStore
from toolgate.adapters.sqlite.upkeep import prune
from toolgate.errors import StoreError
from toolgate.kernel.call import Status
from toolgate.kernel.change import Change
from toolgate.kernel.policy import Verdict, Word
from toolgate.kernel.record import evolve
from toolgate.kernel.undo import UndoState
from toolgate.ports.store import CallQuery
from toolgate.testing.clock import NOON
from toolgate.testing.conformance.rows import PROJECT, a_call, an_undo, commit, insert, step
from toolgate.testing.conformance.store_large import LONG, UNDO, large, same

ENDED = {"status": Status.COMPLETED, "completed_at": NOON}


@pytest.fixture(autouse=True)
def no_key_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(sealing.ENVIRONMENT, raising=False)


@pytest.fixture
async def store(database: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(database, owner="test")
    yield store
    await store.close()


def ask(database: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(sql).fetchall()


def beside(database: Path) -> tuple[int, int]:
    """How many large arguments and large undo data there are."""
    tables = ("large_params", "large_undo")
    params, undo = (ask(database, f"SELECT count(*) FROM {table}")[0][0] for table in tables)
    return params, undo


def log_size(database: Path) -> int:
    return database.with_name(database.name + "-wal").stat().st_size


async def test_a_change_of_a_large_call_writes_little(store: SqliteStore, database: Path) -> None:
    call, undo = large(), an_undo(data=UNDO, state=UndoState.PREPARED)
    await commit(store, insert(call, undo=undo))
    before = log_size(database)
    done = evolve(undo, state=UndoState.AVAILABLE, fingerprint=b"now")
    await commit(store, step(call, Status.EXECUTING, undo=done, undo_stored=True))
    assert log_size(database) - before < 50_000
    assert len(LONG) > 200_000


async def test_a_file_tool_writes_each_content_once(database: Path, tmp_path: Path) -> None:
    class AllowAll:
        name = "all"
        is_static = True

        def __call__(self, *_: object) -> Verdict:
            return Verdict(Word.ALLOW, "tested", self.name)

    text = LONG * 3  # so long that no preview compares it
    policy = Policy(rules=(AllowAll(),), revision="test")
    workspace = tmp_path / "work"
    workspace.mkdir()
    (workspace / "a.txt").write_text("before" + text)
    async with toolgate.open(f"sqlite:///{database}", workspace=workspace, built_in_tools=True, policy=policy) as gate:
        before = log_size(database)
        done = await gate.call("write_file", {"path": "a.txt", "content": "after" + text})
        done.unwrap()
        assert log_size(database) - before < 2.5 * len(text)
        (call,) = await gate.calls.list(CallQuery(newest_first=True, limit=1))
        assert list(call.shown.items()) == [("path", "a.txt"), ("content", "after" + text)]
        (await gate.undo(done.call_id)).unwrap()
        assert (workspace / "a.txt").read_text() == "before" + text
        assert beside(database) == (1, 0), "what was undone cannot be undone again"
    files = [path for path in database.parent.glob(f"{database.name}*") if path.is_file()]
    assert not [path for path in files if b"a line of a long text" in path.read_bytes()]


async def test_what_is_kept_beside_a_row_goes_with_it(store: SqliteStore, database: Path) -> None:
    call = large(status=Status.AWAITING_APPROVAL)
    await commit(store, insert(call, undo=an_undo(data=UNDO)))
    assert beside(database) == (1, 1)
    small = evolve(call, arguments=b"{}", shown={}, version=2)
    done = an_undo(data=b"{}", state=UndoState.DONE)
    await commit(store, Change(project=PROJECT, at=NOON, call=small, expect=1, rewrites=True, undo=done))
    assert beside(database) == (0, 0)


async def test_undo_data_goes_when_its_time_is_over(store: SqliteStore, database: Path) -> None:
    for id, hours in (("c1", 1), ("c2", 3)):
        undo = an_undo(id, data=UNDO, expires_at=NOON + timedelta(hours=hours))
        await commit(store, insert(a_call(id), undo=undo))
    await store.due(NOON + timedelta(hours=2))
    assert ask(database, "SELECT call_id FROM large_undo") == [("c2",)]
    assert prune(database, NOON + timedelta(hours=4))[0] == 0
    assert beside(database) == (0, 0)


async def test_a_refused_change_leaves_nothing_beside_its_row(store: SqliteStore, database: Path) -> None:
    await commit(store, insert(a_call()))
    with pytest.raises(toolgate.errors.ConflictError):
        await commit(store, insert(large(), undo=an_undo(data=UNDO)))
    assert beside(database) == (0, 0)


async def test_forgetting_takes_large_arguments_too(database: Path) -> None:
    store = SqliteStore(database, owner="test")
    await commit(store, insert(large("old", masked=True, **ENDED)))
    await commit(store, insert(large("new", status=Status.COMPLETED, completed_at=NOON + timedelta(hours=2))))
    await store.close()
    assert prune(database, NOON + timedelta(hours=1))[0] == 1
    store = SqliteStore(database, owner="after")
    old, new = [await store.call(PROJECT, id) for id in ("old", "new")]
    assert old is not None
    assert (old.arguments, old.shown) == (b"{}", None)
    assert same(new, large("new"))
    assert ask(database, "SELECT call_id FROM large_params") == [("new",)]
    await store.close()


async def test_large_values_are_sealed_anew_with_the_others(database: Path) -> None:
    store = SqliteStore(database, owner="before")
    await commit(store, insert(large(), undo=an_undo(data=UNDO)))
    await store.close()
    keys = database.with_name(database.name + ".key")
    keys.write_text(sealing.new_key() + "\n" + keys.read_text())
    done = rekey(database)
    assert (done.resealed, len(done.retired)) == (4, 1)
    keys.write_text(keys.read_text().split()[0])
    store = SqliteStore(database, owner="after")
    assert same(await store.call(PROJECT, "c1"), large())
    undo = await store.undo(PROJECT, "c1")
    assert undo is not None
    assert undo.data == UNDO
    await store.close()


async def test_a_large_value_that_somebody_took_is_missed(store: SqliteStore, database: Path) -> None:
    await commit(store, insert(large(), undo=an_undo(data=UNDO)))
    with closing(sqlite3.connect(database)) as thief:
        thief.execute("DELETE FROM large_params")
        thief.execute("DELETE FROM large_undo")
        thief.commit()
    with pytest.raises(StoreError, match="missing"):
        await store.call(PROJECT, "c1")
    with pytest.raises(StoreError, match="missing"):
        await store.undo(PROJECT, "c1")


def walk(database: Path, *revisions: str) -> None:
    engine = create_engine("sqlite://", creator=lambda: sqlite3.connect(database, isolation_level=None))
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    with engine.begin() as connection:
        for revision in revisions:
            migrate.downgrade(connection, revision)
    engine.dispose()


async def put_old_undo(database: Path) -> None:
    """Undo data as revision 0008 kept it, whatever its size."""
    sealer = sealing.load(database.with_name(database.name + ".key"), create=False)
    packed = b"\x01" + len(UNDO).to_bytes(8, "big") + UNDO + b"mark"
    sealed = sealer.seal(packed, row_name(PROJECT, "c1", "undo"))
    times = ("2026-01-01 12:00:00.000000", "2026-01-01 13:00:00.000000")
    with closing(sqlite3.connect(database)) as connection:
        row = (PROJECT, uuid_hex("c1"), "c1", "write", "available", sealed, None, *times)
        connection.execute("INSERT INTO undo_records VALUES (?,?,?,?,?,?,?,?,?)", row)
        connection.commit()


async def test_a_database_of_before_is_read_and_goes_on(database: Path) -> None:
    store = SqliteStore(database, owner="before")
    for id, masked in (("c1", False), ("c2", True)):
        await commit(store, insert(large(id, masked=masked)))
    await store.close()
    walk(database, "0008")
    await put_old_undo(database)
    assert ask(database, "SELECT length(sealed_params) > 200000 FROM tool_executions") == [(1,), (1,)]
    assert "***" in ask(database, "SELECT tool_params FROM tool_executions WHERE call_id='c2'")[0][0]
    prepare(database)
    store = SqliteStore(database, owner="after")
    first, second = [await store.call(PROJECT, id) for id in ("c1", "c2")]
    assert first is not None
    assert first.arguments == large().arguments
    assert same(second, large("c2", masked=True))
    undo = await store.undo(PROJECT, "c1")
    assert undo is not None
    assert (undo.data, undo.fingerprint) == (UNDO, b"mark")
    claimed = evolve(undo, state=UndoState.CLAIMED, claimed_by="u1")
    await commit(store, step(first, Status.EXECUTING, undo=claimed, undo_stored=True))
    assert await store.undo(PROJECT, "c1") == claimed
    assert beside(database) == (0, 1), "arguments stay where they are, undo data moved when it was written"
    await store.close()


async def test_going_back_is_refused_while_there_is_large_undo_data(database: Path) -> None:
    store = SqliteStore(database, owner="before")
    await commit(store, insert(large(), undo=an_undo(data=UNDO)))
    await store.close()
    with pytest.raises(StoreError, match="Nothing was changed"):
        walk(database, "0008")
    store = SqliteStore(database, owner="after")
    assert same(await store.call(PROJECT, "c1"), large())
    await store.due(NOON + timedelta(days=1))
    await store.close()
    walk(database, "0008")
    assert ask(database, "SELECT version_num FROM alembic_version") == [("0008",)]
