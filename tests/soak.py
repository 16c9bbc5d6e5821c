"""How long the long campaigns of `make soak` are, and the figures they leave."""

from __future__ import annotations

import os
from collections import Counter

import pytest

FACTOR = float(os.environ.get("SOAK", "1"))
_PREFIX = "tally."


def times(count: int) -> int:
    """How often a campaign of `make soak` does something: `count`, or with `SOAK=3` three times as often."""
    return max(1, round(count * FACTOR))


class Figures:
    """What all campaigns of a run did, summed up from their reports."""

    def __init__(self) -> None:
        self.sums: Counter[str] = Counter()
        self.campaigns = 0
        self._failed: set[str] = set()

    def hear(self, report: pytest.TestReport) -> None:
        """Add what a test counted; told in the report of its end."""
        counted = {name: value for name, value in report.user_properties if name.startswith(_PREFIX)}
        if report.failed:
            self._failed.add(report.nodeid)
        if report.when == "teardown" and counted:
            self.campaigns += 1
            for name, value in counted.items():
                assert isinstance(value, int)
                self.sums[name.removeprefix(_PREFIX)] += value

    def lines(self) -> list[str]:
        """The figures in words; none where no test counted anything."""
        if not self.campaigns:
            return []
        found = ", ".join(f"{number:,} {name}" for name, number in sorted(self.sums.items()))
        verdict = f"{len(self._failed)} tests failed" if self._failed else "0 lost, 0 doubled"
        return [f"{self.campaigns:,} campaigns: {found}; {verdict}"]


def kept(tally: Counter[str]) -> list[tuple[str, int]]:
    """A tally as the properties of its test's report, which also reach the process that reports."""
    return [(f"{_PREFIX}{name}", number) for name, number in tally.items()]
