"""What a comparison found: the difference as text, the changes one by one, and the counts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any


class DiffType(Enum):
    """How a difference is written."""

    UNIFIED = "unified"
    CONTEXT = "context"
    JSON_PATCH = "json_patch"
    LINE_BY_LINE = "line_by_line"


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line of a difference: `equal`, `add` or `remove`, its content, and its place counted from 1."""

    type: str
    content: str
    line_number_old: int | None = None
    line_number_new: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the line as a JSON object."""
        return {
            "type": self.type,
            "content": self.content,
            "line_number_old": self.line_number_old,
            "line_number_new": self.line_number_new,
        }


@dataclass(frozen=True, slots=True)
class DiffResult:
    """A difference.

    additions, deletions: how many lines, values or fields were added and removed; a replaced one counts in both.
    unchanged: how many were kept.
    similarity: the kept share of both sides, from 0 to 1 with three digits; 1 only where nothing changed.
    truncated: the inputs were too large to compare or to show; `diff_output` then says so and cannot be applied,
    and what was not compared counts as replaced.
    """

    diff_type: DiffType
    diff_output: str
    changes: tuple[DiffLine, ...] = ()
    additions: int = 0
    deletions: int = 0
    unchanged: int = 0
    similarity: float = 1.0
    truncated: bool = False

    @property
    def has_changes(self) -> bool:
        """Whether the two sides differ."""
        return self.additions > 0 or self.deletions > 0

    @property
    def change_summary(self) -> str:
        """The counts in a few characters, such as `+3 -1`."""
        parts = [f"{sign}{count}" for sign, count in (("+", self.additions), ("-", self.deletions)) if count]
        return " ".join(parts) or "no changes"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as a JSON object."""
        return {
            "diff_type": self.diff_type.value,
            "diff_output": self.diff_output,
            "changes": [line.to_dict() for line in self.changes],
            "additions": self.additions,
            "deletions": self.deletions,
            "unchanged": self.unchanged,
            "similarity": self.similarity,
            "has_changes": self.has_changes,
            "change_summary": self.change_summary,
            "truncated": self.truncated,
        }


def ratio(kept: int, old: int, new: int) -> float:
    """Return the kept share of `old` and `new` items; 1.0 only if all are kept."""
    if kept == old == new:
        return 1.0
    return min(round(2 * kept / (old + new), 3), 0.999)
