"""Compare two records field by field, for people: any Python values, shown as Python writes them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from toolgate.errors import UsageError
from toolgate.kernel.misuse import explained
from toolgate.kernel.text.diff.result import DiffLine, DiffResult, DiffType, ratio

MAX_SHOWN: Final = 10_000
"""How many characters of one value are shown."""

_MISSING: Final = object()


@explained
def diff_structured(
    old: Mapping[Any, Any],
    new: Mapping[Any, Any],
    ignore_keys: Collection[Any] | None = None,
    *,
    max_shown: int = MAX_SHOWN,
) -> DiffResult:
    """Return the fields that differ, sorted by name; fields in `ignore_keys` are not looked at.

    `diff_output` is empty where nothing differs. A value longer than `max_shown` characters is cut, with a mark,
    and the result is `truncated`.
    """
    if not (isinstance(old, Mapping) and isinstance(new, Mapping)):
        raise UsageError("diff_structured compares two mappings: use diff_json for other values.")
    ignored = ignore_keys or ()
    names = sorted((name for name in {**old, **new} if name not in ignored), key=str)
    changes: list[DiffLine] = []
    kept, is_cut = 0, False
    for name in names:
        before, after = old.get(name, _MISSING), new.get(name, _MISSING)
        if _is_same(before, after):
            kept += 1
            continue
        for kind, value in (("remove", before), ("add", after)):
            if value is not _MISSING:
                shown, was_cut = _show(value, max_shown)
                is_cut = is_cut or was_cut
                changes.append(DiffLine(kind, f"{_label(name)}: {shown}"))
    signs = {"remove": "-", "add": "+"}
    lines = ["--- old", "+++ new", *(f"{signs[line.type]} {line.content}" for line in changes)]
    deletions = sum(line.type == "remove" for line in changes)
    additions = len(changes) - deletions
    return DiffResult(
        DiffType.LINE_BY_LINE,
        "\n".join(lines) if changes else "",
        changes=tuple(changes),
        additions=additions,
        deletions=deletions,
        unchanged=kept,
        similarity=ratio(kept, kept + deletions, kept + additions),
        truncated=is_cut,
    )


def _is_same(old: Any, new: Any) -> bool:
    """Whether two values are equal and of the same types throughout; not a number is equal to itself."""
    todo = [(old, new)]
    seen: set[tuple[int, int]] = set()
    while todo:
        a, b = todo.pop()
        if a is b or (id(a), id(b)) in seen:
            continue
        if type(a) is not type(b):
            return False
        seen.add((id(a), id(b)))
        if isinstance(a, dict | list | tuple):
            if len(a) != len(b) or (isinstance(a, dict) and a.keys() != b.keys()):
                return False
            todo += _parts(a, b)
        elif a != b and not (a != a and b != b):  # only not-a-number differs from itself
            return False
    return True


def _parts(a: Any, b: Any) -> Iterator[tuple[Any, Any]]:
    return ((a[key], b[key]) for key in a) if isinstance(a, dict) else zip(a, b, strict=True)


def _show(value: Any, most: int) -> tuple[str, bool]:
    """Return a value in one line, and whether it had to be cut."""
    try:
        text = repr(value).replace("\n", "\\n").replace("\r", "\\r")
    except RecursionError:
        return "<nested too deeply to show>", True
    return (text, False) if len(text) <= most else (f"{text[:most]}... [cut, {len(text):,} characters]", True)


def _label(name: Any) -> str:
    return name if isinstance(name, str) and name.isprintable() else repr(name)
