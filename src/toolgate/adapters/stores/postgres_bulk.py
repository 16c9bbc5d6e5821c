"""Many rows in one statement: an array for each column, unfolded by the server.

Every value goes over as text, number, truth value or bytes and is cast by the statement, so the driver need not ask
the server about types, which a pooler would not allow it to remember.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolgate.adapters.stores.rows import (
    APPROVAL_COLUMNS,
    CALL_COLUMNS,
    CHANGING,
    GRANT_COLUMNS,
    PARAMS,
    UNDO_COLUMNS,
    Row,
)

_UUID, _MOMENT, _JSON = "{}::uuid", "{}::timestamp AT TIME ZONE 'UTC'", "{}::json"
_TEXT_CASTS = {
    **dict.fromkeys(("id", "user_id", "pipeline_run_id", "approval_id", "action_id", "decided_by"), _UUID),
    **dict.fromkeys(
        ("created_at", "started_at", "approved_at", "completed_at", "due_at", "decided_at", "expires_at", "revoked_at"),
        _MOMENT,
    ),
    **dict.fromkeys(("tool_params", "result", "detail"), _JSON),
    "error": "left({}, 1000)",
    "error_type": "left({}, 100)",
}
_KINDS = {
    **dict.fromkeys(("sealed_params", "sealed_result", "sealed_data", "body", "prev", "hash"), "bytea"),
    **dict.fromkeys(("version", "expected", "uses_left"), "int"),
    **dict.fromkeys(("seq", "amount", "execution_time_ms"), "bigint"),
    "requires_approval": "bool",
}


def _kind(table: str, column: str) -> str:
    if table == "rate_uses" and column == "at":
        return "float8"
    return _KINDS.get(column, "text")


def _value(table: str, column: str) -> str:
    name = f"v.{column}"
    if column == "execution_time_ms":
        return f"least({name}, 2147483647)::int"
    if table == "approval_requests" and column == "status":
        return f"{name}::approval_status"
    if table == "events" and column == "at":
        return _MOMENT.format(name)
    if _kind(table, column) == "text" and column in _TEXT_CASTS:
        return _TEXT_CASTS[column].format(name)
    return name


def _unfolded(table: str, columns: Sequence[str], first: int = 1) -> str:
    arrays = ", ".join(f"${number}::{_kind(table, column)}[]" for number, column in enumerate(columns, first))
    return f"unnest({arrays}) AS v({', '.join(columns)})"


def inserting(table: str, columns: Sequence[str], *, then: str = "", first: int = 1) -> str:
    """Rows that are inserted; `then` is what follows, `first` the number of the first parameter."""
    values = ", ".join(_value(table, column) for column in columns)
    return f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values} FROM {_unfolded(table, columns, first)}{then}"


def updating(table: str, columns: Sequence[str], keys: Sequence[str], *, where: str, then: str = "") -> str:
    """Rows of new values, followed by the keys of the row they belong to."""
    sets = ", ".join(f"{column}={_value(table, column)}" for column in columns)
    return f"UPDATE {table} AS t SET {sets} FROM {_unfolded(table, [*columns, *keys])} WHERE {where}{then}"


def columns_of(rows: Sequence[Row]) -> list[list[Any]]:
    """The same rows as a list for each column."""
    return [list(column) for column in zip(*rows, strict=True)]


_EVENT_COLUMNS = ("project_id", "seq", "type", "at", "call_id", "body", "prev", "hash")
_SAME_ROW = "t.project_id=v.project_id AND t.id=v.id::uuid"
_WHO = " RETURNING {}project_id, {}call_id"

INSERT_CALLS = inserting("tool_executions", CALL_COLUMNS, then=" ON CONFLICT DO NOTHING" + _WHO.format("", ""))
UPDATE_CALLS = updating(
    "tool_executions",
    CALL_COLUMNS[CHANGING:],
    ("project_id", "id", "expected"),
    where=f"{_SAME_ROW} AND t.version=v.expected",
    then=_WHO.format("t.", "t."),
)
UPDATE_PARAMS = updating("tool_executions", CALL_COLUMNS[PARAMS:CHANGING], ("project_id", "id"), where=_SAME_ROW)
PUT_APPROVALS = inserting(
    "approval_requests",
    APPROVAL_COLUMNS,
    then=" ON CONFLICT (id) DO UPDATE SET " + ", ".join(f"{name}=excluded.{name}" for name in APPROVAL_COLUMNS[9:]),
)
PUT_UNDOS = inserting(
    "undo_records",
    UNDO_COLUMNS,
    then=" ON CONFLICT (project_id, action_id) DO UPDATE SET "
    + ", ".join(f"{name}=excluded.{name}" for name in UNDO_COLUMNS[2:]),
)
PUT_GRANTS = inserting(
    "grants",
    GRANT_COLUMNS,
    then=" ON CONFLICT (id) DO UPDATE SET " + ", ".join(f"{name}=excluded.{name}" for name in GRANT_COLUMNS[1:]),
)
INSERT_RUNS = inserting("runs", ("id", "project_id", "name", "created_at"), then=" ON CONFLICT DO NOTHING")
INSERT_RATES = inserting("rate_uses", ("project_id", "key", "at", "amount"))
PUT_EVENTS = (
    f"WITH told AS ({inserting('events', _EVENT_COLUMNS)}) "
    + inserting("chain_heads", ("project_id", "seq", "hash"), first=len(_EVENT_COLUMNS) + 1)
    + " ON CONFLICT (project_id) DO UPDATE SET seq=excluded.seq, hash=excluded.hash"
)
"""Events, and the heads of the chains they end."""
