"""Looking after a file from outside: what is broken is named, and what is not ours is left alone."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import toolgate
from toolgate.adapters.sql.upkeep import ChainReport
from toolgate.adapters.sql.versions import HEAD
from toolgate.adapters.sqlite import upkeep
from toolgate.adapters.sqlite.file import PAGE_BYTES, connect
from toolgate.adapters.sqlite.store import SqliteStore
from toolgate.adapters.sqlite.upkeep import (
    backup_to,
    prune,
    status_of,
    upgrade_file,
    vacuum_file,
    verify_chains,
)
from toolgate.errors import StoreError
from toolgate.kernel.approval import digest_of
from toolgate.kernel.brake import Brake, Scope
from toolgate.kernel.call import Status
from toolgate.kernel.context import Mode
from toolgate.kernel.record import evolve
from toolgate.ports.store import ApprovalQuery
from toolgate.testing.clock import NOON
from toolgate.testing.conformance.rows import a_call, a_fact, an_approval, an_undo, commit, insert, set_mode

COMMANDS: dict[str, Callable[[Path], object]] = {
    "verify": verify_chains,
    "status": status_of,
    "upgrade": upgrade_file,
    "vacuum": vacuum_file,
    "backup": lambda path: backup_to(path, path.with_name("copy.db")),
    "prune": lambda path: prune(path, NOON)[0],
}


@pytest.fixture
def used(database: Path) -> Path:
    """A database with two projects of three events each."""

    async def use() -> None:
        store = SqliteStore(database, owner="me")
        for project in ("one", "two"):
            call = a_call(project=project, result=b"1", shown={"a": "***"}, shown_result=1, completed_at=NOON)
            done = evolve(call, status=Status.COMPLETED)
            undo = an_undo(project=project)
            await commit(store, insert(done, events=tuple(a_fact(step=step) for step in range(3)), undo=undo))
        await store.close()

    asyncio.run(use())
    return database


def change(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute(sql).rowcount > 0
        connection.commit()


def ask(path: Path, sql: str) -> Any:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def test_a_chain_that_is_whole_verifies(used: Path) -> None:
    assert verify_chains(used) == [ChainReport("one", 3, None), ChainReport("two", 3, None)]


def test_a_database_without_events_has_no_chains(database: Path) -> None:
    assert verify_chains(database) == []


ALTERED = "Event 2 of project 'two' was altered"
BREAKS = {
    "an altered body": (
        "UPDATE events SET frame=CAST(replace(frame, '1', '2') AS BLOB) WHERE {}2",
        "Event 2 of project 'two' was altered",
    ),
    "a removed event": ("DELETE FROM events WHERE {}2", "Event 2"),
    "a truncated tail": ("DELETE FROM events WHERE {}3", "newest events are missing"),
    "everything removed": ("DELETE FROM events WHERE project_id='two'", "newest events are missing"),
    "a missing head": ("DELETE FROM chain_heads WHERE project_id='two'", "head"),
    "another type": ("UPDATE events SET type='tool.failed' WHERE {}2", "Event 2"),
    "another call": ("UPDATE events SET call_id='c2' WHERE {}2", "Event 2"),
    "another time": ("UPDATE events SET at='2026-01-01 13:00:00.000000' WHERE {}2", "Event 2"),
    "no time at all": (
        "UPDATE events SET at='yesterday' WHERE {}2",
        "Event 2 of project 'two' was altered: it cannot be read",
    ),
    "text for bytes": ("UPDATE events SET prev='x' WHERE {}1", "Event 1"),
    "a number for bytes": ("UPDATE events SET frame=7 WHERE {}1", "Event 1"),
    "no JSON": ("UPDATE events SET frame=x'00' WHERE {}1", "Event 1"),
    "another number": ("UPDATE events SET seq=9 WHERE {}2", "Event 2"),
}


@pytest.mark.parametrize(("sql", "says"), BREAKS.values(), ids=BREAKS)
def test_a_broken_chain_is_named_with_where_it_breaks(used: Path, sql: str, says: str) -> None:
    change(used, sql.format("project_id='two' AND seq="))
    one, two = verify_chains(used)
    assert one == ChainReport("one", 3, None)
    assert says in str(two.problem)


def test_destroyed_content_is_counted_and_breaks_nothing(used: Path) -> None:
    change(used, "UPDATE events SET content=NULL WHERE project_id='two' AND seq=1")
    (report,) = (report for report in verify_chains(used) if report.project == "two")
    assert (report.problem, report.redacted) == (None, 1)


def test_a_cut_head_is_noticed_although_the_events_are_whole(used: Path) -> None:
    change(used, "UPDATE chain_heads SET seq=2 WHERE project_id='two'")
    assert verify_chains(used)[1].problem is not None


def test_status_says_what_is_there(used: Path) -> None:
    async def park() -> None:
        store = SqliteStore(used, owner="me")
        await commit(store, insert(a_call("c9", status=Status.AWAITING_APPROVAL), approvals=(an_approval(),)))
        await commit(store, set_mode(Mode.ALERT, Brake(scope=Scope("two"), mode=Mode.LOCKDOWN)))
        await store.close()

    asyncio.run(park())
    found = status_of(used)
    assert found.pop("bytes") == used.stat().st_size
    assert found == {
        "revision": HEAD,
        "needed": HEAD,
        "events": 7,
        "calls": {"AWAITING_APPROVAL": 1, "COMPLETED": 2},
        "pending_approvals": 1,
        "mode": "ALERT",
        "brakes": 1,
    }


def test_status_of_another_schema_says_which_is_needed(database: Path) -> None:
    change(database, "UPDATE alembic_version SET version_num='9999'")
    found = status_of(database)
    assert (found["revision"], found["needed"], found["calls"]) == ("9999", HEAD, {})
    with pytest.raises(StoreError, match="toolgate db upgrade"):
        verify_chains(database)


def test_an_upgrade_makes_a_database_and_is_harmless_the_second_time(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    assert upgrade_file(path) == (None, HEAD)
    before = path.read_bytes()
    assert upgrade_file(path) == (HEAD, HEAD)
    assert path.read_bytes() == before


async def test_a_database_made_by_an_upgrade_can_be_opened(tmp_path: Path) -> None:
    upgrade_file(tmp_path / "new.db")
    await SqliteStore(tmp_path / "new.db", owner="me").close()


def test_a_backup_is_a_whole_database(used: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    assert backup_to(used, copy) == copy.stat().st_size
    copy.chmod(0o400)
    assert verify_chains(copy) == verify_chains(used)
    assert not [name for name in os.listdir(tmp_path) if name.startswith("copy.db-")]


def test_a_backup_taken_while_calls_wait_in_the_log_has_them(database: Path, tmp_path: Path) -> None:
    async def use() -> None:
        store = SqliteStore(database, owner="me")
        await commit(store, insert(a_call("c1", arguments=b'{"x":1}'), events=(a_fact(),)))
        backup_to(database, tmp_path / "copy.db")
        await store.close()

    asyncio.run(use())
    assert ask(tmp_path / "copy.db", "SELECT call_id FROM tool_executions") == [("c1",)]


def test_a_backup_never_overwrites(used: Path, tmp_path: Path) -> None:
    (tmp_path / "copy.db").write_text("precious")
    with pytest.raises(StoreError, match="exists already"):
        backup_to(used, tmp_path / "copy.db")
    assert (tmp_path / "copy.db").read_text() == "precious"


def test_a_backup_that_cannot_be_written_leaves_nothing(used: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="could not be written"):
        backup_to(used, tmp_path / "no" / "copy.db")


def test_a_damaged_database_is_not_passed_off_as_a_backup(used: Path, tmp_path: Path) -> None:
    with used.open("r+b") as file:
        file.seek(PAGE_BYTES * 6)
        file.write(b"\xff" * PAGE_BYTES * 16)
    with pytest.raises(StoreError, match=r"damaged|not a usable|could not|cannot"):
        backup_to(used, tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()


def test_vacuum_gives_space_back(used: Path) -> None:
    with closing(sqlite3.connect(used)) as connection:
        connection.execute("CREATE TABLE bulk AS SELECT randomblob(400000) AS x")
        connection.execute("DROP TABLE bulk")
        connection.commit()
    before, after = vacuum_file(used)
    assert after == used.stat().st_size
    assert after < before - 300_000
    assert [report.problem for report in verify_chains(used)] == [None, None]


def test_vacuum_of_a_file_somebody_holds_says_so(used: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "connect", lambda path, busy_s: connect(path, busy_s=busy_s / 200))
    with closing(sqlite3.connect(used, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="vacuumed"):
            vacuum_file(used)
        with pytest.raises(StoreError, match="could not be pruned"):
            prune(used, NOON + timedelta(days=1))


def test_forgetting_takes_arguments_and_results_and_nothing_else(used: Path) -> None:
    kept = "SELECT call_id, status, tool_name, principal, created_at, completed_at FROM tool_executions"
    before = ask(used, kept)
    assert prune(used, NOON + timedelta(seconds=1))[0] == 2
    assert ask(used, kept) == before
    assert set(ask(used, "SELECT tool_params, result, sealed_params, sealed_result FROM tool_executions")) == {
        (None, None, None, None)
    }
    assert [report.problem for report in verify_chains(used)] == [None, None, None]
    assert prune(used, NOON + timedelta(seconds=1))[0] == 0


def test_forgetting_takes_what_was_shown_of_arguments_too(database: Path) -> None:
    async def use() -> None:
        store = SqliteStore(database, owner="me")
        ended = {"status": Status.COMPLETED, "completed_at": NOON, "preview": {"diff": "canary"}, "confidence": 7}
        asked = an_approval(arguments={"path": "canary"}, preview={"diff": "canary"}, facts=["canary"], confidence=7)
        await commit(store, insert(a_call("c1", shown={"path": "canary"}, **ended), approvals=(asked,)))
        young = an_approval("a2", call_id="c2", arguments={"path": "kept"})
        await commit(store, insert(a_call("c2"), approvals=(young,)))
        await store.close()
        prune(database, NOON + timedelta(seconds=1))
        store = SqliteStore(database, owner="me")
        old, new = await store.approvals(ApprovalQuery())
        assert (old.arguments, old.preview, old.facts, old.confidence) == (None, None, None, 7)
        assert new.arguments == {"path": "kept"}
        call = await store.call("default", "c1")
        assert call is not None
        assert (call.shown, call.preview, call.confidence) == (None, None, 7)
        await store.close()

    asyncio.run(use())
    assert not [row for row in ask(database, "SELECT * FROM tool_executions") if "canary" in str(row)]
    assert not [row for row in ask(database, "SELECT * FROM approval_requests") if "canary" in str(row)]


async def test_nobody_can_try_out_what_was_forgotten(database: Path) -> None:
    """With the nonce, the digest that the events keep would tell of an account number which one it was."""
    tool = toolgate.ToolDefinition("pay", {}, lambda _given: toolgate.ToolOutput.ok(), requires_approval=True)
    async with toolgate.open(f"sqlite:///{database}", tools=[tool]) as gate:
        asked = await gate.call("pay", {"to": "DE01"}, wait=False)
        edited = await gate.approvals.edit(str(asked.approval_id), {"to": "DE02"}, by="ann")
        await gate.wait(asked.call_id)
        call, shown = await gate.calls.get(asked.call_id), await gate.approvals.get(str(edited.approval_id))
        assert digest_of(call, nonce=shown.nonce) == shown.digest
    prune(database, datetime.now(UTC) + timedelta(seconds=1))
    left = str(ask(database, "SELECT detail FROM approval_requests UNION ALL SELECT detail FROM tool_executions"))
    assert shown.nonce not in left
    assert str(call.first_asked) not in left
    assert "DE0" not in left


def test_forgetting_spares_what_is_younger_unfinished_or_unknown(database: Path) -> None:
    async def use() -> None:
        store = SqliteStore(database, owner="me")
        for status in Status:
            await commit(store, insert(a_call(status.value, status=status, completed_at=NOON)))
        await commit(store, insert(a_call("young", status=Status.COMPLETED, completed_at=NOON + timedelta(hours=2))))
        await store.close()

    asyncio.run(use())
    prune(database, NOON + timedelta(hours=1))
    spared = {row[0] for row in ask(database, "SELECT call_id FROM tool_executions WHERE sealed_params IS NOT NULL")}
    assert spared == {"young", "UNKNOWN"} | {status.value for status in Status if not status.is_final}


def test_forgetting_takes_undo_data_whose_time_is_over(used: Path) -> None:
    prune(used, NOON + timedelta(minutes=59))
    assert len(ask(used, "SELECT 1 FROM undo_records")) == 2
    prune(used, NOON + timedelta(minutes=61))
    assert ask(used, "SELECT 1 FROM undo_records") == []


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_no_command_touches_what_is_not_ours(tmp_path: Path, command: Callable[[Path], object]) -> None:
    path = tmp_path / "theirs.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('mine')")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="not one of Toolgate's"):
        command(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["theirs.db"]


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_no_command_takes_a_directory_or_a_diary(tmp_path: Path, command: Callable[[Path], object]) -> None:
    (tmp_path / "diary").write_bytes(b"Dear diary,\n" * 1000)
    for path in (tmp_path, tmp_path / "diary"):
        with pytest.raises(StoreError):
            command(path)
    assert (tmp_path / "diary").read_bytes() == b"Dear diary,\n" * 1000
