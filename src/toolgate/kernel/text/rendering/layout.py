"""JSON values laid out for a reader: indented lines with sorted keys, or one short line.

Suspicious characters stand as JSON escapes, so that what is shown is still exactly the value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import repeat
from typing import Any, Final

import orjson

from toolgate.kernel.text.lazy_pattern import lazy_pattern
from toolgate.kernel.text.rendering.characters import Kind
from toolgate.kernel.text.rendering.clear import is_clear
from toolgate.kernel.text.rendering.lookalikes import may_pretend
from toolgate.kernel.text.rendering.suspects import Revealed, few, suspicious, warn

_DEEPEST: Final = 64  # lines further inside are not indented further
_START: Final = 1000  # how much of a text is looked at to show less of it


def as_lines(value: Any) -> tuple[list[str], tuple[str, ...]]:
    """Return a JSON value as indented lines with sorted keys, and its warnings.

    Suspicious characters stand as JSON escapes, so the lines are still exactly the value.
    """
    shown = lay_out(value)
    return shown.text.split("\n"), shown.warnings


def lay_out(value: Any) -> Revealed:
    """Return what `as_lines` returns as one text.

    The encoder writes what holds nothing suspicious; only the rest is written text by text.
    """
    plain = _encode(value)
    if plain is not None:
        return Revealed(plain)
    warnings: dict[str, None] = {}

    def quote(text: str) -> str:
        found = suspicious(text)
        warnings.update(dict.fromkeys(warn(text, found)))
        return _quoted(text, found)

    lines = [f"{'  ' * min(depth, _DEEPEST)}{line}" for depth, line in _lines(value, quote)]
    return Revealed("\n".join(lines), few(warnings))


def brief(value: Any, width: int) -> str:
    """Return the beginning of a value's lines as one line, of at least `width` characters where it has so many."""
    shown: list[str] = []
    length = 0
    for _, line in _lines(value, _quote_start):
        shown.append(line)
        length += len(line) + 1
        if length > width:
            break
    return " ".join(shown)


def _encode(value: Any) -> str | None:
    """Return a value as the encoder writes it; None where it cannot, or where a text in it needs a closer look."""
    try:
        encoded = orjson.dumps(value, default=_default, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
    except TypeError:  # such as half a surrogate pair, a key that is no text, or too many levels
        return None
    text = encoded.decode()
    is_plain = _RARE_ESCAPE.search(text) is None and is_clear(text, encoded)
    return text if is_plain else None


_RARE_ESCAPE: Final = lazy_pattern(r"\\(?:[ubf]|r(?!\\n))")


def _default(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else str(value)


@dataclass(slots=True)
class _Level:
    """An object or array that is being written: what is left of it."""

    parts: Iterator[tuple[str, Any]]
    left: int
    closing: str


def _lines(value: Any, quote: Callable[[str], str]) -> Iterator[tuple[int, str]]:
    """Yield each line of a value with its depth. It keeps its own stack: a value may be nested deeper than calls."""
    levels: list[_Level] = []
    name = ""
    while True:
        if isinstance(value, dict) and value:
            yield len(levels), name + "{"
            levels.append(_Level(_entries(value, quote), len(value), "}"))
        elif isinstance(value, list | tuple) and value:
            yield len(levels), name + "["
            levels.append(_Level(zip(repeat(""), value, strict=False), len(value), "]"))
        else:
            yield len(levels), f"{name}{_leaf(value, quote)}{_comma(levels)}"
        while levels and not levels[-1].left:
            done = levels.pop()
            yield len(levels), done.closing + _comma(levels)
        if not levels:
            return
        levels[-1].left -= 1
        name, value = next(levels[-1].parts)


def _entries(value: dict[Any, Any], quote: Callable[[str], str]) -> Iterator[tuple[str, Any]]:
    return ((f"{quote(str(key))}: ", value[key]) for key in sorted(value, key=str))


def _comma(levels: list[_Level]) -> str:
    return "," if levels and levels[-1].left else ""


def _leaf(value: Any, quote: Callable[[str], str]) -> str:
    if isinstance(value, str):
        return quote(value)
    try:
        text = orjson.dumps(value, default=str).decode()
    except TypeError:  # a number of more digits than the encoder writes, or half a surrogate pair
        return str(value) if isinstance(value, int) else quote(str(value))
    return text if text.isascii() else quote(text)


def _quoted(text: str, found: dict[int, Kind]) -> str:
    parts = ['"']
    end = 0
    for at in sorted(found):
        if end < at:
            parts.append(_escaped(text[end:at]))
        parts.append(_code(text[at]))
        end = at + 1
    return "".join((*parts, _escaped(text[end:]), '"'))


def _escaped(text: str) -> str:
    if _ESCAPED.search(text) is None:
        return text
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    return text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


_ESCAPED: Final = lazy_pattern(r'["\\\n\r\t]')


@lru_cache(maxsize=8192)
def _code(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _quote_start(text: str) -> str:
    """Quote a text of which only the beginning will be shown.

    The beginning is judged as in the whole, or more strictly: only letters that may pretend to be others depend on
    what stands far from them. Of a word longer than any, so many characters are looked at.
    """
    if len(text) <= 2 * _START:
        return _quoted(text, suspicious(text))
    start = text[:_START]
    if not start.isascii() and may_pretend().search(start):
        space = _SPACE.search(text, _START, _LONGEST_WORD)
        start = text[: space.start() if space else _LONGEST_WORD]
    return _quoted(start, suspicious(start, start_of=text))


_SPACE: Final = lazy_pattern(r"\s")
_LONGEST_WORD: Final = 8192
