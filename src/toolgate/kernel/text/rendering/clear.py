"""Whether a text needs no closer look: most need none, and one search says so.

A text that is clear holds nothing suspicious. One that is not may still be all ordinary: its characters are judged
in `characters` and `lookalikes`.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from toolgate.kernel.text.lazy_pattern import lazy_pattern
from toolgate.kernel.text.rendering.characters import suspects
from toolgate.kernel.text.rendering.classes import ABOVE, PICTOGRAPHS
from toolgate.kernel.text.rendering.lookalikes import imitators

_PLAIN: Final = bytes(range(0x20, 0x7F)) + b"\t\n\r"
_DENSE: Final = 1.5  # bytes to a character
_LONE_RETURN: Final = lazy_pattern(r"\r(?!\n)")
_OPEN_JOINER: Final = lazy_pattern(f"\u200d(?![{PICTOGRAPHS}])")


def is_clear(text: str, encoded: bytes | None = None) -> bool:
    """Whether nothing in a text can be suspicious, nor in the values of a text of JSON; `encoded` is its UTF-8."""
    if _LONE_RETURN.search(text):
        return False
    known = text.encode("utf-8", "surrogatepass") if encoded is None else encoded
    if len(known) < _DENSE * len(text):
        # Mostly ASCII: the rest of it is little to search. Where it stands matters only to parts of emoji.
        rare = known.translate(None, _PLAIN).decode("utf-8", "surrogatepass")
        if _suspect().search(rare) is None:
            return True
    return _odd().search(text) is None and _OPEN_JOINER.search(text) is None


@cache
def _suspect() -> re.Pattern[str]:
    return re.compile(f"[{_suspects()}]")


@cache
def _odd() -> re.Pattern[str]:
    """Like `_suspect`, but for the parts of emoji that follow what they may belong to."""
    follows = f"(?<![{PICTOGRAPHS}][\u200d\u20e3\ufe0f])(?<!\ufe0f[\u200d\u20e3])(?<![0-9#*]\ufe0f)"
    return re.compile(f"[{_suspects()}]{follows}")


@cache
def _suspects() -> str:
    below = re.sub(f"[{ABOVE}](?:-[{ABOVE}])?", "", f"{suspects()}{imitators()}")
    return f"{below}{_SUSPECT_ABOVE}"


_SUSPECT_ABOVE: Final = "\U00010000-\U0001efff\U0001fb00-\U0010ffff"  # all but emoji: few ranges are searched quickly
