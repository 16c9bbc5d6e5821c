"""Clear ordinary data in one look: what holds none of the marks below, no rule of masking can change.

The texts of a value are looked at together, joined by line ends, so that a value of thirty short texts costs no more
than one of three hundred characters. Whatever is not cleared here is looked at closely by the rules themselves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import re2

from toolgate.kernel.text.masking.shapes import STEMS, near_runs, triggers

MARKS: Final = (
    *(stem for stem in STEMS if stem.isascii()),
    "psk", "seed", "security", "basic", "identified", "%3", "\\u00",
)  # fmt: skip
"""No word that names a secret is without one of these, in any case; a test compares them with those words."""

_SIGNS: Final = "|".join(
    (
        f"(?i:{'|'.join(map(re.escape, MARKS))})",
        r"(?:^|[^0-9A-Za-z_\-])-",  # a flag, maybe of a command
        r"ENV |setx | set ",
        r"(?s:://.*@)|@tcp\(|@unix\(|:thin:",
        r"[\x80-\xff]",
    )
)
_MARKED: Final = re2.compile(_SIGNS.encode())
_MARKED_OR_LONG: Final = re2.compile(rf"{_SIGNS}|[0-9A-Za-z_\-]{{20}}".encode())
"""One linear search, in bytes, that clears most data; a long run may also be an id."""
MOST_BOXES: Final = 2000
"""A value with more dicts and lists than this is looked at piece by piece: parts of it may be met many times."""
MOST_BRACKETS: Final = 60
"""JSON with no more cannot be nested deeper than a reader could follow."""
CONSTANTS: Final[frozenset[type]] = frozenset({int, float, bool, type(None)})
DEEPEST: Final = 32
SHORT: Final = 15
"""Letters and digits alone, fewer than this, match no rule."""


class OddError(Exception):
    """The value is not one that can be cleared in one look."""


def is_plain(text: str) -> bool:
    """Whether no rule could change this text, nor one that is a part of it between line ends."""
    return text.isascii() and _has_no_mark(text.encode("ascii"))


def is_plain_json(encoded: bytes) -> bool:
    """Whether no rule could change this JSON: its bytes hold no mark, and no escapes behind which one could hide.

    A key without a mark names no secret, so keys and values are looked at alike.
    """
    if b"\\" in encoded or encoded.count(b"{") + encoded.count(b"[") > MOST_BRACKETS:
        return False
    return _has_no_mark(encoded)


def _has_no_mark(raw: bytes) -> bool:
    if _MARKED_OR_LONG.search(raw) is None:
        return True
    if _MARKED.search(raw) is not None:
        return False
    near = near_runs(raw.decode("ascii"))  # an id, or a token of a well-known form
    return not any(trigger in near for trigger in triggers())


class Copying:
    """Copies JSON and collects its texts. `clean` has the verdicts on keys met before: only a false one is clean."""

    __slots__ = ("_clean", "_left", "texts")

    def __init__(self, clean: Mapping[str, int]) -> None:
        self._clean = clean
        self._left = MOST_BOXES
        self.texts: list[str] = []

    def copy(self, value: Any, depth: int = 0) -> Any:
        """Return a copy; raise OddError where a key is not known to be clean, or a value is not JSON."""
        self._left -= 1
        if depth > DEEPEST or self._left < 0:
            raise OddError
        if type(value) is list:
            return [self._item(item, depth) for item in value]
        clean = self._clean
        for key in value:
            if clean.get(key, True):
                raise OddError
        return {key: self._item(item, depth) for key, item in value.items()}

    def _item(self, item: Any, depth: int) -> Any:
        kind = type(item)
        if kind is str:
            if len(item) >= SHORT or not item.isalnum():
                self.texts.append(item)
        elif kind is dict or kind is list:
            return self.copy(item, depth + 1)
        elif kind not in CONSTANTS:
            raise OddError
        return item
