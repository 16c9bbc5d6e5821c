"""Hide what a call's own arguments hid when its handler says it again: in an error, an output, a progress message.

A password is known as one by its key. Once a handler quotes it in free text nothing about it looks secret, so
what was hidden in the arguments is remembered while that call's words are masked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import orjson

from toolgate.kernel.call import Call
from toolgate.kernel.text.masking import MASK, Masker

SHORTEST = 6
"""A shorter value would hit ordinary words."""


class CallMasker:
    """Masks as a masker does, and then what one call's arguments, and its undo data where it has some, hid."""

    __slots__ = ("_echo", "_masker")

    def __init__(self, masker: Masker, call: Call, undo: bytes = b"null") -> None:
        self._masker = masker
        kept = orjson.loads(undo)
        self._echo = Masker({*hidden(orjson.loads(call.arguments), call.shown), *hidden(kept, masker(kept))})

    def __call__(self, value: object) -> Any:
        return self._echo(self._masker(value))

    def of(self, value: object, encoded: bytes) -> Any:
        return self._echo(self._masker.of(value, encoded))

    def text(self, text: str) -> str:
        return self._echo.text(self._masker.text(text))


def hidden(value: Any, shown: Any) -> Iterator[str]:
    """Yield the texts and numbers in a value that its masked view does not show."""
    if isinstance(value, dict):
        views = shown if isinstance(shown, dict) else {}
        for key, item in value.items():
            yield from hidden(item, views.get(key, MASK))
    elif isinstance(value, list):
        seen = shown if isinstance(shown, list) and len(shown) == len(value) else [MASK] * len(value)
        for item, view in zip(value, seen, strict=True):
            yield from hidden(item, view)
    elif shown == MASK and value is not None and not isinstance(value, bool):
        text = str(value)
        if len(text) >= SHORTEST:
            yield text


def mask_alike(mask: Callable[[object], Any], value: Any) -> Any:
    """Mask a value, and what was hidden at one place of it, by what stands beside it there, at every other, too."""
    shown = mask(value)
    if shown == value:
        return shown
    return Masker({*hidden(value, shown), *_cut_out(value, shown)})(shown)


def _cut_out(value: Any, shown: Any) -> Iterator[str]:
    """Yield what of a text in a value its masked view leaves out, where it shows the rest: `-p***`."""
    if isinstance(value, dict) and isinstance(shown, dict):
        for key, item in value.items():
            yield from _cut_out(item, shown.get(key))
    elif isinstance(value, list) and isinstance(shown, list):
        for item, view in zip(value, shown, strict=True):
            yield from _cut_out(item, view)
    elif isinstance(value, str) and isinstance(shown, str) and shown.count(MASK) == 1:
        before, _, after = shown.partition(MASK)
        part = value[len(before) : len(value) - len(after)]
        if len(part) >= SHORTEST and f"{before}{part}{after}" == value:
            yield part
