"""The migrations make exactly the tables of tables.py, and can be walked in both directions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, create_engine, inspect

from toolgate.adapters.sql import migrate
from toolgate.adapters.sql.migrations.versions import r0008_leaves
from toolgate.adapters.sql.rows import EVENT_COLUMNS, event_of
from toolgate.adapters.sql.tables import metadata
from toolgate.adapters.sql.versions import HEAD
from toolgate.errors import StoreError
from toolgate.kernel.approval import ApprovalStatus
from toolgate.kernel.event import Event, verify

REVISIONS = migrate.revisions()

EXECUTION_COLUMNS = (
    "id user_id project_id session_id approval_id tool_name tool_params result risk_level requires_approval status "
    "error error_type execution_time_ms created_at completed_at approved_at"
).split()
EXECUTION_INDEXES = {"tool_name", "status", "created_at"}
"""The project is the first column of the key; nobody looks for calls by their user alone."""
APPROVAL_COLUMNS = {
    "id": ("CHAR(32)", False),
    "pipeline_run_id": ("CHAR(32)", True),
    "action_id": ("CHAR(32)", False),
    "tool_name": ("TEXT", False),
    "approval_message": ("TEXT", False),
    "status": ("VARCHAR(8)", False),
    "decided_by": ("CHAR(32)", True),
    "decided_at": ("DATETIME", True),
    "created_at": ("DATETIME", False),
}


@pytest.fixture
def blank(tmp_path: Path) -> Iterator[Connection]:
    engine = create_engine(f"sqlite:///{tmp_path}/blank.db")
    with engine.connect() as connection:
        yield connection
    engine.dispose()


@pytest.fixture
def migrated(empty_database: Path) -> Iterator[Connection]:
    engine = create_engine(f"sqlite:///{empty_database}")
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def tables(connection: Connection) -> set[str]:
    return set(inspect(connection).get_table_names())


def indexed(connection: Connection, table: str) -> set[str]:
    found = inspect(connection).get_indexes(table)
    return {index["column_names"][0] for index in found if len(index["column_names"]) == 1 and index["column_names"][0]}


def test_the_revision_this_version_needs_is_the_newest() -> None:
    assert REVISIONS[-1] == HEAD
    assert len(set(REVISIONS)) == len(REVISIONS)


def test_the_migrated_schema_is_the_schema_of_the_tables(migrated: Connection) -> None:
    context = MigrationContext.configure(migrated, opts={"compare_type": True, "compare_server_default": True})
    assert compare_metadata(context, metadata) == []


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_revision_can_be_gone_back_from_and_forward_again(blank: Connection, revision: str) -> None:
    migrate.upgrade(blank, revision)
    assert migrate.current(blank) == revision
    migrate.downgrade(blank, "base")
    assert migrate.current(blank) is None
    assert tables(blank) <= {"alembic_version"}
    migrate.upgrade(blank)
    assert migrate.current(blank) == HEAD
    migrate.upgrade(blank)
    assert set(metadata.tables) <= tables(blank)


def put_old_events(connection: Connection, count: int, *, base: int = 0) -> list[bytes]:
    """Events as revision 0007 kept them, after those that retention removed; returns their hashes."""
    prev = hashlib.sha256(b"toolgate-chain-1\x00p").digest() if not base else b"b" * 32
    base_hash, hashes = prev if base else None, []
    for seq in range(base + 1, base + count + 1):
        data = {"tool_name": "pay", "attempt": 1, "payload_summary": {"iban": f"DE{seq}"}, "reason": None}
        told = {"at": "2026-01-01T00:00:00Z", "call_id": "c", "data": data, "project": "p", "seq": seq}
        body = orjson.dumps({**told, "type": "tool.started"})
        digest = hashlib.sha256(prev + body).digest()
        row = (seq, "p", seq, "tool.started", "2026-01-01 00:00:00.000000", "c", body, prev, digest)
        connection.exec_driver_sql("INSERT INTO events VALUES (?,?,?,?,?,?,?,?,?)", row)
        prev = digest
        hashes.append(digest)
    head = ("p", base + count, prev, base, base_hash)
    connection.exec_driver_sql("INSERT INTO chain_heads VALUES (?,?,?,?,?)", head)
    connection.commit()
    return hashes


def found(connection: Connection) -> list[Event]:
    rows = connection.exec_driver_sql(f"SELECT {', '.join(EVENT_COLUMNS)} FROM events ORDER BY seq").fetchall()
    return [event_of(row) for row in rows]


@pytest.mark.parametrize("base", [0, 7])
def test_events_become_leaves_and_can_go_back(blank: Connection, base: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(r0008_leaves, "_PAGE", 2)
    migrate.upgrade(blank, "0007")
    hashes = put_old_events(blank, 5, base=base)
    migrate.upgrade(blank)
    events = found(blank)
    assert verify(events, after=(base, b"b" * 32) if base else None) == 5
    assert events[-1].hash == blank.exec_driver_sql("SELECT hash FROM chain_heads").scalar()
    assert events[0].data["payload_summary"] == {"iban": f"DE{base + 1}"}
    assert b"iban" not in events[0].frame
    assert (events[0].data["attempt"], b"attempt" in events[0].frame) == (1, True)
    migrate.downgrade(blank, "0007")
    assert blank.exec_driver_sql("SELECT count(*) FROM events").scalar() == 5
    migrate.upgrade(blank)
    assert verify(found(blank), after=(base, b"b" * 32) if base else None) == 5
    assert len({*hashes, *(event.hash for event in found(blank))}) == 10


@pytest.mark.parametrize("revision", ["0007", "0008"])
def test_a_broken_chain_is_not_made_anew(blank: Connection, revision: str) -> None:
    migrate.upgrade(blank, "0007")
    put_old_events(blank, 3)
    migrate.upgrade(blank, revision)
    column = "body" if revision == "0007" else "frame"
    blank.exec_driver_sql(f"UPDATE events SET {column}=CAST(replace({column}, 'pay', 'buy') AS BLOB) WHERE seq=2")
    with pytest.raises(StoreError, match="event 2 of 'p'"):
        migrate.upgrade(blank) if revision == "0007" else migrate.downgrade(blank, "0007")


def test_a_gap_in_the_events_is_found_before_they_become_leaves(blank: Connection) -> None:
    migrate.upgrade(blank, "0007")
    put_old_events(blank, 3)
    blank.exec_driver_sql("DELETE FROM events WHERE seq=2")
    with pytest.raises(StoreError, match="Event 2 of project 'p' is missing"):
        migrate.upgrade(blank)


@pytest.mark.parametrize(
    "change",
    ["DELETE FROM events WHERE seq=3", "UPDATE chain_heads SET hash=zeroblob(32)", "UPDATE chain_heads SET seq=4"],
)
@pytest.mark.parametrize("revision", ["0007", "0008"])
def test_a_chain_that_does_not_end_at_its_head_is_not_made_anew(blank: Connection, revision: str, change: str) -> None:
    migrate.upgrade(blank, "0007")
    put_old_events(blank, 3)
    migrate.upgrade(blank, revision)
    blank.exec_driver_sql(change)
    with pytest.raises(StoreError, match="does not end at its recorded head"):
        migrate.upgrade(blank) if revision == "0007" else migrate.downgrade(blank, "0007")


def test_a_last_event_that_was_written_anew_is_noticed(blank: Connection) -> None:
    migrate.upgrade(blank, "0007")
    *_, before, _ = put_old_events(blank, 3)
    body = orjson.dumps({"at": "2026-01-01T00:00:00Z", "call_id": "c", "data": {}, "project": "p", "seq": 3})
    forged = (body, hashlib.sha256(before + body).digest())
    blank.exec_driver_sql("UPDATE events SET body=?, hash=? WHERE seq=3", forged)
    with pytest.raises(StoreError, match="does not end at its recorded head"):
        migrate.upgrade(blank)


@pytest.mark.parametrize("body", [b"no JSON", b"[1]", b"{}", "text"])
def test_what_is_no_event_is_refused_with_its_place(blank: Connection, body: bytes | str) -> None:
    migrate.upgrade(blank, "0007")
    *_, before, _ = put_old_events(blank, 3)
    digest = hashlib.sha256(before + (body if isinstance(body, bytes) else body.encode())).digest()
    blank.exec_driver_sql("UPDATE events SET body=?, hash=? WHERE seq=3", (body, digest))
    with pytest.raises(StoreError, match="event 3 of 'p': it cannot be read"):
        migrate.upgrade(blank)


def test_a_revision_of_a_newer_version_is_refused(blank: Connection) -> None:
    migrate.upgrade(blank)
    blank.exec_driver_sql("UPDATE alembic_version SET version_num='9999'")
    with pytest.raises(StoreError, match="newer Toolgate"):
        migrate.upgrade(blank)


def test_tool_executions_has_the_documented_columns_and_indexes(migrated: Connection) -> None:
    columns = {column["name"]: column for column in inspect(migrated).get_columns("tool_executions")}
    assert [name for name in EXECUTION_COLUMNS if name not in columns] == []
    assert indexed(migrated, "tool_executions") >= EXECUTION_INDEXES
    lengths = {name: getattr(columns[name]["type"], "length", None) for name in ("tool_name", "error", "error_type")}
    assert lengths == {"tool_name": 128, "error": 1000, "error_type": 100}


def test_approval_requests_has_the_documented_columns_and_indexes(migrated: Connection) -> None:
    found = {
        column["name"]: (str(column["type"]), column["nullable"])
        for column in inspect(migrated).get_columns("approval_requests")
    }
    assert {name: found.get(name) for name in APPROVAL_COLUMNS} == APPROVAL_COLUMNS
    assert indexed(migrated, "approval_requests") >= {"pipeline_run_id", "status"}
    assert inspect(migrated).get_pk_constraint("approval_requests")["constrained_columns"] == ["id"]
    [reference] = inspect(migrated).get_foreign_keys("approval_requests")
    assert (reference["constrained_columns"], reference["referred_table"]) == (
        ["project_id", "pipeline_run_id"],
        "runs",
    )


def test_approval_statuses_are_stored_in_the_documented_words() -> None:
    kind = metadata.tables["approval_requests"].c.status.type
    assert kind.enums == [status.value for status in ApprovalStatus] == ["pending", "approved", "denied", "expired"]  # type: ignore[attr-defined]


def test_no_column_that_holds_text_may_turn_it_into_a_number(migrated: Connection) -> None:
    kinds = {
        (table, column["name"]): str(column["type"])
        for table in metadata.tables
        for column in inspect(migrated).get_columns(table)
    }
    assert [where for where, kind in kinds.items() if kind in ("JSON", "NUMERIC")] == []
