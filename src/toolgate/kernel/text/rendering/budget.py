"""How much an approver is shown at once, and how the rest is marked and fetched.

`BUDGET` is the one place that says how much. A cut always says how many characters and lines it leaves out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from toolgate.kernel.text.lazy_pattern import lazy_pattern


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What is shown of each part of a question before somebody asks for more, and how much comes at once then."""

    lines: int = 80
    characters: int = 8_000
    line: int = 400
    field: int = 2_000
    entries: int = 50
    piece: int = 65_536
    most: int = 1_048_576


BUDGET: Final = Budget()
"""A part of a question shows `lines` of at most `line` characters, `characters` in all; one text or list of a card
`field` characters or `entries`. A piece has `piece` characters unless another size, at most `most`, is asked for."""


class Clipped(NamedTuple):
    """A text with its middle left out; `hidden` is how many characters are, `lines` how many whole lines."""

    text: str
    hidden: int = 0
    lines: int = 0


class Cut(NamedTuple):
    """A piece of a text: where it ends, which is where the next one begins."""

    text: str
    end: int


def clip(text: str) -> Clipped:
    """Leave out the middle of what is too much: of long lines, then of many lines."""
    count = text.count("\n") + 1
    if count <= BUDGET.lines:
        kept = [_clip_line(line) for line in text.split("\n")]
        if sum(len(line.text) for line in kept) <= BUDGET.characters:
            return Clipped("\n".join(line.text for line in kept), sum(line.hidden for line in kept))
    most_first, most_last = BUDGET.lines * 2 // 3, BUDGET.lines // 4
    first = [_clip_line(line) for line in text.split("\n", most_first)[:most_first]]
    head = first[: _fitting(first, BUDGET.characters * 2 // 3)]
    room = min(most_last, count - len(head))
    last = [_clip_line(line) for line in text.rsplit("\n", room)[-room:]]
    tail = last[len(last) - _fitting(last[::-1], BUDGET.characters // 4) :]
    left_out = count - len(head) - len(tail)
    shown = [*head, *tail]
    whole = sum(len(line.text) + line.hidden - line.note for line in shown)
    lost = len(text) - whole - len(shown) + 1
    note = f"⟦… {left_out:,} lines, {lost:,} characters hidden …⟧"
    lines = [*(line.text for line in head), note, *(line.text for line in tail)]
    return Clipped("\n".join(lines), lost + sum(line.hidden for line in shown), left_out)


class _Line(NamedTuple):
    text: str
    hidden: int = 0
    note: int = 0


def _clip_line(line: str, most: int = BUDGET.line) -> _Line:
    if len(line) <= most:
        return _Line(line)
    head, tail = most * 2 // 3, most // 4
    hidden = len(line) - head - tail
    note = f"⟦… {hidden:,} characters hidden …⟧"
    return _Line(f"{line[:head]}{note}{line[-tail:]}", hidden, len(note))


def _fitting(lines: list[_Line], characters: int) -> int:
    """How many lines fit."""
    count = 0
    for line in lines:
        characters -= len(line.text)
        if characters < 0:
            break
        count += 1
    return count


def clip_field(text: str) -> str:
    """One text of a card, its middle left out where it is too long; it says how much is missing."""
    return _clip_line(text, BUDGET.field).text


def clip_entries(entries: list[str]) -> list[str]:
    """A list of a card; the last entry says how many more there are."""
    if len(entries) <= BUDGET.entries:
        return entries
    return [*entries[: BUDGET.entries], f"⟦… {len(entries) - BUDGET.entries:,} more hidden …⟧"]


def cut_piece(text: str, offset: int, size: int) -> Cut:
    """Return the piece of a text that begins at `offset`, of about `size` characters.

    It ends with a line where one ends near; never inside a character's code, a mask or a letter with its marks.
    """
    end = min(len(text), offset + size)
    if end < len(text):
        line_end = text.rfind("\n", offset + size * 3 // 4, end) + 1
        end = line_end or _past_unit(text, end)
    return Cut(text[offset:end], end)


_UNIT: Final = lazy_pattern(
    r"⟦[^⟧\n]{0,40}⟧|(?:\\u[0-9a-f]{4}){1,2}|\\.|\*{1,16}|.[\u0300-\u036f\u200d\ufe00-\ufe0f]{1,16}", re.DOTALL
)
_REACH: Final = 42


def _past_unit(text: str, end: int) -> int:
    """The first place at or after `end` that is not inside something that belongs together."""
    start = max(0, end - _REACH)
    for unit in _UNIT.finditer(text, start, min(len(text), end + _REACH)):
        if unit.start() >= end:
            break
        if unit.end() > end:
            return unit.end()
    return end
