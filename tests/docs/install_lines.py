"""Every `pip install` line that users are told: in the documentation, the deployment files and the error texts."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import NamedTuple

from tests.docs.pages import ROOT

PLACES = ("*.md", "docs/**/*.md", "deploy/**/*", "examples/**/*", "src/toolgate/**/*.py")
LINE = re.compile(r"pip3? install (?P<options>(?:--?[\w-]+ )*)(?P<what>[^\n`]*)")
CHECKOUT = re.compile(r"""(["']?)\.(?:\[(?P<extras>[\w,{}]+)\])?\1(?=[\s.,;:)&"\\]|$)""")
PER_EXTRA = "{extra}"
"""How the one error text writes it: it stands for any extra."""

Extras = frozenset[str]


class InstallLine(NamedTuple):
    """One line, and where it is."""

    place: str
    text: str
    extras: Extras | None
    """None where it does not install from a checkout."""


def known_extras() -> list[str]:
    """Return the extras the project has."""
    return list(
        tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    )


def install_lines() -> Iterator[InstallLine]:
    """Yield every line, wherever users meet it."""
    for path in sorted({path for pattern in PLACES for path in ROOT.glob(pattern) if path.is_file()}):
        text = path.read_text(encoding="utf-8", errors="replace")
        for found in LINE.finditer(text):
            number = text.count("\n", 0, found.start()) + 1
            checkout = CHECKOUT.match(found["what"])
            extras = None if checkout is None else frozenset(filter(None, (checkout["extras"] or "").split(",")))
            yield InstallLine(f"{path.relative_to(ROOT)}:{number}", found[0], extras)


def documented_sets() -> set[Extras]:
    """Return every set of extras that a user can be told to install, each extra alone, and none."""
    told = {line.extras for line in install_lines() if line.extras is not None and PER_EXTRA not in line.extras}
    return {*told, *(frozenset([extra]) for extra in known_extras()), frozenset()}
