"""The page about faults names every file of this folder that injects one, and only tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = (HERE.parents[1] / "docs" / "explanation" / "faults.md").read_text(encoding="utf-8")


def test_every_file_of_faults_is_on_the_page() -> None:
    files = {path.name for path in HERE.glob("test_*.py")} - {Path(__file__).name}
    assert files == set(re.findall(r"`(test_\w+\.py)`", PAGE))


def test_every_test_on_the_page_is_in_the_file_it_is_said_to_be_in() -> None:
    for row in re.findall(r"`(test_\w+\.py)`: ([^|]+)\|", PAGE):
        source = (HERE / row[0]).read_text(encoding="utf-8")
        missing = [name for name in re.findall(r"`(test_\w+)`", row[1]) if f"def {name}(" not in source]
        assert missing == [], row[0]
