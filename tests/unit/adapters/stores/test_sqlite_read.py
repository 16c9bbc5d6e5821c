from __future__ import annotations

import sqlite3
from pathlib import Path

from toolgate.adapters.stores.sealing import load
from toolgate.adapters.stores.sqlite_read import Reader


def test_the_events_of_a_call_are_found_by_the_call_and_not_by_walking_the_chain(database: Path) -> None:
    connection = sqlite3.connect(database)
    asked: list[str] = []
    connection.set_trace_callback(asked.append)
    reader = Reader(connection, load(Path(f"{database}.key"), create=False))
    assert reader.events("default", after=0, limit=10, call_id="c1") == []
    connection.set_trace_callback(None)
    plan = " ".join(str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {asked[-1]}"))
    connection.close()
    assert "ix_events_call_id" in plan
