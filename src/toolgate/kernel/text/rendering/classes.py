"""Sets of characters as regular expressions search them: in one pass, without looking at each character.

A set made from Unicode's tables is made at its first use. The sets written by hand may hold more than they need to:
what they find is looked at closely, what they do not find is clear.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final

_FIRST, _END = 0x300, 0x10000
_MIXED: Final = "\U000101f0-\U0001efff"
"""Where marks and digits stand above the first 65,536 characters, among much else: a set is searched quickly only if
it has few ranges there, so what is found in this one is looked at again."""
_SELECTORS: Final = "\U000e0100-\U000e01ef"


@cache
def may_stack() -> str:
    """The marks that stand on what is before them and take no room, and others above, as the inside of a set."""
    return _spans("(?:Mn|Me)+", _FIRST, _END) + _MIXED + _SELECTORS


@cache
def all_marks() -> str:
    return _spans("(?:Mn|Me|Mc)+", _FIRST, 0x20000) + _SELECTORS


@cache
def may_be_digit() -> str:
    """Decimal digits other than ASCII's, and other letters above, as the inside of a set."""
    every = "".join(map(chr, range(_FIRST, _END)))
    digits = "".join(f"{span.group()[0]}-{span.group()[-1]}" for span in re.finditer(r"\d+", every))
    return f"{digits}{_MIXED}\U0001fbf0-\U0001fbf9"


def _spans(wanted: str, first: int, end: int) -> str:
    # Two letters to a character, the first of them a capital: a match begins at a character's first letter.
    categories = "".join(map(unicodedata.category, map(chr, range(first, end))))
    found = re.finditer(wanted, categories)
    return "".join(f"{chr(first + span.start() // 2)}-{chr(first + span.end() // 2 - 1)}" for span in found)


def inside(characters: Iterable[str]) -> str:
    """These characters as the inside of a set."""
    return "".join(f"{re.escape(first)}-{re.escape(last)}" for first, last in _runs(sorted(characters)))


def _runs(characters: list[str]) -> Iterator[tuple[str, str]]:
    first = last = characters[0]
    for character in characters[1:]:
        if ord(character) != ord(last) + 1:
            yield first, last
            first = character
        last = character
    yield first, last


ABOVE: Final = "\U00010000-\U0010ffff"
PICTOGRAPHS: Final = "\u2190-\u2bff\U0001f000-\U0001faff\u00a9\u00ae\u203c\u2049\u3030\u303d"

MAY_BE_ALIKE: Final = (
    "\u0370-\u058f\u13a0-\u167f\u18b0-\u18ff\u1c80-\u1c8f\u1d00-\u1dff\u1f00-\u1fff\u212a\u2170-\u217f"
    "\u2c80-\u2dff\ua4d0-\ua69f\uab30-\uabbf\ufb13-\ufb17\uff00-\uffef\u0251\u0261\u0269\ua781"
)
"""Every letter of a script that has look-alikes of others, in whole blocks; digits of other scripts come besides, and
with them what stands above the first 65,536 characters."""

MAY_BE_EAST_ASIAN: Final = (
    "\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00016fe0-\U00018cff"
    "\U0001aff0-\U0001b2ff\U00020000-\U0003ffff"
)
