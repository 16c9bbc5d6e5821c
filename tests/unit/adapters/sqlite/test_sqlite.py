"""What the conformance class does not ask: one bad change among many, paging, and a store that is shut or forked."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from toolgate.adapters import sealing
from toolgate.adapters.sqlite.store import SqliteStore
from toolgate.errors import StoreError
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Durability
from toolgate.kernel.context import Context
from toolgate.ports.sink import Cursor
from toolgate.ports.store import CallQuery
from toolgate.testing.clock import NOON
from toolgate.testing.conformance.rows import a_call, a_fact, an_undo, commit, insert, step


@pytest.fixture
async def store(database: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(database, owner="me")
    yield store
    await store.close()


UNSTORABLE: dict[str, Any] = {
    "an object": {"preview": object()},
    "a number beyond 64 bits": {"preview": 10**30},
    "half a character": {"context": Context(session_id="\ud800")},
    "an id that is no text": {"context": Context(run_id=uuid4())},  # type: ignore[arg-type]
    "a path": {"context": Context(session_id=Path())},  # type: ignore[arg-type]
}


@pytest.mark.parametrize("fields", UNSTORABLE.values(), ids=UNSTORABLE)
@pytest.mark.parametrize("durability", Durability)
async def test_a_change_that_cannot_be_stored_harms_nobody_else(
    store: SqliteStore, fields: dict[str, Any], durability: Durability
) -> None:
    changes = [insert(a_call("good"), durability=durability), insert(a_call("bad", **fields), durability=durability)]
    changes.append(insert(a_call("fine"), durability=durability))
    outcomes = await asyncio.gather(*(commit(store, change) for change in changes), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [type(None), StoreError, type(None)]
    assert [call.id for call in await store.calls(CallQuery())] == ["fine", "good"]
    await commit(store, insert(a_call("later")))


LARGE: dict[str, Any] = {"arguments": b'{"text":"%s"}' % (b"x" * 1_000_000)}


async def test_large_changes_are_made_ready_and_written_by_the_writers_thread(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []
    seal = sealing.Sealer.seal

    def noting(sealer: sealing.Sealer, data: bytes, row: bytes) -> bytes:
        threads.append(threading.current_thread().name)
        return seal(sealer, data, row)

    monkeypatch.setattr(sealing.Sealer, "seal", noting)
    change = insert(a_call("large", **LARGE), durability=Durability.COMMITTED)
    await commit(store, change)
    assert set(threads) == {"toolgate-writer"}
    found = await store.call("default", "large")
    assert found is not None
    assert found.arguments == LARGE["arguments"]


async def test_a_small_change_waits_for_one_large_one_at_most(store: SqliteStore) -> None:
    order: list[str] = []

    async def put(name: str, **fields: Any) -> None:
        await commit(store, insert(a_call(name, **fields)))
        order.append(name)

    large = [asyncio.ensure_future(put(f"large{number}", **LARGE)) for number in range(6)]
    await asyncio.sleep(0)
    await asyncio.gather(put("small"), *large)
    assert order.index("small") < 3
    assert sorted(order) == [*(f"large{number}" for number in range(6)), "small"]


async def test_large_changes_that_wait_are_written_before_the_store_is_closed(database: Path) -> None:
    store = SqliteStore(database, owner="me")
    waiting = [asyncio.ensure_future(commit(store, insert(a_call(str(number), **LARGE)))) for number in range(5)]
    await asyncio.sleep(0)
    await store.close()
    await asyncio.gather(*waiting)
    again = SqliteStore(database, owner="you")
    assert len(await again.calls(CallQuery())) == 5
    await again.close()


@pytest.mark.parametrize("fields", UNSTORABLE.values(), ids=UNSTORABLE)
async def test_a_large_change_that_cannot_be_stored_harms_nobody_else(
    store: SqliteStore, fields: dict[str, Any]
) -> None:
    changes = [insert(a_call("good", **LARGE)), insert(a_call("bad", **LARGE, **fields)), insert(a_call("small"))]
    outcomes = await asyncio.gather(*(commit(store, change) for change in changes), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [type(None), StoreError, type(None)]
    assert [call.id for call in await store.calls(CallQuery())] == ["good", "small"]


async def test_a_change_refused_for_its_value_leaves_no_event(store: SqliteStore) -> None:
    with pytest.raises(StoreError, match="cannot be stored"):
        await commit(store, insert(a_call(preview=object()), events=(a_fact(),)))
    await commit(store, insert(a_call(), events=(a_fact(),)))
    assert [event.seq for event in await store.events("default")] == [1]


async def test_calls_are_paged_within_their_project(store: SqliteStore) -> None:
    for number, project in enumerate(("early", "late")):
        for id in ("c1", "c2", "c3"):
            await commit(store, insert(a_call(id, project=project, created_at=NOON + timedelta(hours=number))))
    for project in ("early", "late"):
        seen: list[Call] = []
        while page := await store.calls(CallQuery(project=project, after=seen[-1] if seen else None, limit=1)):
            seen += page
        assert [call.id for call in seen] == ["c1", "c2", "c3"]


async def test_a_run_id_that_two_projects_use_is_a_run_of_each(store: SqliteStore, database: Path) -> None:
    for project in ("one", "two"):
        await commit(store, insert(a_call(project=project, context=Context(project=project, run_id="r1"))))
        found = await store.calls(CallQuery(project=project, run_id="r1"))
        assert [call.project for call in found] == [project]
    assert _rows(database, "SELECT project_id, name FROM runs ORDER BY 1") == [("one", "r1"), ("two", "r1")]


async def test_an_id_that_is_the_uuid_of_another_is_not_mistaken_for_it(store: SqliteStore) -> None:
    from uuid import UUID

    from toolgate.adapters.sql.rows import uuid_hex

    await commit(store, insert(a_call("c1"), undo=an_undo("c1")))
    twin = str(UUID(uuid_hex("c1")))
    assert await store.call("default", twin) is None


async def test_arguments_changed_while_asking_again_are_what_runs(store: SqliteStore) -> None:
    call = a_call(status=Status.APPROVED, arguments=b'{"a":1}')
    await commit(store, insert(call))
    await commit(store, step(call, Status.AWAITING_APPROVAL, changes={"arguments": b'{"a":2}'}))
    found = await store.call("default", "c1")
    assert found is not None
    assert found.arguments == b'{"a":2}'


async def test_rows_sealed_before_a_rotation_open_after_it(database: Path) -> None:
    key = database.with_name(database.name + ".key")
    before = SqliteStore(database, owner="one")
    await commit(before, insert(a_call("old", arguments=b'{"n":1}')))
    await before.close()
    key.write_text(sealing.new_key() + "\n" + key.read_text())
    after = SqliteStore(database, owner="two")
    await commit(after, insert(a_call("new", arguments=b'{"n":2}')))
    found = await after.calls(CallQuery())
    assert {call.id: call.arguments for call in found} == {"old": b'{"n":1}', "new": b'{"n":2}'}
    await after.close()
    heads = {row[0]: row[1][:4] for row in _rows(database, "SELECT call_id, sealed_params FROM tool_executions")}
    assert heads["old"] != heads["new"] == bytes.fromhex(after._sealer.current)


async def test_a_sealed_value_moved_to_another_row_is_not_used(database: Path) -> None:
    store = SqliteStore(database, owner="me")
    for id in ("cheap", "dear"):
        await commit(store, insert(a_call(id, arguments=b"{}")))
    with closing(sqlite3.connect(database)) as thief:
        thief.execute(
            "UPDATE tool_executions SET sealed_params=(SELECT sealed_params FROM tool_executions WHERE call_id='dear') "
            "WHERE call_id='cheap'"
        )
        thief.commit()
    with pytest.raises(StoreError, match="another row"):
        await store.call("default", "cheap")
    assert await store.call("default", "dear") is not None
    await store.close()


async def test_a_closed_store_says_so(store: SqliteStore) -> None:
    await store.close()
    await store.close()
    with pytest.raises(StoreError, match="closed"):
        await commit(store, insert(a_call()))
    with pytest.raises(StoreError):
        await store.call("default", "c1")
    with pytest.raises(StoreError):
        await store.due(NOON)


async def test_a_store_opened_before_a_fork_is_not_used_after_it(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(StoreError, match="fork"):
        await commit(store, insert(a_call()))


@pytest.mark.parametrize("durability", [Durability.COMMITTED, Durability.FSYNCED])
async def test_a_file_that_became_read_only_says_so(store: SqliteStore, durability: Durability) -> None:
    store._connection.execute("PRAGMA query_only=1")
    with pytest.raises(StoreError, match="read-only"):
        await commit(store, insert(a_call(), durability=durability))
    store._connection.execute("PRAGMA query_only=0")
    await commit(store, insert(a_call(), durability=durability))


@pytest.mark.parametrize("durability", [Durability.COMMITTED, Durability.FSYNCED])
async def test_a_full_disk_says_so_and_nothing_is_half_written(store: SqliteStore, durability: Durability) -> None:
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count={pages + 1}")
    big: Call = a_call("big", arguments=b'"' + b"x" * 1_000_000 + b'"')
    with pytest.raises(StoreError, match="disk is full"):
        await commit(store, insert(big, events=(a_fact("big"),), durability=durability))
    store._connection.execute("PRAGMA max_page_count=1000000")
    assert await store.calls(CallQuery()) == []
    await commit(store, insert(big, events=(a_fact("big"),), durability=durability))
    assert [event.seq for event in await store.events("default")] == [1]


async def test_a_writer_waits_while_another_process_writes(store: SqliteStore, database: Path) -> None:
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        writing = asyncio.ensure_future(commit(store, insert(a_call(), durability=Durability.COMMITTED)))
        await asyncio.wait({writing}, timeout=0.05)
        assert not writing.done()
        other.execute("COMMIT")
    await writing
    assert await store.call("default", "c1") is not None


def _rows(path: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


async def test_a_named_sink_has_one_owner_until_that_is_dead_or_lets_go(store: SqliteStore, database: Path) -> None:
    other = SqliteStore(database, owner="other")
    await store.open_cursor("p", "audit")
    await store.move_cursor("p", "audit", 3)
    assert await other.open_cursor("p", "audit") == Cursor(3, 0, is_ours=False)
    assert not await other.move_cursor("p", "audit", 9)
    await other.close_cursor("p", "audit")  # not its own to let go of
    assert (await store.open_cursor("p", "audit")).is_ours
    await store.close_cursor("p", "audit")
    assert await other.open_cursor("p", "audit") == Cursor(3, 0, is_ours=True)
    assert not await store.move_cursor("p", "audit", 9)
    await other.close()  # it did not let go: it is dead
    assert await store.open_cursor("p", "audit") == Cursor(3, 0, is_ours=True)


async def test_a_cursor_that_cannot_be_written_is_a_store_error_and_leaves_no_transaction(store: SqliteStore) -> None:
    with pytest.raises(StoreError):
        await store.open_cursor("\ud800", "audit")
    with closing(sqlite3.connect(store._path)) as other:
        other.execute("DROP TABLE sink_cursors")
    with pytest.raises(StoreError, match="cannot be written"):
        await store.open_cursor("p", "audit")
    await commit(store, insert(a_call()))
