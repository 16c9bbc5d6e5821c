"""What the store writes, written down: the same statements and rows can then be replayed without Toolgate.

The recording is the work of the raw baselines, so they write exactly what Toolgate wrote, with every row ready made.
"""

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import uuid_utils
from benchmarks.workload import EXPECTED, NAME

from toolgate.adapters.sqlite.store import SqliteStore
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change
from toolgate.kernel.context import DEFAULT_CONTEXT
from toolgate.kernel.narration import tell
from toolgate.kernel.record import evolve
from toolgate.kernel.text.masking import Masker

Statement = tuple[str, list[Any]]
Transaction = list[Statement]
"""Statements with all their rows, in the order in which they were given between BEGIN and COMMIT."""

ARGUMENTS = {"city": "Paris", "days": 3, "units": "metric"}
RESULT = b'{"city":"Paris","days":3,"units":"metric","temp":21.5}'
_mask = Masker()


class Recorder:
    """Stands in for the writer's connection and notes what is written through it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.transactions: list[Transaction] = []

    def execute(self, sql: str, values: Any = ()) -> sqlite3.Cursor:
        """Pass a statement on; writing ones are noted."""
        if sql.startswith("BEGIN"):
            self.transactions.append([])
        elif sql.startswith(("INSERT", "UPDATE")):
            self.transactions[-1].append((sql, [values]))
        return self._connection.execute(sql, values)

    def executemany(self, sql: str, rows: list[Any]) -> sqlite3.Cursor:
        """Pass a statement and its rows on and note them."""
        self.transactions[-1].append((sql, list(rows)))
        return self._connection.executemany(sql, rows)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def record(store: SqliteStore) -> Recorder:
    """Note everything this store writes from now on."""
    recorder = Recorder(store._connection)
    store._writer._connection = recorder  # type: ignore[assignment]  # stands in for it
    return recorder


def two_changes() -> Iterator[Change]:
    """Yield the two state changes of one call, made the way the pipeline makes them, masking included."""
    now = datetime.now(UTC)
    call = Call(
        id=str(uuid_utils.uuid7()),
        project="default",
        tool_name=NAME,
        context=DEFAULT_CONTEXT,
        created_at=now,
        arguments=b'{"city":"Paris","days":3,"units":"metric"}',
        shown=_mask(ARGUMENTS),
        definition_hash="0" * 64,
    )
    claimed = evolve(call.to(Status.EXECUTING), owner="bench", started_at=now, attempt=1, approved_by="policy:auto")
    events = (
        tell(call, "tool.invoked", {"payload_summary": call.shown, "behavior": None}),
        tell(claimed, "tool.started", {"approved_by": "policy:auto", "approval_id": None, "attempt": 1}),
    )
    yield Change(project="default", at=now, call=claimed, events=events)
    now = datetime.now(UTC)
    shown = _mask(EXPECTED)
    ended = evolve(claimed.to(Status.COMPLETED), completed_at=now, duration_ms=0.2, result=RESULT, shown_result=shown)
    done = tell(ended, "tool.completed", {"duration_ms": 0.2, "success": True, "output_summary": shown})
    yield Change(project="default", at=now, call=ended, expect=claimed.version, events=(done,))


@asynccontextmanager
async def opened(folder: Path, name: str) -> AsyncIterator[SqliteStore]:
    """Yield a store on a new file and close it."""
    store = SqliteStore(folder / f"{name}.db", owner=f"bench-{name}")
    try:
        yield store
    finally:
        await store.close()
