"""What a handler returned, as JSON: encoding, refusal of what has no JSON form, and summaries for events."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import orjson

from toolgate.errors import ToolOutputError

SUMMARY_BYTES = 2048
"""Masked arguments and outputs up to this size are quoted whole in events; larger ones are outlined."""

_loads = orjson.loads
_OPTIONS = orjson.OPT_NON_STR_KEYS


def encode(value: object, *, what: str = "output") -> bytes:
    """Return `value` as JSON bytes; raise ToolOutputError where it has no JSON form.

    Dataclasses, datetimes, UUIDs, enums and Pydantic models are written as their JSON form. NaN,
    infinity, bytes, sets and other objects are refused rather than guessed at.
    """
    try:
        encoded = orjson.dumps(value, _fallback, _OPTIONS)
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolOutputError(
            f"The {what} cannot be written as JSON ({_why(error)}); return JSON types, dataclasses or models."
        ) from None
    if b"null" in encoded and _hides_a_number(value):
        raise ToolOutputError(f"The {what} holds NaN or infinity, which JSON cannot carry; return None or text.")
    return encoded


def plain(value: object) -> Any:
    """Return `value` rebuilt from JSON types only."""
    return None if value is None else _loads(encode(value))


def summarize(masked: Any, size: int) -> Any:
    """Return a masked value for an event: whole when small, outlined when `size` bytes are too many."""
    if size <= SUMMARY_BYTES:
        return masked
    if isinstance(masked, dict):
        return {"truncated": True, "bytes": size, "keys": sorted(map(str, masked))[:32]}
    return {"truncated": True, "bytes": size, "type": type(masked).__name__}


def _fallback(value: object) -> object:
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    if isinstance(value, tuple):
        return list(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _why(error: BaseException) -> str:
    cause = error.__cause__ or error
    return "it is nested too deeply" if isinstance(cause, RecursionError) else str(cause)[:200]


def _hides_a_number(value: object) -> bool:
    """Whether a NaN or infinity stands anywhere in `value` (it was just encoded, so it is finite and acyclic)."""
    pending: list[object] = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, float):
            if not math.isfinite(item):
                return True
        elif isinstance(item, dict):
            pending.extend(item)
            pending.extend(item.values())
        elif isinstance(item, list | tuple):
            pending.extend(item)
        elif dataclasses.is_dataclass(item) and not isinstance(item, type):
            pending.extend(getattr(item, field.name) for field in dataclasses.fields(item))
        elif hasattr(item, "model_dump"):
            pending.append(item.model_dump(mode="json"))
    return False
