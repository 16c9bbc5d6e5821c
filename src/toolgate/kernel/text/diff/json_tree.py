"""Compare two JSON documents and write the difference as a JSON Patch (RFC 6902) that always applies.

Values are equal when they are written alike, but for the order of keys: `true` is not `1`, and `1` is not
`1.0`. Documents are measured before anything else, so a deep, endless or much shared one ends in a marker.
Nothing here recurses. `kernel.diff_align` finds what arrays have in common.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

import orjson

from toolgate.errors import UsageError
from toolgate.kernel.text.canonical import MAX_DEPTH
from toolgate.kernel.text.diff.align import align
from toolgate.kernel.text.diff.result import DiffResult, DiffType, ratio

MAX_VALUES: Final = 1_000_000
"""How many values each document may hold, objects and arrays included."""

_MAX_BITS: Final = 14_000  # Python writes no longer integers as text
_BOXES: Final = (dict, list, tuple)
_TEXT: Final = frozenset([str])
_SURE: Final = frozenset([str, bool, type(None)])
_SURE_OR_BOX: Final = _SURE | {*_BOXES}
_ALIKE: Final = (frozenset([str, int, type(None)]), _SURE)

Operation = dict[str, Any]


class _Pair(NamedTuple):
    """Two objects, or two arrays, that stand at one place and differ."""

    path: str
    old: Any
    new: Any


class _TooLargeError(Exception):
    """The document is beyond what is compared."""


def diff_json(old: Any, new: Any, *, max_values: int = MAX_VALUES) -> DiffResult:
    """Return the JSON Patch that turns `old` into `new`, one operation per line; `[]` where they are equal.

    Raise `UsageError` for what is not JSON. Documents of more than `max_values` values, or nested deeper than
    250 levels, give a result that is `truncated`.
    """
    try:
        old_total, new_total = _measure(old, max_values), _measure(new, max_values)
    except _TooLargeError as error:
        text = f"[diff truncated: {error}; the whole document counts as replaced]\n"
        return DiffResult(DiffType.JSON_PATCH, text, additions=1, deletions=1, similarity=0.0, truncated=True)
    operations: list[Operation] = []
    removed = added = deletions = additions = 0
    for operation, before in _operations(old, new):
        operations.append(operation)
        if operation["op"] != "add":
            deletions += 1
            removed += _size(before)
        if operation["op"] != "remove":
            additions += 1
            added += _size(operation["value"])
    kept = old_total - removed
    return DiffResult(
        DiffType.JSON_PATCH,
        _write(operations),
        additions=additions,
        deletions=deletions,
        unchanged=max(kept - 1, 0),
        # The outermost value holds the others; where it is kept, that alone makes nothing similar.
        similarity=ratio(kept - 1, old_total - 1, new_total - 1) if kept else 0.0,
    )


def _write(operations: list[Operation]) -> str:
    if not operations:
        return "[]"
    return "[\n" + ",\n".join(f"  {_dump(operation)}" for operation in operations) + "\n]"


def _dump(operation: Operation) -> str:
    text = json.dumps(operation, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair can only be written escaped
        return json.dumps(operation)
    return text


def _measure(root: Any, max_values: int) -> int:
    """Return how many values a document is made of; raise UsageError where it is not JSON.

    A whole level is looked at in one go, and its size is known before it is unfolded.
    """
    level = _checked([root])
    total = 1
    for _ in range(MAX_DEPTH + 1):
        if not level:
            return total
        total += sum(map(len, level))
        if total > max_values:
            raise _TooLargeError(f"a document holds more than {max_values:,} values")
        objects = [box for box in level if isinstance(box, dict)]
        if not _TEXT.issuperset(map(type, chain.from_iterable(objects))):
            _check_keys(objects)
        arrays = [box for box in level if not isinstance(box, dict)]
        level = _checked([*chain.from_iterable(map(dict.values, objects)), *chain.from_iterable(arrays)])
    raise _TooLargeError(f"a document is nested deeper than {MAX_DEPTH} levels")


def _check_keys(objects: list[dict[Any, Any]]) -> None:
    for key in chain.from_iterable(objects):
        if not isinstance(key, str):
            raise UsageError(f"diff_json compares JSON, whose keys are text; one is a {type(key).__name__}.")


def _checked(items: list[Any]) -> list[Any]:
    """Return the objects and arrays among the items; raise UsageError if another one is not JSON."""
    kinds = set(map(type, items))
    if _SURE.issuperset(kinds):
        return []
    if kinds == {int}:
        items = [min(items), max(items)]
    for item in [item for item in items if type(item) not in _SURE_OR_BOX]:
        if not isinstance(item, _BOXES):
            _scalar(item)
    return [item for item in items if isinstance(item, _BOXES)]


def _scalar(value: Any) -> object:
    """Return what tells a scalar from all others; raise UsageError for what JSON cannot carry."""
    if value is None or isinstance(value, bool):
        return value, "constant"
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int) and value.bit_length() <= _MAX_BITS:
        return int.__index__(value), "integer"
    if isinstance(value, float) and math.isfinite(value):
        return float.__repr__(value), "float"  # the sign of zero shows only in text
    what = "a number JSON cannot carry" if isinstance(value, int | float) else f"a Python {type(value).__name__}"
    raise UsageError(f"diff_json compares JSON values; one is {what}. Convert it to text or null first.")


def _form(value: Any) -> object:
    """Return what is equal for two values exactly when they are written alike."""
    if type(value) is str:
        return value
    if not isinstance(value, _BOXES):
        return _scalar(value)
    try:
        return b"%b" % orjson.dumps(value, None, orjson.OPT_SORT_KEYS)  # a copy without the encoder's slack
    except orjson.JSONEncodeError:  # long integers and halves of surrogate pairs
        return json.dumps(value, sort_keys=True)


def _forms(items: Sequence[Any], others: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return what the items of two arrays are compared by: themselves where that is the same."""
    kinds = {*map(type, items), *map(type, others)}
    if any(kinds <= alone for alone in _ALIKE):
        return items, others
    return [_form(item) for item in items], [_form(item) for item in others]


def _is_same(old: Any, new: Any) -> bool:
    if type(old) is type(new) and old != new:
        return False
    # Equal in Python is not enough: there, true is 1, and lists and objects of them are equal too.
    return (type(old) is str and type(new) is str) or _form(old) == _form(new)


def _size(value: Any) -> int:
    """Return how many values a value is made of, itself included."""
    total, todo = 1, [value]
    for box in todo:
        if isinstance(box, _BOXES):
            total += len(box)
            todo += box.values() if isinstance(box, dict) else box
    return total


def _operations(old: Any, new: Any) -> Iterator[tuple[Operation, Any]]:
    """Yield each operation in the order in which they apply, with the value it removes."""
    if _is_same(old, new):
        return
    stack = [iter(_step("", old, new))]
    while stack:
        found = next(stack[-1], None)
        if found is None:
            stack.pop()
        elif isinstance(found, _Pair):
            stack.append(_inside(found))
        else:
            yield found


_Found = _Pair | tuple[Operation, Any]


def _step(path: str, old: Any, new: Any) -> list[_Found]:
    """Return how to change a value into another: by looking inside, or by replacing it."""
    both_objects = isinstance(old, dict) and isinstance(new, dict)
    if both_objects or (isinstance(old, list | tuple) and isinstance(new, list | tuple)):
        return [_Pair(path, old, new)]
    return [({"op": "replace", "path": path, "value": new}, old)]


def _inside(pair: _Pair) -> Iterator[_Found]:
    return _objects(pair) if isinstance(pair.old, dict) else _arrays(pair)


def _objects(pair: _Pair) -> Iterator[_Found]:
    path, old, new = pair
    for key in old:
        if key not in new:
            yield {"op": "remove", "path": f"{path}/{_escape(key)}"}, old[key]
    for key, value in new.items():
        if key not in old:
            yield {"op": "add", "path": f"{path}/{_escape(key)}", "value": value}, None
        elif not _is_same(old[key], value):
            yield from _step(f"{path}/{_escape(key)}", old[key], value)


def _arrays(pair: _Pair) -> Iterator[_Found]:
    """Yield changes from left to right: whatever stands left of an index is already as in `new`."""
    path, old, new = pair
    regions = align(*_forms(old, new))
    if regions is None:
        yield {"op": "replace", "path": path, "value": new}, old
        return
    for old_at, old_end, new_at, new_end in regions:
        both = min(old_end - old_at, new_end - new_at)
        for step in range(both):
            yield from _step(f"{path}/{new_at + step}", old[old_at + step], new[new_at + step])
        place = f"{path}/{new_at + both}"
        for at in range(old_at + both, old_end):
            yield {"op": "remove", "path": place}, old[at]
        for at in range(new_at + both, new_end):
            yield {"op": "add", "path": f"{path}/{at}", "value": new[at]}, None


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
