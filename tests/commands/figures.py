"""How many of the most usual command lines run unasked under `developer`: `python -m tests.commands.figures`."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.commands.hostile import hostile
from tests.commands.judging import installed, line_word, load, make_workspace, words_of
from tests.commands.usual import usual

from toolgate.kernel.policy import Word
from toolgate.policy import FilePolicy


@dataclass(frozen=True)
class Figures:
    """How many of the most usual lines there are, and what becomes of them."""

    lines: int
    unasked: int
    asked: int
    denied: int


def figures(policy: FilePolicy) -> Figures:
    """Count the words that the most usual lines get."""
    words = Counter(line_word(policy, each.text) for each in usual() if each.is_common)
    return Figures(lines=words.total(), unasked=words[Word.ALLOW], asked=words[Word.ASK], denied=words[Word.DENY])


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        with installed(top / "bin", [*(each.text for each in usual()), *hostile()]):
            policy = load("developer", make_workspace(top))
            found = figures(policy)
            wrong = [each.text for each in usual() if line_word(policy, each.text) is not each.word]
            ways = {line: words_of(policy, line) for line in hostile()}
    loose = [line for line, words in ways.items() if Word.ALLOW in words]
    share = f"{found.unasked / found.lines:.0%} run unasked ({found.unasked})"
    sys.stdout.write(
        f"The {found.lines} most usual lines: {share}, {found.asked} ask, {found.denied} are denied.\n"
        f"All {len(usual())} usual lines: {len(wrong)} get another word than wanted.\n"
        f"All {len(ways)} hostile lines: {len(loose)} run unasked.\n"
    )


if __name__ == "__main__":
    main()
