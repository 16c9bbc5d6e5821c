"""Put what was measured into the documentation page: a row for every target, and the tables of the last whole run.

Each row says when and on what machine it was measured, because a run replaces only the rows it measured itself.
"""

from collections.abc import Iterable
from pathlib import Path

from benchmarks.report import piped, replace_section, verdict_row
from benchmarks.targets import Verdict

PAGE = Path(__file__).resolve().parent.parent / "docs" / "explanation" / "benchmarks.md"
TARGETS = ("<!-- benchmark-targets:begin -->", "<!-- benchmark-targets:end -->")
TABLES = ("<!-- benchmarks:begin -->", "<!-- benchmarks:end -->")
HEADER = ["target", "limit", "medians", "best rounds", "verdict", "measured"]
UNMEASURED = "not measured yet"

Row = list[str]


def write_targets(page: Path, verdicts: Iterable[Verdict], *, measured: str) -> None:
    """Bring the table of targets up to date; raise when the page has lost its markers.

    A target that was not measured keeps its row while its limit is the same; one that no longer exists loses it.
    """
    kept = {(row[0], row[1]): row for row in target_rows(page.read_text(encoding="utf-8"))}
    rows = [_row(verdict, kept, measured) for verdict in verdicts]
    replace_section(page, *TARGETS, piped((HEADER, rows)) + "\n")


def write_tables(page: Path, text: str) -> None:
    """Replace the tables of the last whole run; raise when the page has lost its markers."""
    replace_section(page, *TABLES, text)


def target_rows(text: str) -> list[Row]:
    """Return the rows of the page's table of targets, without its heading."""
    begin, end = TARGETS
    section = text.partition(begin)[2].partition(end)[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def _row(verdict: Verdict, kept: dict[tuple[str, str], Row], measured: str) -> Row:
    row = verdict_row(verdict)
    if verdict.measured is not None:
        return [*row, measured]
    return kept.get((row[0], row[1]), [*row[:-1], UNMEASURED, ""])
