"""How text that others wrote is shown to somebody who must decide: whole, unmoved, and with nothing hidden.

`reveal` makes what cannot be seen visible, `clip` says how much it leaves out, `as_lines` lays a JSON value out.
What is ordinary writing in any language stays exactly as it is.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import orjson

from toolgate.kernel.text.rendering.characters import Kind, find_unseen
from toolgate.kernel.text.rendering.lookalikes import find_look_alikes

MAX_LINES: Final = 80
MAX_CHARACTERS: Final = 8000
MAX_LINE: Final = 400
_NAMED: Final = 6  # how many characters a warning names


class Revealed(NamedTuple):
    """A text that is safe to show, and what a reader must be warned of."""

    text: str
    warnings: tuple[str, ...] = ()


class Clipped(NamedTuple):
    """A text with its middle left out; `hidden` is how many characters are."""

    text: str
    hidden: int = 0


def reveal(text: str) -> Revealed:
    """Return the text with every suspicious character replaced by its code, as `⟦U+202E⟧`, and the warnings."""
    found = suspicious(text)
    if not found:
        return Revealed(text)
    shown = "".join(f"⟦U+{ord(char):04X}⟧" if at in found else char for at, char in enumerate(text))
    return Revealed(shown, warn(text, found))


def suspicious(text: str) -> dict[int, Kind]:
    """Return the positions of characters that hide, move or imitate something."""
    found = dict(find_unseen(text))
    for index in find_look_alikes(text):
        found.setdefault(index, Kind.LOOK_ALIKE)
    return found


def warn(text: str, found: dict[int, Kind]) -> tuple[str, ...]:
    """Return one sentence for each kind of suspicious character, naming the first few."""
    return tuple(
        _sentence(kind, [text[at] for at in sorted(found) if found[at] is kind])
        for kind in Kind
        if kind in found.values()
    )


def _sentence(kind: Kind, characters: list[str]) -> str:
    distinct = list(dict.fromkeys(characters))
    named = ", ".join(f"U+{ord(char):04X} {unicodedata.name(char, 'unnamed')}" for char in distinct[:_NAMED])
    more = f" and {len(distinct) - _NAMED} more" if len(distinct) > _NAMED else ""
    count = len(characters)
    return f"{count} {kind} character{'s' if count > 1 else ''}: {named}{more}"


def clip(lines: Iterable[str], *, full: bool = False) -> Clipped:
    """Join lines, leaving out the middle of what is too much; it says how much, and nothing is lost with `full`."""
    every = list(lines)
    if full:
        return Clipped("\n".join(every))
    hidden = 0
    kept = []
    for line in every:
        short, lost = _clip_line(line)
        kept.append(short)
        hidden += lost
    head, tail = _ends(kept)
    if head + tail >= len(kept):
        return Clipped("\n".join(kept), hidden)
    left_out = every[head : len(every) - tail]
    lost = sum(map(len, left_out)) + len(left_out)
    hidden += lost - sum(_clip_line(line)[1] for line in left_out)
    note = f"⟦… {len(left_out):,} lines, {lost:,} characters hidden …⟧"
    return Clipped("\n".join([*kept[:head], note, *kept[len(kept) - tail :]]), hidden)


def _clip_line(line: str) -> tuple[str, int]:
    if len(line) <= MAX_LINE:
        return line, 0
    head, tail = MAX_LINE * 2 // 3, MAX_LINE // 4
    hidden = len(line) - head - tail
    return f"{line[:head]}⟦… {hidden:,} characters hidden …⟧{line[-tail:]}", hidden


def _ends(lines: list[str]) -> tuple[int, int]:
    """How many lines of the beginning and of the end fit."""
    head = _fitting(lines, MAX_LINES * 2 // 3, MAX_CHARACTERS * 2 // 3)
    rest = lines[head:]
    if len(lines) <= MAX_LINES and sum(map(len, lines)) <= MAX_CHARACTERS:
        return len(lines), 0
    return head, _fitting(rest[::-1], MAX_LINES // 4, MAX_CHARACTERS // 4)


def _fitting(lines: list[str], most: int, characters: int) -> int:
    count = 0
    for line in lines[:most]:
        characters -= len(line)
        if characters < 0:
            break
        count += 1
    return count


def as_lines(value: Any) -> tuple[list[str], tuple[str, ...]]:
    """Return a JSON value as indented lines with sorted keys, and its warnings.

    Suspicious characters stand as JSON escapes, so the lines are still exactly the value.
    """
    warnings: list[str] = []
    return _lines(value, "", warnings), tuple(dict.fromkeys(warnings))


def _lines(value: Any, indent: str, warnings: list[str]) -> list[str]:
    if isinstance(value, dict) and value:
        parts = [(f"{_quote(str(key), warnings)}: ", value[key]) for key in sorted(value, key=str)]
        return _nested("{", "}", parts, indent, warnings)
    if isinstance(value, list | tuple) and value:
        return _nested("[", "]", [("", item) for item in value], indent, warnings)
    return [_quote(value, warnings) if isinstance(value, str) else orjson.dumps(value, default=str).decode()]


def _nested(opening: str, closing: str, parts: list[tuple[str, Any]], indent: str, warnings: list[str]) -> list[str]:
    inner = indent + "  "
    lines = [opening]
    for number, (name, item) in enumerate(parts, 1):
        first, *rest = _lines(item, inner, warnings)
        block = [f"{inner}{name}{first}", *rest]
        block[-1] += "" if number == len(parts) else ","
        lines += block
    return [*lines, f"{indent}{closing}"]


def _quote(text: str, warnings: list[str]) -> str:
    found = suspicious(text)
    warnings += warn(text, found)
    return (
        '"' + "".join(_escape(char) if at in found else _ESCAPES.get(char, char) for at, char in enumerate(text)) + '"'
    )


_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
