from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.docs.pages import ROOT, anchors, name_of, pages, prose

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
FORBIDDEN = {
    "a home directory": re.compile(r"/(?:home|root|Users)/\w|C:\\Users"),
    "a path of one machine": re.compile(r"(?<![\w.])/(?:work|mnt|tmp|srv(?!/toolgate))/\w"),
    "a package registry's host": re.compile(r"pythonhosted|pypi\.org|registry\.npmjs"),
    "a promise": re.compile(r"\b(?:TODO|FIXME|TBD|coming soon)\b", re.IGNORECASE),
}


def is_external(link: str) -> bool:
    return link.startswith(("https://", "http://", "mailto:"))


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_internal_links_resolve(page: Path) -> None:
    broken = []
    for link in LINK.findall(prose(page)):
        if is_external(link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_every_page_of_the_docs_can_be_reached_from_the_index() -> None:
    start = ROOT / "docs" / "index.md"
    reached, todo = {start}, [start]
    for page in todo:
        for link in LINK.findall(prose(page)):
            target = (page.parent / link.partition("#")[0]).resolve()
            if not is_external(link) and target.suffix == ".md" and target not in reached and target.exists():
                reached.add(target)
                todo.append(target)
    assert [name_of(page) for page in pages() if page.is_relative_to(ROOT / "docs") and page not in reached] == []


@pytest.mark.parametrize("page", pages(), ids=name_of)
@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_page_names(page: Path, what: str) -> None:
    assert FORBIDDEN[what].findall(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_a_page_begins_with_its_title(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# ")
    assert [line for line in prose(page).splitlines() if line.startswith("# ")] == [lines[0]]
