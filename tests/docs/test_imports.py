"""Pages and examples import what is public: where things lie inside is ours to change."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.docs.pages import ROOT, name_of

PLACES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").glob("*.py"))]
PARTS = "kernel|ports|adapters|pipeline|gate|wire"
NAMED = re.compile(rf"`toolgate\.(?:{PARTS})\.[\w.]+`")
INSIDE = re.compile(rf"^\s*(?:from|import) toolgate\.(?:{PARTS})\b.*", re.MULTILINE)


@pytest.mark.parametrize("page", PLACES, ids=name_of)
def test_a_page_imports_nothing_from_inside(page: Path) -> None:
    assert INSIDE.findall(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", PLACES, ids=name_of)
def test_a_page_names_nothing_from_inside(page: Path) -> None:
    assert NAMED.findall(page.read_text(encoding="utf-8")) == []
