from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from toolgate.adapters.sealing import load
from toolgate.adapters.sqlite.read import Reader
from toolgate.kernel.approval import ApprovalStatus
from toolgate.ports.store import ApprovalQuery


def plan_of(database: Path, read: Callable[[Reader], list[object]]) -> str:
    """How SQLite goes about what is read last."""
    connection = sqlite3.connect(database)
    asked: list[str] = []
    connection.set_trace_callback(asked.append)
    assert read(Reader(connection, load(Path(f"{database}.key"), create=False))) == []
    connection.set_trace_callback(None)
    plan = " ".join(str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {asked[-1]}"))
    connection.close()
    return plan


def test_the_events_of_a_call_are_found_by_the_call_and_not_by_walking_the_chain(database: Path) -> None:
    plan = plan_of(database, lambda reader: [*reader.events("default", after=0, limit=10, call_id="c1")])
    assert "ix_events_call_id" in plan


def test_the_first_of_those_that_wait_are_found_without_sorting_them_all(database: Path) -> None:
    query = ApprovalQuery(project="default", status=ApprovalStatus.PENDING, limit=10)
    plan = plan_of(database, lambda reader: [*reader.approvals(query)])
    assert "ix_approval_requests_created_at_id" in plan
    assert "B-TREE" not in plan
