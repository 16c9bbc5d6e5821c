"""The page on benchmarks has a row for every target, with the limit that is judged."""

from __future__ import annotations

from benchmarks.page import HEADER, UNMEASURED, target_rows
from benchmarks.report import WORDS, verdict_row
from benchmarks.targets import NOTHING, judge
from tests.docs.pages import read

PAGE = "docs/explanation/benchmarks.md"


def test_every_target_has_its_row_and_its_limit() -> None:
    rows = target_rows(read(PAGE))
    assert [row[:2] for row in rows] == [verdict_row(target)[:2] for target in judge(NOTHING)]


def test_a_row_says_what_was_found_where_and_when_or_that_nothing_was() -> None:
    for row in target_rows(read(PAGE)):
        verdict, where = row[4:]
        assert len(row) == len(HEADER)
        if verdict == UNMEASURED:
            assert row[2:4] == ["", ""], row
            assert where == "", row
        else:
            assert verdict in (WORDS[True], WORDS[False]), row
            assert row[2], row
            assert "cores, Python" in where, row
