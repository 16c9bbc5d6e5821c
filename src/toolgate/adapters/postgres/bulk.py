"""Many rows in one statement: an array for each column, unfolded by the server. Calls, approvals, undo records and
their events are written by `toolgate_commit`; this is for what few changes write besides.

Every value goes over as text, number, truth value or bytes and is cast by the statement, so the driver need not ask
the server about types, which a pooler would not allow it to remember.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolgate.adapters.sql.delegation_rows import DELEGATION_COLUMNS
from toolgate.adapters.sql.rows import (
    EVENT_COLUMNS,
    GRANT_COLUMNS,
    LARGE_PARAMS_COLUMNS,
    LARGE_UNDO_COLUMNS,
    Row,
)
from toolgate.adapters.sql.write_set import Beside

_MOMENT, _JSON = "{}::timestamp AT TIME ZONE 'UTC'", "{}::json"
_TIMES = (
    "created_at", "started_at", "approved_at", "completed_at", "due_at", "decided_at", "expires_at", "revoked_at",
    "ended_at", "held_until",
)  # fmt: skip
_TEXT_CASTS = {
    **dict.fromkeys(_TIMES, _MOMENT),
    **dict.fromkeys(("tool_params", "result", "detail"), _JSON),
    "error": "left({}, 1000)",
    "error_type": "left({}, 100)",
}
_KINDS = {
    **dict.fromkeys(("sealed_params", "sealed_result", "sealed_data", "frame", "content", "prev", "hash"), "bytea"),
    **dict.fromkeys(("version", "expected", "uses_left"), "int"),
    **dict.fromkeys(("seq", "amount", "execution_time_ms"), "bigint"),
    **dict.fromkeys(("id", "user_id", "pipeline_run_id", "approval_id", "action_id", "decided_by"), "uuid"),
    "requires_approval": "bool",
}
"""Keys go over as what they are: a cast in a condition would count as leaky and, under row-level security, keep the
index from being used."""


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


class Bulk:
    """A statement for any number of rows, and how those become its parameters."""

    __slots__ = ("sql",)

    def __init__(self, sql: str) -> None:
        self.sql = sql

    def values(self, rows: Sequence[Row]) -> list[Any]:
        """The rows as parameters, one for each column."""
        return columns_of(rows)


def _unfolded(table: str, columns: Sequence[str], first: int) -> str:
    arrays = [f"${number}::{_kind(table, column)}[]" for number, column in enumerate(columns, first)]
    return f"unnest({', '.join(arrays)}) AS v({', '.join(columns)})"


def inserting(table: str, columns: Sequence[str], *, then: str = "", first: int = 1) -> Bulk:
    """Rows that are inserted; `then` is what follows, `first` the number of the first parameter."""
    values = ", ".join(_value(table, column) for column in columns)
    rows = _unfolded(table, columns, first)
    return Bulk(f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values} FROM {rows}{then}")


def updating(table: str, columns: Sequence[str], keys: Sequence[str], *, where: str) -> Bulk:
    """Rows of new values, followed by the keys of the row they belong to."""
    sets = ", ".join(f"{column}={_value(table, column)}" for column in columns)
    rows = _unfolded(table, (*columns, *keys), 1)
    return Bulk(f"UPDATE {table} AS t SET {sets} FROM {rows} WHERE {where}")


def deleting(table: str, keys: Sequence[str]) -> Bulk:
    """Rows that are deleted, given by their keys."""
    where = " AND ".join(f"t.{key}=v.{key}" for key in keys)
    return Bulk(f"DELETE FROM {table} AS t USING {_unfolded(table, keys, 1)} WHERE {where}")


def columns_of(rows: Sequence[Row]) -> list[list[Any]]:
    """The same rows as a list for each column."""
    return [list(column) for column in zip(*rows, strict=True)]


PUT_GRANTS = inserting(
    "grants",
    GRANT_COLUMNS,
    then=" ON CONFLICT (id) DO UPDATE SET " + ", ".join(f"{name}=excluded.{name}" for name in GRANT_COLUMNS[1:]),
)
PUT_DELEGATIONS = inserting(
    "delegations",
    DELEGATION_COLUMNS,
    then=" ON CONFLICT (id) DO UPDATE SET " + ", ".join(f"{name}=excluded.{name}" for name in DELEGATION_COLUMNS[1:]),
)
PUT_KEYS = inserting(
    "effect_keys",
    ("project_id", "effect_key", "call_id", "held_until"),
    then=" ON CONFLICT (project_id, effect_key) DO UPDATE SET call_id=excluded.call_id, held_until=excluded.held_until",
)
PASS_KEYS = updating(
    "effect_keys",
    ("call_id", "held_until"),
    ("project_id", "effect_key", "held_by"),
    where="t.project_id=v.project_id AND t.effect_key=v.effect_key AND t.call_id=v.held_by",
)
FREE_KEYS = deleting("effect_keys", ("project_id", "effect_key", "call_id"))
_REPLACE = " ON CONFLICT (project_id, action_id) DO UPDATE SET "
_PARAMS = f"{_REPLACE}tool_params=excluded.tool_params, sealed_params=excluded.sealed_params"
BESIDE = {
    Beside.PUT_PARAMS: inserting("large_params", LARGE_PARAMS_COLUMNS, then=_PARAMS),
    Beside.DROP_PARAMS: deleting("large_params", LARGE_PARAMS_COLUMNS[:2]),
    Beside.PUT_UNDO: inserting("large_undo", LARGE_UNDO_COLUMNS, then=f"{_REPLACE}sealed_data=excluded.sealed_data"),
    Beside.DROP_UNDO: deleting("large_undo", LARGE_UNDO_COLUMNS[:2]),
}
HAS_LARGE_UNDO = "SELECT 1 FROM large_undo WHERE project_id=$1 AND action_id=$2"
FREE_UNDO = (
    "WITH gone AS (DELETE FROM undo_records WHERE expires_at<=$1 RETURNING project_id, action_id) "
    "DELETE FROM large_undo AS t USING gone WHERE t.project_id=gone.project_id AND t.action_id=gone.action_id"
)
"""Removes undo data whose time is over. One statement: a record that was just given more time keeps its data."""
INSERT_RATES = inserting("rate_uses", ("project_id", "key", "at", "amount"))
INSERT_EVENTS = inserting("events", EVENT_COLUMNS)
_PUT_HEADS = inserting("chain_heads", ("project_id", "seq", "hash"), first=len(EVENT_COLUMNS) + 1)
PUT_EVENTS = (
    f"WITH told AS ({INSERT_EVENTS.sql}) {_PUT_HEADS.sql} "
    "ON CONFLICT (project_id) DO UPDATE SET seq=excluded.seq, hash=excluded.hash"
)
"""Events, and the heads of the chains they end."""
