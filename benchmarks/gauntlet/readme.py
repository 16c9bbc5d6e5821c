"""The gauntlet in the README: the table over all of `docs/explanation/gauntlet.md`, with words for the scenarios.

`python benchmarks/gauntlet/readme.py` writes it anew; a run of the gauntlet with `--write-docs` does so too.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[0] = str(ROOT)

from benchmarks.gauntlet.sheet import ABSENT, BREAKS, HOLDS, SCENARIOS, UNTRIED  # noqa: E402

PAGE = ROOT / "docs" / "explanation" / "gauntlet.md"
README = ROOT / "README.md"
BEGIN, END = "<!-- gauntlet: begin -->", "<!-- gauntlet: end -->"
MARKS = {HOLDS: "yes", BREAKS: "**no**", ABSENT: "\N{EN DASH}", UNTRIED: "?"}
PROMISES = {
    "reject_while_relaxed": "A rejected call does not run, although the policy was relaxed meanwhile",
    "resume_twice": "One approval, resumed twice, runs once",
    "changed_arguments": "What was reviewed runs, or nothing",
    "expired": "A late yes is refused",
    "hidden_positional": "The approver sees every argument",
    "quorum": "Two of three must approve",
    "undo": "The documented undo takes the effect back",
    "changed_definition": "An old yes does not run a changed tool",
    "double_click": "The first decision is final",
    "crash": "A crash after the effect does not repeat it",
    "own_approval": "Who asked cannot approve by a second login",
}


def summary(page: str) -> str:
    """Return the table for the README, from the text of the gauntlet's page."""
    rows = [line for line in page.splitlines() if line.startswith(("| Scenario", "| `"))][: len(SCENARIOS) + 1]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    names = cells[0][1:]
    lines = ["| | " + " | ".join(names) + " |", "|---|" + ":-:|" * len(names)]
    for name, *outcomes in cells[1:]:
        marks = [MARKS.get(outcome, outcome) for outcome in outcomes]
        lines.append(f"| {PROMISES[name.strip('`')]} | " + " | ".join(marks) + " |")
    return "\n".join(lines)


def write() -> None:
    """Put the table between its marks in the README."""
    before, _, rest = README.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    table = summary(PAGE.read_text(encoding="utf-8"))
    README.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    write()
