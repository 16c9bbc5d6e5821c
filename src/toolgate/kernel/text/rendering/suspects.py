"""What of a text is suspicious, and how a reader is told: the characters that hide, move or imitate something."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Final, NamedTuple

from toolgate.kernel.text.rendering.characters import Kind, find_unseen
from toolgate.kernel.text.rendering.clear import is_clear
from toolgate.kernel.text.rendering.lookalikes import find_look_alikes

_NAMED: Final = 6  # how many characters a warning names
_WARNINGS: Final = 24  # how many warnings are read


class Revealed(NamedTuple):
    """A text that is safe to show, and what a reader must be warned of."""

    text: str
    warnings: tuple[str, ...] = ()


def reveal(text: str) -> Revealed:
    """Return the text with every suspicious character replaced by its code, as `⟦U+202E⟧`, and the warnings."""
    found = suspicious(text)
    if not found:
        return Revealed(text)
    parts: list[str] = []
    end = 0
    for at in sorted(found):
        if end < at:
            parts.append(text[end:at])
        parts.append(f"⟦U+{ord(text[at]):04X}⟧")
        end = at + 1
    parts.append(text[end:])
    return Revealed("".join(parts), warn(text, found))


def suspicious(text: str, *, start_of: str | None = None) -> dict[int, Kind]:
    """Return the positions of characters that hide, move or imitate something.

    With `start_of`, the text is the beginning of that one, up to a space, and its letters are judged as part of it.
    """
    if is_clear(text):
        return {}
    found = find_unseen(text)
    for index in find_look_alikes(text, start_of=start_of):
        found.setdefault(index, Kind.LOOK_ALIKE)
    return found


def warn(text: str, found: dict[int, Kind]) -> tuple[str, ...]:
    """Return one sentence for each kind of suspicious character, naming the first few."""
    if not found:
        return ()
    by_kind: dict[Kind, list[str]] = {kind: [] for kind in Kind}
    for at in sorted(found):
        by_kind[found[at]].append(text[at])
    return tuple(_sentence(kind, characters) for kind, characters in by_kind.items() if characters)


def _sentence(kind: Kind, characters: list[str]) -> str:
    distinct = list(dict.fromkeys(characters))
    named = ", ".join(f"U+{ord(char):04X} {unicodedata.name(char, 'unnamed')}" for char in distinct[:_NAMED])
    more = f" and {len(distinct) - _NAMED} more" if len(distinct) > _NAMED else ""
    count = len(characters)
    return f"{count} {kind} character{'s' if count > 1 else ''}: {named}{more}"


def few(warnings: Iterable[str]) -> tuple[str, ...]:
    """Return each warning once, the first of them where there are too many to be read."""
    distinct = tuple(dict.fromkeys(warnings))
    if len(distinct) <= _WARNINGS:
        return distinct
    return (*distinct[:_WARNINGS], f"{len(distinct) - _WARNINGS:,} more warnings of such characters")
