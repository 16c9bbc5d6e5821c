"""Clear ordinary data in one look: where no rule of masking has a place to start from, it changes nothing.

The texts of a value are looked at together, joined by line ends, so that a value of thirty short texts costs no more
than one of three hundred characters. Whatever is not cleared here is looked at closely by the rules themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

from toolgate.kernel.text.masking.places import find_places, has_places
from toolgate.kernel.text.masking.shapes import RUN, RUNS, headless_spans, may_be_headless

MOST_BOXES: Final = 2000
"""A value with more dicts and lists than this is looked at piece by piece: parts of it may be met many times."""
MOST_BOXES_OF_JSON: Final = 60
"""JSON with no more cannot be nested deeper than a reader could follow."""
DEEPEST: Final = 32
_AT: Final = ord("@")
_LARGEST: Final = 10**300  # Python refuses to print much larger numbers


class OddError(Exception):
    """The value is not one that can be cleared in one look."""


def boxes_of_plain(encoded: bytes) -> int | None:
    """Return how many dicts and lists this JSON may hold; `None` where a rule could change a key or a value of it.

    Looked at as one text: none of the words that rules start from has a character that JSON escapes. `None`, too, where
    it may be nested deeper than a reader could follow.
    """
    runs = encoded.translate(RUNS, b"{[")  # without these, so that one pass counts them, too
    boxes = len(encoded) - len(runs)
    if boxes > MOST_BOXES_OF_JSON or has_places(encoded) or (_AT in encoded and b"://" in encoded):
        return None
    return None if runs.find(RUN) >= 0 and may_be_headless(encoded.decode()) else boxes


def _odd() -> NoReturn:
    raise OddError


class Survey:
    """Copies JSON, and collects its texts to look at them together.

    `known` has the verdicts on keys met before, and `judge` gives that on another. Texts of letters and digits shorter
    than `quick` match no rule; `numbers` says whether a number may be a secret.
    """

    __slots__ = ("_boxes", "_flags", "_judge", "_known", "_named", "_numbers", "_quick", "_rows", "texts")

    def __init__(
        self, known: Mapping[str, int], judge: Callable[[object], int], *, quick: int, numbers: bool, boxes: int
    ) -> None:
        self._known = known
        self._judge = judge
        self._quick = quick
        self._numbers = numbers
        self._boxes = boxes
        self._named = self._flags = self._rows = False
        self.texts: list[str] = []

    def copy(self, value: Any, depth: int = 0) -> Any:
        """Return a copy; raise OddError where a value is not JSON, or too deep or large to be looked at as a whole."""
        self._boxes -= 1
        if depth > DEEPEST or self._boxes < 0:
            raise OddError
        if type(value) is list:
            if len(value) > 1:
                self._note(value)
            return [self._item(item, depth) for item in value]
        known = self._known
        for key in value:
            verdict = known.get(key)
            if self._judge(key) if verdict is None else verdict:
                self._named = True
        return {key: self._item(item, depth) for key, item in value.items()}

    def _note(self, items: list[Any]) -> None:
        texts = [item for item in items if type(item) is str]
        if texts:
            self._rows = True
            self._flags = self._flags or any(text[:1] == "-" for text in texts)
            self.texts += [text for text in texts if len(text) < self._quick]  # one may name the next

    def _item(self, item: Any, depth: int) -> Any:
        kind = type(item)
        if kind is str:
            if len(item) >= self._quick or not item.isalnum():
                self.texts.append(item)
        elif kind is dict or kind is list:
            return self.copy(item, depth + 1) if item else kind()
        elif kind is int or kind is float:
            if self._numbers:
                self.texts.append(repr(item) if kind is float or abs(item) < _LARGEST else _odd())
        elif item is not None and kind is not bool:
            raise OddError
        return item

    def suspects(self) -> list[str]:
        """Return the texts in which some rule has a place to start from, and maybe others."""
        texts = self.texts
        joined = "\n".join(texts)
        found = []
        index, stop = -1, -1
        for _, _, end in find_places(joined):  # in the order of their ends; none goes beyond a line
            if end > stop:
                while end > stop:
                    index += 1
                    stop += 1 + len(texts[index])
                found.append(texts[index])
        if "@" in joined and "://" in joined:
            found += [text for text in texts if "@" in text and "://" in text]
        if headless_spans(joined):
            found += [text for text in texts if headless_spans(text)]
        return found

    def is_cleared_by(self, masked: Mapping[str, str]) -> bool:
        """Whether nothing is to be hidden in the value, given what the suspects among its texts came to.

        Keys and flags may hide what stands beside them; so may a text that names a secret, in a list.
        """
        if self._named or self._flags or (self._rows and masked):
            return False
        return all(text == shown for text, shown in masked.items())
