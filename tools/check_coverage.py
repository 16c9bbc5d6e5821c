"""Hold each package to its branch coverage: 100 % where decisions are made, 90 % elsewhere.

Reads the report that `coverage json` writes; measuring is coverage's own work. The names after it are programs that
tests need and that are missing: their tests were skipped, so nothing is decided. In CI it always is.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

COMPLETE = ("kernel", "pipeline", "policy")
ELSEWHERE = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """How much of one file, or of one group of files, the tests reached."""

    group: str
    name: str
    reached: int
    total: int
    missing: str = ""

    @property
    def percent(self) -> float:
        return 100.0 * self.reached / self.total if self.total else 100.0

    @property
    def required(self) -> float:
        return 100.0 if self.group in COMPLETE else ELSEWHERE

    @property
    def is_enough(self) -> bool:
        return self.percent >= self.required


def group_of(path: str) -> str:
    """Return the first name below the package: `kernel` for `src/toolgate/kernel/call.py`."""
    parts = PurePosixPath(path).with_suffix("").parts
    return parts[parts.index("toolgate") + 1]


def read_files(report: Mapping[str, Any]) -> Iterator[Measured]:
    for path, entry in report["files"].items():
        summary = entry["summary"]
        lines = [str(line) for line in entry["missing_lines"]]
        branches = [f"{start}->{'exit' if end < 0 else end}" for start, end in entry["missing_branches"]]
        yield Measured(
            group=group_of(path),
            name=path,
            reached=summary["covered_lines"] + summary["covered_branches"],
            total=summary["num_statements"] + summary["num_branches"],
            missing=", ".join(lines + branches),
        )


def read_groups(files: list[Measured]) -> Iterator[Measured]:
    for group in sorted({file.group for file in files if file.total}):
        members = [file for file in files if file.group == group]
        reached, total = sum(file.reached for file in members), sum(file.total for file in members)
        yield Measured(group=group, name=group, reached=reached, total=total)


def main(report_path: str, *away: str) -> int:
    files = list(read_files(json.loads(Path(report_path).read_text(encoding="utf-8"))))
    groups = list(read_groups(files))
    print(f"{'package':<20}{'reached':>10}{'of':>8}{'percent':>10}{'required':>10}")
    for group in groups:
        verdict = "" if group.is_enough else "  TOO LOW"
        numbers = f"{group.reached:>10}{group.total:>8}{group.percent:>10.2f}{group.required:>10.0f}"
        print(f"{group.name:<20}{numbers}{verdict}")
    short = {group.name for group in groups if not group.is_enough}
    for file in files:
        if file.group in short and file.missing:
            print(f"  {file.name}: not reached: {file.missing}")
    if not groups:
        print("Nothing was measured.")
        return 1
    if short and away and not os.environ.get("CI"):
        print(f"Not decided: the tests that need {', '.join(away)} were skipped.")
        return 0
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
