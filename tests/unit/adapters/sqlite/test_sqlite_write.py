from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from toolgate.adapters.sealing import Sealer
from toolgate.adapters.sql.brakes import Watch
from toolgate.adapters.sql.write_set import WriteSet, write_set_of
from toolgate.adapters.sqlite import upkeep
from toolgate.adapters.sqlite.file import connect, prepare
from toolgate.adapters.sqlite.write import Group, Writer
from toolgate.errors import ConflictError, ModeChangedError, StoreError
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change
from toolgate.kernel.context import DEFAULT_CONTEXT, Mode
from toolgate.kernel.narration import tell
from toolgate.kernel.record import evolve
from toolgate.testing.conformance.rows import set_mode

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SEALER = Sealer([b"k" * 32])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    prepare(tmp_path / "toolgate.db")
    return tmp_path / "toolgate.db"


@pytest.fixture
def writer(path: Path) -> Iterator[Writer]:
    connection = connect(path, busy_s=1.0)
    yield Writer(connection, SEALER, Watch(SEALER.marks))
    connection.close()


def new_call(id: str, **fields: Any) -> WriteSet:
    call = Call(id=id, project="p", tool_name="t", context=DEFAULT_CONTEXT, created_at=NOW)
    claimed = evolve(call.to(Status.EXECUTING), started_at=NOW)
    events = (tell(claimed, "tool.started", {}),)
    return write_set_of(Change(project="p", at=NOW, call=claimed, events=events, **fields), SEALER)


def stored(path: Path) -> tuple[set[str], list[tuple[int, str]]]:
    """The ids of the calls there are, and the sequence of events with the call each tells of."""
    connection = sqlite3.connect(path)
    calls = {row[0] for row in connection.execute("SELECT call_id FROM tool_executions")}
    events = connection.execute("SELECT seq, call_id FROM events ORDER BY position").fetchall()
    connection.close()
    return calls, events


def test_a_refused_change_takes_nobody_along(writer: Writer, path: Path) -> None:
    writer.write(Group([new_call("taken")]))
    group = Group([new_call("a"), new_call("taken"), new_call("b")])
    writer.write(group)
    assert group.outcomes[0] is group.outcomes[2] is None
    assert isinstance(group.outcomes[1], ConflictError)
    assert stored(path) == ({"taken", "a", "b"}, [(1, "taken"), (2, "a"), (3, "b")])
    assert upkeep.verify_chains(path)[0].problem is None


def test_the_same_new_call_twice_in_a_group_is_written_once(writer: Writer, path: Path) -> None:
    group = Group([new_call("a"), new_call("a")])
    writer.write(group)
    assert group.outcomes[0] is None
    assert isinstance(group.outcomes[1], ConflictError)
    assert stored(path) == ({"a"}, [(1, "a")])


def test_a_change_the_database_cannot_hold_is_refused_alone(writer: Writer, path: Path) -> None:
    broken = new_call("broken")
    assert broken.insert is not None
    group = Group([new_call("a"), broken._replace(insert=(*broken.insert[:-1], "\ud800")), new_call("b")])
    writer.write(group)
    assert isinstance(group.outcomes[1], StoreError)
    assert stored(path) == ({"a", "b"}, [(1, "a"), (2, "b")])
    assert upkeep.verify_chains(path)[0].problem is None


def test_an_event_that_cannot_be_encoded_refuses_its_change_alone(writer: Writer, path: Path) -> None:
    bad = Change(project="p", at=NOW, events=(("tool.started", None, {"x": object()}, None),))
    group = Group([write_set_of(bad, SEALER), new_call("a")])
    writer.write(group)
    assert group.outcomes[0] is not None
    assert stored(path) == ({"a"}, [(1, "a")])


def test_what_another_process_wrote_is_noticed_before_the_next_group(writer: Writer, path: Path) -> None:
    writer.write(Group([new_call("mine")]))
    connection = connect(path, busy_s=1.0)
    theirs = Writer(connection, SEALER, Watch(SEALER.marks))
    locked = write_set_of(set_mode(Mode.LOCKDOWN), SEALER)
    theirs.write(Group([new_call("theirs"), locked]))
    connection.close()
    group = Group([new_call("late", mode_seen=0), new_call("fine", mode_seen=1)])
    writer.write(group)
    assert isinstance(group.outcomes[0], ModeChangedError)
    assert writer.brakes.mode is Mode.LOCKDOWN
    assert stored(path)[1] == [(1, "mine"), (2, "theirs"), (1, None), (3, "fine")]
    assert upkeep.verify_chains(path)[0].problem is None


def test_own_events_are_known_up_to_where_somebody_else_wrote(writer: Writer, path: Path) -> None:
    writer.write(Group([new_call("a")]))
    writer.write(Group([new_call("b"), new_call("c")]))
    assert writer.own == (1, 3)
    connection = connect(path, busy_s=1.0)
    Writer(connection, SEALER, Watch(SEALER.marks)).write(Group([new_call("theirs")]))
    connection.close()
    writer.write(Group([new_call("d")]))
    assert writer.own == (5, 5)


def test_a_mode_set_in_a_group_holds_for_the_changes_after_it(writer: Writer) -> None:
    locked = write_set_of(set_mode(Mode.LOCKDOWN), SEALER)
    group = Group([new_call("a", mode_seen=0), locked, new_call("b", mode_seen=0)])
    writer.write(group)
    assert group.outcomes[:2] == [None, None]
    assert isinstance(group.outcomes[2], ModeChangedError)


def test_after_a_transaction_was_taken_back_nothing_remembered_is_trusted(writer: Writer, path: Path) -> None:
    writer.write(Group([new_call("a")]))
    writer._connection.execute(
        "CREATE TEMP TRIGGER full BEFORE INSERT ON events BEGIN SELECT RAISE(ROLLBACK, 'x'); END"
    )
    with pytest.raises(sqlite3.Error):
        writer.write(Group([new_call("b")]))
    writer._connection.execute("DROP TRIGGER full")
    writer.write(Group([new_call("c")]))
    assert stored(path) == ({"a", "c"}, [(1, "a"), (2, "c")])
