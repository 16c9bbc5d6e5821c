"""Refuse source files that are too long, and file names that hide what they hold."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

LONGEST = 500
VAGUE = re.compile(r"^_*(utils?|helpers?|common|misc)_*$|_v\d+$")
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


def main() -> int:
    found = list(complaints(Path(__file__).resolve().parent.parent))
    print("\n".join(found) or f"File names and lengths hold (limit {LONGEST} lines).")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
