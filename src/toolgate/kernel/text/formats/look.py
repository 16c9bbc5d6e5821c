"""Look at what a provider sent: dicts and SDK objects alike, by the names of their fields.

Foreign objects may fail in any way when looked at, so every look goes through `field`, `has` and `items`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

MAX_ITEMS: Final = 100_000
"""How many items of one list are looked at; a list that is longer has far too many calls in any case."""


class UnreadableError(Exception):
    """Something that cannot be read as a tool call, in words."""


class Found(NamedTuple):
    """One item that may be a call. `obstacle` is why a call in it must not run, whatever it says."""

    item: Any
    is_content: bool = False
    """It stands among texts and other content, so an item of another kind is not a broken call."""
    obstacle: tuple[str, str] | None = None
    """A reason and its text."""
    is_piece: bool = False
    """It is a part of a call that is still being written."""


def field(item: Any, name: str) -> Any:
    """Return a key of a mapping or an attribute of an object; None where there is none."""
    try:
        return item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)
    except Exception as error:  # noqa: BLE001  # an object of somebody else's: looking may run anything
        raise UnreadableError(f"its `{name}` cannot be read ({type(error).__name__})") from None


def has(item: Any, name: str) -> bool:
    """Whether there is such a key or attribute, be it None."""
    try:
        return name in item if isinstance(item, Mapping) else hasattr(item, name)
    except Exception as error:  # noqa: BLE001  # as in `field`
        raise UnreadableError(f"its `{name}` cannot be read ({type(error).__name__})") from None


def items(value: Any) -> list[Any] | None:
    """Return the items of a sequence or iterator; None for text, named tuples and everything else."""
    if not isinstance(value, Sequence | Iterator) or isinstance(value, str | bytes | bytearray):
        return None
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return None
    try:
        return list(islice(value, MAX_ITEMS))
    except Exception as error:  # noqa: BLE001  # an iterator of somebody else's may raise anything
        raise UnreadableError(f"its items cannot be read ({type(error).__name__})") from None
