"""The pages of the documentation as tests see them: which there are, their sections, their code blocks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
NOT_RUN = "<!-- not run: "
PRINTS = "<!-- prints -->"
SHELLS = ("bash", "console", "sh")

_FENCE = re.compile(r"^(`{3,})(\w*)\s*$")
_FILE = re.compile(r"^# ([\w-]+\.(?:py|yaml))$")
_INSTALL = re.compile(r"""pip install ["']?\.(\[[a-z,]+\])?["']?(?=[`\s])""")
_HEADING = re.compile(r"^(#{1,6})\s+(.+?)\s*$")


class Block(NamedTuple):
    """One fenced block. `line` is where its code begins, `mark` the comment right above the fence."""

    language: str
    line: int
    code: str
    mark: str

    @property
    def file(self) -> str | None:
        """The name a reader saves it under: the comment in its first line."""
        found = _FILE.match(self.code.partition("\n")[0])
        return found[1] if found else None

    @property
    def is_run(self) -> bool:
        return not self.mark.startswith(NOT_RUN)


def pages() -> list[Path]:
    """Return README, the other top-level pages and everything under docs/."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def followed() -> list[Path]:
    """Return the pages a reader follows step by step: README, tutorials and how-tos."""
    return [page for page in pages() if page.name == "README.md" or page.parent.name in ("tutorials", "how-to")]


def extras_of(page: Path) -> list[str]:
    """Return what each install line of a page adds to `.`: nothing, or extras such as `[server]`."""
    return [found or "" for found in _INSTALL.findall(page.read_text(encoding="utf-8"))]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page in order."""
    return list(_blocks(page.read_text(encoding="utf-8").splitlines()))


def _blocks(lines: list[str]) -> Iterator[Block]:
    fence, begin, mark = "", 0, ""
    for number, line in enumerate(lines):
        found = _FENCE.match(line)
        if not fence and found:
            fence, begin = line.strip(), number + 1
            above = [text.strip() for text in lines[:number] if text.strip()]
            mark = above[-1] if above and above[-1].startswith("<!--") else ""
        elif fence and found and len(found[1]) >= fence.count("`") and not found[2]:
            yield Block(fence.lstrip("`"), begin + 1, "\n".join(lines[begin:number]), mark)
            fence = ""
    assert not fence, f"the block that begins in line {begin} is not closed"


def prose(page: Path) -> str:
    """Return a page without its fenced blocks."""
    lines = page.read_text(encoding="utf-8").splitlines()
    fenced = {
        number for block in _blocks(lines) for number in range(block.line - 2, block.line + block.code.count("\n") + 1)
    }
    return "\n".join(line for number, line in enumerate(lines) if number not in fenced)


def anchors(page: Path) -> set[str]:
    """Return the link targets the headings of a page make."""
    titles = [found[2] for line in prose(page).splitlines() if (found := _HEADING.match(line))]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def sections(name: str, level: int) -> dict[str, str]:
    """Return the text under each heading of this level, by the heading without its backticks."""
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in read(name).splitlines():
        heading = _HEADING.match(line)
        if heading and len(heading[1]) == level:
            current = found.setdefault(heading[2].replace("`", ""), [])
        elif heading and len(heading[1]) < level:
            current = None
        elif current is not None:
            current.append(line)
    return {title: "\n".join(lines) for title, lines in found.items()}


def rows(text: str) -> list[list[str]]:
    """Return the cells of every table row in a text, without header and rule lines."""
    table = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in table]
    rules = [number for number, row in enumerate(cells) if set("".join(row)) <= set("-: ")]
    return [row for number, row in enumerate(cells) if number not in rules and number + 1 not in rules]


def quoted(text: str) -> list[str]:
    """Return what stands in backticks."""
    return re.findall(r"`([^`]+)`", text)


def missing_words(names: Iterable[str], text: str) -> list[str]:
    """Return the names that stand nowhere in backticks, alone or as the first word of code."""
    words = {re.split(r"[^\w.\-]", code.strip())[0] for code in quoted(text)}
    return [str(name) for name in names if name not in words]
