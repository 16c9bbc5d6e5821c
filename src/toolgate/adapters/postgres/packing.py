"""Rows as parameters of `toolgate_commit`: a text for each column, which the server takes apart.

The driver would look at every value of an array twice, which costs more than all the rest. Values are kept apart by
control characters; a column that may hold any text is written as JSON, which has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from toolgate.adapters.sql.rows import APPROVAL_COLUMNS, CALL_COLUMNS, CHANGING, PARAMS, UNDO_COLUMNS, Row

_NEXT, _NULL = "\x1f", "\x1e"
_BYTES = frozenset({"sealed_params", "sealed_result", "sealed_data", "content"})
_NUMBERS = frozenset({"change", "version", "expected", "execution_time_ms", "requires_approval"})
_QUOTED = frozenset({"approval_message", "decided_by_name", "name"})


class Packing:
    """The columns of one table's rows, in the order in which the function takes them.

    Each row begins with the number of the change it belongs to: those of one that is refused are left out.
    """

    __slots__ = ("_columns",)

    def __init__(self, *columns: str) -> None:
        self._columns = ("change", *columns)

    def pack(self, rows: Sequence[Row]) -> list[str]:
        """The rows as one parameter; empty where there are none. ValueError where a text cannot be kept."""
        if not rows:
            return []
        return [_pack(column, values) for column, values in zip(self._columns, zip(*rows, strict=True), strict=True)]


def _pack(column: str, values: Sequence[Any]) -> str:
    missing = values.count(None)
    if missing == len(values):
        return (_NEXT + _NULL) * missing
    if column in _BYTES:
        return _NEXT + _NEXT.join([_NULL if value is None else value.hex() for value in values])
    if column in _NUMBERS:
        return _NEXT + _NEXT.join([_NULL if value is None else str(value) for value in values])
    if column in _QUOTED:
        return _NEXT + _NEXT.join([_NULL if value is None else orjson.dumps(value).decode() for value in values])
    # The first value follows a mark, too, so that a single empty text is not taken for no value at all.
    text = _NEXT + _NEXT.join([_NULL if value is None else value for value in values] if missing else values)
    if text.count(_NEXT) != len(values) or text.count(_NULL) != missing:
        raise ValueError("text holds a control character that PostgreSQL's rows are packed with")
    return text


UNTOLD = Packing("project_id", "call_id", "names")
RUNS = Packing("id", "project_id", "name", "created_at")
INSERTS = Packing(*CALL_COLUMNS)
UPDATES = Packing(*CALL_COLUMNS[CHANGING:], "project_id", "id", "expected")
CALL_PARAMS = Packing(*CALL_COLUMNS[PARAMS:CHANGING], "project_id", "id")
APPROVALS = Packing(*APPROVAL_COLUMNS)
UNDOS = Packing(*UNDO_COLUMNS)
EVENTS = Packing("project_id", "type", "at", "call_id", "before", "after", "content")
