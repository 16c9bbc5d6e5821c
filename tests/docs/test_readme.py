"""The README shows what there is: its table is the gauntlet's, its pictures are there and small."""

from __future__ import annotations

import re

from benchmarks.gauntlet.readme import BEGIN, END, PROMISES, summary
from benchmarks.gauntlet.sheet import SCENARIOS
from tests.docs.pages import ROOT, read

MOST_BYTES = 200_000


def test_the_table_against_peers_is_the_gauntlets() -> None:
    _, _, rest = read("README.md").partition(BEGIN)
    table, end, _ = rest.partition(END)
    assert end, "the README has lost its marks"
    assert table.strip() == summary(read("docs/explanation/gauntlet.md")), "run: python benchmarks/gauntlet/readme.py"
    assert PROMISES.keys() == SCENARIOS.keys()
    assert len(table.strip().splitlines()) == len(SCENARIOS) + 2


def test_every_picture_is_there_and_small() -> None:
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", read("README.md"))
    assert pictures
    assert {path: (ROOT / path).stat().st_size < MOST_BYTES for path in pictures} == dict.fromkeys(pictures, True)
