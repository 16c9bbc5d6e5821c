"""Refuse source files that are too long, names that hide what they hold, and merges left half done."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

LONGEST = 500
VAGUE = re.compile(r"^_*(utils?|helpers?|common|misc)_*$|_v\d+$")
COMMON = re.compile(r"^class (Entry|Report|Work|Worker|Job|Desk)\b", re.MULTILINE)
UNMERGED = re.compile(r"^(<{7}|>{7}) ", re.MULTILINE)
FOLDERS = ("src", "tests", "tools", "benchmarks", "examples")


def complaints(root: Path) -> Iterator[str]:
    """Yield one line for each file that breaks a rule; only `src` has a length limit."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            name = path.relative_to(root)
            if any(part.startswith(".") for part in name.parts):
                continue  # installed environments, not ours
            vague = [part for part in name.with_suffix("").parts if VAGUE.search(part)]
            if vague:
                yield f"{name}: the name `{vague[0]}` hides what the file holds; name it after its noun."
            length = len(path.read_text(encoding="utf-8").splitlines())
            if folder == "src" and length > LONGEST:
                yield f"{name}: {length} lines, the limit is {LONGEST}; split it by noun."


def shared_names(root: Path) -> Iterator[str]:
    """Yield one line for each common word that names a class in more than one file."""
    found: dict[str, list[str]] = {}
    for path in sorted((root / "src").rglob("*.py")):
        for name in COMMON.findall(path.read_text(encoding="utf-8")):
            found.setdefault(name, []).append(str(path.relative_to(root)))
    for name, places in sorted(found.items()):
        if len(places) > 1:
            yield f"{', '.join(places)}: each has a class `{name}`; give each a name of its own."


def unmerged(root: Path) -> Iterator[str]:
    """Yield one line for each page or program that still has the marks of a merge."""
    for pattern in ("*.md", "docs/**/*.md", *(f"{folder}/**/*.py" for folder in FOLDERS)):
        for path in sorted(root.glob(pattern)):
            if UNMERGED.search(path.read_text(encoding="utf-8")):
                yield f"{path.relative_to(root)}: the marks of a merge are left in it; finish the merge."


def main() -> int:
    root = Path(__file__).resolve().parent.parent
    found = [*complaints(root), *shared_names(root), *unmerged(root)]
    print("\n".join(found) or f"File names and lengths hold (limit {LONGEST} lines).")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
