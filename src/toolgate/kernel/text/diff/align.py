"""Find the smallest change that turns one sequence into another, in bounded time.

Items are compared by equality and hash: lines of text, or the numbers `kernel.diff_json` gives to values.
What is aligned is a string with one character per distinct item, so no hash collision can pair two
different items. This file knows nothing of how a change is shown.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import pairwise
from operator import ne
from typing import Final, NamedTuple

_EXACT_CELLS: Final = 400_000_000
"""Up to this many pairs of items the result has the fewest changed items possible; the search takes 50 MB."""
_MAX_CELLS: Final = 20_000_000_000
"""More pairs than this are searched only where few items changed; about three seconds of work."""
_MAX_RUN: Final = 8
"""More differences than this in a row may be a shift."""
_MAX_DISTINCT: Final = 0x110000
"""As many characters as there are."""


class Region(NamedTuple):
    """`old[old_start:old_end]` becomes `new[new_start:new_end]`; what lies between two regions is kept."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


Block = tuple[int, int, int]
"""Something both sides keep: its place in the old text, its place in the new one, its size."""


def align(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[Region] | None:
    """Return the regions that changed, in order; None where finding them would take too long."""
    start, old_end, new_end = _trim(old, new)
    if old_end == new_end and (old_end - start) ** 2 > _EXACT_CELLS:
        in_place = _in_place(old, new, start, old_end)
        if in_place is not None:
            return in_place
    shared = set(old[start:old_end]) & set(new[start:new_end])
    # An item that stands on one side only can never be kept, so leaving it out changes no result.
    old_at = [index for index in range(start, old_end) if old[index] in shared]
    new_at = [index for index in range(start, new_end) if new[index] in shared]
    if len(shared) > _MAX_DISTINCT:
        return None
    letters = {item: chr(number) for number, item in enumerate(shared)}
    kept = _kept("".join([letters[old[index]] for index in old_at]), "".join([letters[new[index]] for index in new_at]))
    if kept is None:
        return None
    pairs = [(old_at[a + step], new_at[b + step]) for a, b, size in kept for step in range(size)]
    return _between(pairs, Region(start, old_end, start, new_end))


def _in_place(old: Sequence[Hashable], new: Sequence[Hashable], start: int, end: int) -> list[Region] | None:
    """Return the regions of two long sequences of one length in which only few items here and there differ."""
    differ = [start + at for at, is_other in enumerate(map(ne, old[start:end], new[start:end])) if is_other]
    runs: list[list[int]] = []
    for at in differ:
        if runs and runs[-1][-1] == at - 1:
            runs[-1].append(at)
        else:
            runs.append([at])
    if len(differ) * 8 > end - start or max(map(len, runs)) > _MAX_RUN:
        return None
    regions = []
    for run in runs:
        first, last = run[0], run[-1] + 1
        inner = align(old[first:last], new[first:last]) or ()  # so short that it is never None
        regions += [Region(*(first + place for place in one)) for one in inner]
    return regions


def _trim(old: Sequence[Hashable], new: Sequence[Hashable]) -> tuple[int, int, int]:
    """Return the common start, and where each side ends before the common end."""
    shorter = min(len(old), len(new))
    start = next((index for index in range(shorter) if old[index] != new[index]), shorter)
    end = 0
    while end < shorter - start and old[-1 - end] == new[-1 - end]:
        end += 1
    return start, len(old) - end, len(new) - end


def _between(pairs: list[tuple[int, int]], whole: Region) -> list[Region]:
    regions = []
    i, j = whole.old_start, whole.new_start
    for a, b in [*pairs, (whole.old_end, whole.new_end)]:
        if a > i or b > j:
            regions.append(Region(i, a, j, b))
        i, j = a + 1, b + 1
    return regions


def _kept(old: str, new: str) -> list[Block] | None:
    """Return the blocks both texts keep; None where finding them would take too long."""
    if len(old) * len(new) <= _EXACT_CELLS:
        return _blocks(old, new, is_exact=True)
    kept: list[Block] = []
    i = j = 0
    for a, b in [*_anchors(old, new), (len(old), len(new))]:
        if a > i or b > j:
            blocks = _blocks(old[i:a], new[j:b], is_exact=(a - i) * (b - j) <= _EXACT_CELLS)
            if blocks is None:
                return None
            kept += [(i + x, j + y, size) for x, y, size in blocks]
        kept.append((a, b, a < len(old)))
        i, j = a + 1, b + 1
    return kept


def _blocks(old: str, new: str, *, is_exact: bool) -> list[Block] | None:
    """Return the blocks kept, found by a search.

    The search that counts a replaced character once follows only the diagonals it needs, so it is quick
    where little changed. Its answer stands if the exact number of removed and added characters, which is
    cheap to compute, confirms it; otherwise the exact search runs, where its table fits.
    """
    if not old or not new:
        return []
    from rapidfuzz.distance import Indel, Levenshtein  # here: opening a gate must not pay for it

    most = _MAX_CELLS // max(len(old), len(new))
    if min(len(old), len(new)) > most and Levenshtein.distance(old, new, score_cutoff=most, score_hint=64) > most:
        return None
    edits = Levenshtein.editops(old, new, score_hint=64)
    if is_exact:
        cost = len(edits) + sum(edit.tag == "replace" for edit in edits)
        if Indel.distance(old, new, score_cutoff=cost) < cost:
            edits = Indel.editops(old, new)
    return [(block.a, block.b, block.size) for block in edits.as_matching_blocks()]


def _anchors(old: str, new: str) -> list[tuple[int, int]]:
    """Return pairs of places that surely belong together: what stands once on each side, in the same order."""
    old_counts, new_counts = Counter(old), Counter(new)
    single = {letter for letter, count in old_counts.items() if count == 1 == new_counts[letter]}
    places = {letter: at for at, letter in enumerate(new) if letter in single}
    pairs = [(at, places[letter]) for at, letter in enumerate(old) if letter in single]
    if all(one[1] < two[1] for one, two in pairwise(pairs)):
        return pairs
    return _longest_rising(pairs)


def _longest_rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return a longest run of pairs, neighbours or not, whose second places rise as the first ones do."""
    ends: list[int] = []  # the smallest second place a run of each length can end with
    at_ends: list[int] = []
    before: list[int] = []
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        before.append(at_ends[length - 1] if length else -1)
        ends[length : length + 1] = [place]
        at_ends[length : length + 1] = [number]
    run = []
    number = at_ends[-1]
    while number >= 0:
        run.append(pairs[number])
        number = before[number]
    return run[::-1]
