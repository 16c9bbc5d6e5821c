"""Find many byte strings in a text in one pass, however many there are and however they overlap.

What is looked for, and what a find means, is said by whoever builds one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ahocorasick_rs import BytesAhoCorasick

from toolgate.kernel.text.masking.keys import Span

HEAD: Final = 128
"""The longest string an automaton takes: longer ones are looked for by their beginning."""

_CHUNK: Final = 1 << 18  # what is found in one piece of text is held at once
_NESTED: Final = 4  # of strings that end with each other, so many are left to the automaton
_CHECKS: Final = 2  # comparisons with the others, for each byte of the text
_FREE_CHECKS: Final = 100_000


class Automaton:
    """Strings to find, each with how far what it stands for reaches before and after the string's end.

    Ten thousand strings that end with each other would all be found at every place of one text. Only the shortest four
    of such strings are searched for, the others are compared where the fourth is, as long as that takes no more than
    a few comparisons for each byte of a text. Beyond that `reach` says how far they may go.
    """

    __slots__ = ("_automaton", "_nested", "reach", "strings")

    def __init__(self, strings: Mapping[bytes, Span]) -> None:
        searched: list[bytes] = []
        others: list[tuple[int, bytes]] = []
        ends: list[tuple[bytes, int]] = []  # each is the end of the next
        for backward in sorted(string[::-1] for string in strings):
            while ends and not backward.startswith(ends[-1][0]):
                ends.pop()
            if len(ends) < _NESTED:
                ends.append((backward, len(searched)))
                searched.append(backward[::-1])
            else:
                others.append((ends[-1][1], backward[::-1]))
        self.strings = [*searched, *(string for _, string in others)]
        self.reach: dict[int, Span] = {}
        self._nested: dict[int, list[int]] = {}
        for index, (end, string) in enumerate(others, len(searched)):
            self._nested.setdefault(end, []).append(index)
            before, after = self.reach.get(end, (0, 0))
            self.reach[end] = max(before, strings[string][0]), max(after, strings[string][1])
        self._automaton = BytesAhoCorasick(searched)

    def is_in(self, data: bytes) -> bool:
        """Whether any of the strings is in the data."""
        return any(self._automaton.find_matches_as_indexes(part) for _, part in _parts(data))

    def find(self, data: bytes) -> Iterator[tuple[int, int, int]]:
        """Yield every place of every string: its index in `strings`, where it begins and where it ends.

        The complement of an index says that what is in `reach` for it may be there, and was not compared any more.
        """
        left = _FREE_CHECKS + _CHECKS * len(data)
        for at, part in _parts(data):
            found = self._automaton.find_matches_as_indexes(part, overlapping=True)
            if not at and not self._nested:
                yield from found
                continue
            for index, start, end in found:
                yield index, at + start, at + end
                if index in self._nested:
                    left -= len(self._nested[index])
                    yield from self._compare(data, index, at + end) if left >= 0 else [(~index, at + start, at + end)]

    def _compare(self, data: bytes, index: int, end: int) -> Iterator[tuple[int, int, int]]:
        for other in self._nested[index]:
            string = self.strings[other]
            if len(string) <= end and data.startswith(string, end - len(string)):
                yield other, end - len(string), end


def _parts(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Cut the data so that every place where a string may be lies within one part, with where each part begins."""
    if len(data) <= _CHUNK:
        yield 0, data
        return
    for at in range(0, len(data), _CHUNK):
        yield at, data[at : at + _CHUNK + HEAD - 1]
