"""What a handler returned, as JSON: encoding, refusal of what has no JSON form, and summaries for events."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Collection, Mapping
from enum import Enum
from typing import Any

import orjson

from toolgate.errors import ToolOutputError

SUMMARY_BYTES = 2048
"""Masked arguments and outputs up to this size are quoted whole in events; larger ones are outlined."""

LARGE = 65_536
"""From this many bytes or characters on, working on a value takes milliseconds: it leaves the event loop."""

QUOTABLE = 4096
"""How long a text may always be before it counts as too long to be quoted."""

KEY_CHARACTERS = 64
"""How much of each key an outline quotes."""

_loads, _dumps = orjson.loads, orjson.dumps
SCALARS = frozenset({str, int, bool, type(None)})
_OPTIONS = orjson.OPT_PASSTHROUGH_DATACLASS  # the encoder crashes on a dataclass with an unset slot


def encode(value: object, *, what: str = "output") -> bytes:
    """Return `value` as JSON bytes; raise ToolOutputError where it has no JSON form.

    Dataclasses, datetimes, UUIDs, enums and Pydantic models are written as their JSON form. NaN,
    infinity, bytes, sets and other objects are refused rather than guessed at.
    """
    try:
        try:
            encoded = _dumps(value, _fallback, _OPTIONS)
        except TypeError:
            encoded = _write_odd_keys(value)
        is_lossy = b"null" in encoded and _hides_a_number(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolOutputError(
            f"The {what} cannot be written as JSON ({_why(error)}); return JSON types, dataclasses or models."
        ) from None
    if is_lossy:
        raise ToolOutputError(f"The {what} holds NaN or infinity, which JSON cannot carry; return None or text.")
    return b"%b" % encoded  # a copy that takes the room it needs: the encoder's own holds kilobytes of slack


def _write_odd_keys(value: object) -> bytes:
    encoded = _dumps(value, _fallback, _OPTIONS | orjson.OPT_NON_STR_KEYS)
    json.loads(encoded, object_pairs_hook=_unique)
    return encoded


def _unique(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("two keys of one mapping are the same text in JSON")


def jsonable(payload: Mapping[str, Any]) -> Mapping[str, Any] | bytes:
    """Return arguments as they are where they are JSON already, else in their JSON form where they have one."""
    try:
        return payload if _is_plain(payload) else encode(payload, what="payload")
    except (ToolOutputError, RecursionError):
        return payload  # what has no JSON form is refused where arguments are read


def _is_plain(value: object) -> bool:
    kind = type(value)
    if kind is dict:
        return all(map(_is_plain, value.values()))  # type: ignore[attr-defined]  # a dict
    if kind is list:
        return all(map(_is_plain, value))  # type: ignore[call-overload]  # a list
    return kind in SCALARS or kind is float


def plain(value: object) -> Any:
    """Return `value` rebuilt from JSON types only."""
    return None if value is None else _loads(encode(value))


def summarize(masked: Any, size: int) -> Any:
    """Return a masked value for an event: whole when small, outlined when `size` bytes are too many."""
    if size <= SUMMARY_BYTES:
        return masked
    if isinstance(masked, dict):
        return {
            "truncated": True,
            "bytes": size,
            "keys": [key[:KEY_CHARACTERS] for key in sorted(map(str, masked))[:32]],
        }
    return {"truncated": True, "bytes": size, "type": type(masked).__name__}


def quotable(encoded: bytes, room: int | None) -> bytes:
    """Return JSON without the texts that cannot stand in `room` bytes, not even in part; None: nobody knows the room.

    What is long is left out long before it is too long, and what is short never is, whatever the room: a short text
    may be the name of what stands beside it.
    """
    most = None if room is None else max(QUOTABLE, 2 * room)
    if most is None or len(encoded) <= most:
        return encoded
    return _dumps(_without_long(_loads(encoded), most))


def _without_long(value: Any, most: int) -> Any:
    if type(value) is dict:
        return {key: _without_long(item, most) for key, item in value.items()}
    if type(value) is list:
        return [_without_long(item, most) for item in value]
    return "" if type(value) is str and len(value) > most else value


def _fallback(value: object) -> object:
    if _is_dataclass(value):
        return _fields(value)
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    if isinstance(value, tuple):
        return list(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _is_dataclass(value: object) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _fields(value: Any) -> dict[str, object]:
    """Return the fields of a dataclass; those whose name starts with `_` are its own business."""
    names = (field.name for field in dataclasses.fields(value))
    return {name: getattr(value, name) for name in names if not name.startswith("_")}


def _why(error: BaseException) -> str:
    cause = error.__cause__ or error
    return "it is nested too deeply" if isinstance(cause, RecursionError) else str(cause)[:200]


def _hides_a_number(value: object) -> bool:
    """Whether a NaN or infinity stands anywhere in `value` (it was just encoded, so it is finite and acyclic)."""
    pending: list[object] = [value]
    while pending:
        item = pending.pop()
        if type(item) in SCALARS:
            continue
        if isinstance(item, float):
            if not math.isfinite(item):
                return True
        elif isinstance(item, Enum):
            pending.append(item.value)
        elif _is_dataclass(item):
            pending.extend(_fields(item).values())
        elif hasattr(item, "model_dump"):
            # Its JSON form writes some of them as None already, so both forms are looked at.
            pending += (item.model_dump(mode="json"), item.model_dump(mode="python"))
        elif isinstance(item, Mapping):
            pending += (*item, *item.values())
        elif isinstance(item, Collection) and not isinstance(item, str | bytes):
            pending.extend(item)
    return False
