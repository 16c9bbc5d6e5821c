"""Compare two texts line by line and write the difference in a form `patch` applies.

A line ends with a line feed and with nothing else, as it does for `patch`: a carriage return or a form feed
is part of the line. `kernel.diff_align` finds the changes and `kernel.diff_hunks` writes them; this file cuts
the texts, counts, and keeps the work bounded.
"""

from __future__ import annotations

from typing import Final

from toolgate.errors import UsageError
from toolgate.kernel.misuse import explained
from toolgate.kernel.text.diff.align import align
from toolgate.kernel.text.diff.hunks import WRITERS, Window, cut_hunks
from toolgate.kernel.text.diff.result import DiffResult, DiffType, ratio

MAX_CHARACTERS: Final = 8_388_608
"""How much of each text is compared, not counting the lines both begin or end with."""


@explained
def diff_text(
    old: str,
    new: str,
    diff_type: DiffType = DiffType.UNIFIED,
    context_lines: int = 3,
    fromfile: str = "a/original",
    tofile: str = "b/modified",
    *,
    max_characters: int = MAX_CHARACTERS,
) -> DiffResult:
    """Return the difference of two texts; `diff_output` is empty where they are equal.

    `UNIFIED` and `CONTEXT` can be applied with `patch`; `LINE_BY_LINE` shows every line. Texts that are too
    large, or share too few of too many lines, give a result that is `truncated`.
    """
    _check(old, new, diff_type, context_lines)
    if old == new:
        return DiffResult(diff_type, "", unchanged=_count(old))
    head, tail = _common_ends(old, new)
    old_size, new_size = len(old) - head - tail, len(new) - head - tail
    if max(old_size, new_size) > max_characters:
        why = f"{max(old_size, new_size):,} characters differ, more than {max_characters:,}"
        return _give_up(old, new, diff_type, head, tail, why)
    if diff_type is DiffType.LINE_BY_LINE:
        context_lines = _count(old)
    window = _cut(old, new, head, tail, context_lines)
    regions = align(window.old, window.new)
    if regions is None:
        return _give_up(old, new, diff_type, head, tail, "too many lines stand in another order")
    hunks = list(cut_hunks(regions, window, context_lines))
    additions = sum(region.new_end - region.new_start for region in regions)
    deletions = sum(region.old_end - region.old_start for region in regions)
    kept = window.before + window.after + len(window.old) - deletions
    return DiffResult(
        diff_type,
        "".join(WRITERS[diff_type](hunks, fromfile, tofile)),
        changes=tuple(line for hunk in hunks for line in hunk.lines),
        additions=additions,
        deletions=deletions,
        unchanged=kept,
        similarity=ratio(kept, kept + deletions, kept + additions),
    )


def _check(old: object, new: object, diff_type: object, context_lines: object) -> None:
    if not isinstance(old, str) or not isinstance(new, str):
        raise UsageError("diff_text compares two texts: decode bytes, and use diff_json for other values.")
    if diff_type not in WRITERS:
        known = ", ".join(str(kind) for kind in WRITERS)
        raise UsageError(f"diff_text writes {known}; for a JSON Patch call diff_json.")
    if not isinstance(context_lines, int) or context_lines < 0:
        raise UsageError("context_lines must be a whole number, 0 or more.")


def _give_up(old: str, new: str, diff_type: DiffType, head: int, tail: int, why: str) -> DiffResult:
    """Return a result that says why there is no difference to show; what was not compared counts as replaced."""
    kept = old.count("\n", 0, head) + _count(old[len(old) - tail :])
    deletions, additions = _count(old) - kept, _count(new) - kept
    text = f"[diff truncated: {why}; {deletions:,} lines count as removed and {additions:,} as added]\n"
    return DiffResult(
        diff_type,
        text,
        additions=additions,
        deletions=deletions,
        unchanged=kept,
        similarity=ratio(kept, kept + deletions, kept + additions),
        truncated=True,
    )


def _common_ends(old: str, new: str) -> tuple[int, int]:
    """Return how many characters of whole lines the texts share at the start and, after those, at the end."""
    shorter = min(len(old), len(new))
    head = old.rfind("\n", 0, _common(old, new, shorter, from_end=False)) + 1
    tail = _common(old, new, shorter - head, from_end=True)
    first_break = old.find("\n", len(old) - tail)
    return head, len(old) - first_break - 1 if first_break >= 0 else 0


def _common(old: str, new: str, most: int, *, from_end: bool) -> int:
    """Return the length of the common start or end. Slices are compared, in all about as much as is common."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if from_end:
            is_same = old[len(old) - middle : len(old) - low] == new[len(new) - middle : len(new) - low]
        else:
            is_same = old[low:middle] == new[low:middle]
        low, high = (middle, high) if is_same else (low, middle - 1)
    return low


def _cut(old: str, new: str, head: int, tail: int, context: int) -> Window:
    """Return the changed middle of both texts with so many lines of context around it."""
    start = head
    for _ in range(context):
        start = old.rfind("\n", 0, max(start - 1, 0)) + 1
    rest = old[len(old) - tail :]
    end = 0
    for _ in range(context):
        end = rest.find("\n", end) + 1 or len(rest)
    spare = len(rest) - end
    return Window(
        old.count("\n", 0, start),
        _lines(old[start : len(old) - spare]),
        _lines(new[start : len(new) - spare]),
        _count(rest[end:]),
    )


def _lines(text: str) -> list[str]:
    *ended, last = text.split("\n")
    lines = [line + "\n" for line in ended]
    return [*lines, last] if last else lines


def _count(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n") and text != "")
