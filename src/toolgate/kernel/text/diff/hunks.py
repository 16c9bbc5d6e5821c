"""Group changed lines into hunks and write them as unified, context or line-by-line difference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from toolgate.kernel.text.diff.align import Region
from toolgate.kernel.text.diff.result import DiffLine, DiffType

_NO_NEWLINE: Final = "\n\\ No newline at end of file\n"
_SIGNS: Final = {"equal": " ", "remove": "-", "add": "+"}
_QUOTED: Final = {ord('"'): '\\"', ord("\\"): "\\\\", **{code: f"\\{code:03o}" for code in (*range(32), 127)}}


class Window(NamedTuple):
    """The lines around all changes, and how many equal lines stand before and after them."""

    before: int
    old: list[str]
    new: list[str]
    after: int


class Hunk(NamedTuple):
    """Some changes near each other with their context; starts are counted from 0."""

    old_start: int
    old_count: int
    new_start: int
    new_count: int
    lines: list[DiffLine]


def cut_hunks(regions: Iterable[Region], window: Window, context: int) -> Iterator[Hunk]:
    """Yield the changes grouped as they are shown: together where their context would meet."""
    group: list[Region] = []
    for region in regions:
        if group and region.old_start - group[-1].old_end > 2 * context:
            yield _hunk(group, window, context)
            group = []
        group.append(region)
    yield _hunk(group, window, context)


def _hunk(group: list[Region], window: Window, context: int) -> Hunk:
    before = min(context, group[0].old_start)
    after = min(context, len(window.old) - group[-1].old_end)
    old_start, old_end = group[0].old_start - before, group[-1].old_end + after
    new_start, new_end = group[0].new_start - before, group[-1].new_end + after
    end = Region(old_end, old_end, new_end, new_end)
    lines: list[DiffLine] = []
    i, j, base = old_start, new_start, window.before + 1
    for region in (*group, end):
        kept = enumerate(window.old[i : region.old_start])
        lines += [DiffLine("equal", line, base + i + step, base + j + step) for step, line in kept]
        removed = range(region.old_start, region.old_end)
        lines += [DiffLine("remove", window.old[at], base + at, None) for at in removed]
        added = range(region.new_start, region.new_end)
        lines += [DiffLine("add", window.new[at], None, base + at) for at in added]
        i, j = region.old_end, region.new_end
    start = window.before
    return Hunk(start + old_start, old_end - old_start, start + new_start, new_end - new_start, lines)


def _unified(hunks: Iterable[Hunk], fromfile: str, tofile: str) -> Iterator[str]:
    yield f"--- {_quote(fromfile)}\n+++ {_quote(tofile)}\n"
    for hunk in hunks:
        yield f"@@ -{_span(hunk.old_start, hunk.old_count)} +{_span(hunk.new_start, hunk.new_count)} @@\n"
        for line in hunk.lines:
            yield _SIGNS[line.type] + _ended(line.content)


def _span(start: int, count: int) -> str:
    # An empty span is named by the line before it, any other by its first line.
    return f"{start + 1}" if count == 1 else f"{start + (count > 0)},{count}"


def _context(hunks: Iterable[Hunk], fromfile: str, tofile: str) -> Iterator[str]:
    yield f"*** {_quote(fromfile)}\n--- {_quote(tofile)}\n"
    for hunk in hunks:
        marks = _marks(hunk.lines)
        yield f"***************\n*** {_range(hunk.old_start, hunk.old_count)} ****\n"
        yield from _side(hunk.lines, marks, "remove")
        yield f"--- {_range(hunk.new_start, hunk.new_count)} ----\n"
        yield from _side(hunk.lines, marks, "add")


def _side(lines: list[DiffLine], marks: list[str], changed: str) -> Iterator[str]:
    """Yield one side of a hunk; nothing where that side has only context."""
    if any(line.type == changed for line in lines):
        for line, mark in zip(lines, marks, strict=True):
            if line.type in ("equal", changed):
                yield f"{mark} {_ended(line.content)}"


def _marks(lines: list[DiffLine]) -> list[str]:
    """Return a mark per line: `!` where a run of changes has both removed and added lines."""
    marks = [_SIGNS[line.type] for line in lines]
    start = 0
    for at in range(len(lines) + 1):
        if at == len(lines) or lines[at].type == "equal":
            if {"-", "+"} <= set(marks[start:at]):
                marks[start:at] = "!" * (at - start)
            start = at + 1
    return marks


def _range(start: int, count: int) -> str:
    return f"{start + (count > 0)}" if count <= 1 else f"{start + 1},{start + count}"


def _line_by_line(hunks: Iterable[Hunk], fromfile: str, tofile: str) -> Iterator[str]:
    for hunk in hunks:
        for line in hunk.lines:
            yield f"{_SIGNS[line.type]} {line.content}" + ("" if line.content.endswith("\n") else "\n")


def _ended(line: str) -> str:
    return line if line.endswith("\n") else line + _NO_NEWLINE


def _quote(name: str) -> str:
    """Return a file name as `patch` reads it, so that no name can end the header line."""
    quoted = name.translate(_QUOTED)
    return name if quoted == name and name == name.strip() and name else f'"{quoted}"'


WRITERS: Final[dict[DiffType, Callable[[Iterable[Hunk], str, str], Iterator[str]]]] = {
    DiffType.UNIFIED: _unified,
    DiffType.CONTEXT: _context,
    DiffType.LINE_BY_LINE: _line_by_line,
}
