"""Turn studies and verdicts into the terminal's tables, the results file, pictures and the docs page's section.

Formatting only: nothing here measures, and nothing decides whether a target is reached.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.report import Table, aligned, piped, replace_section, verdict_table
from benchmarks.scale.plots import draw
from benchmarks.scale.studies import Study
from benchmarks.targets import Verdict

BEGIN = "<!-- scaling:begin -->"
END = "<!-- scaling:end -->"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything one run found."""

    conditions: str
    verdicts: list[Verdict]
    figures: dict[str, float]
    """The numbers behind the verdicts, by name with unit."""
    studies: list[Study]

    def terminal(self) -> str:
        """Everything as aligned plain text, the verdicts last."""
        blocks = [f"{study.title}\n\n{aligned(_table(study))}" for study in self.studies if study.points]
        return "\n\n".join([*blocks, aligned(_figures(self.figures)), aligned(verdict_table(self.verdicts))])

    def markdown(self, pictures: dict[str, str], *, beside: str) -> str:
        """Everything as Markdown; `beside` is the pictures' folder as the page names it."""
        parts = [self.conditions, "### Targets", piped(verdict_table(self.verdicts)), piped(_figures(self.figures))]
        for study in self.studies:
            if not study.points:
                continue
            parts += [f"### {study.title}", study.about]
            if study.name in pictures:
                parts.append(f"![{study.title}]({beside}/{pictures[study.name]})")
            findings = "\n".join(f"- {found}" for found in study.findings())
            parts += [piped(_table(study)), findings]
        return "\n\n".join(part for part in parts if part) + "\n"

    def write_results(self, path: Path) -> None:
        """Keep the numbers as JSON."""
        path.parent.mkdir(exist_ok=True)
        told: dict[str, Any] = {
            "conditions": self.conditions,
            "targets": [verdict.as_json() for verdict in self.verdicts],
            "figures": self.figures,
            "studies": [study.as_json() for study in self.studies],
        }
        path.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")

    def write_docs(self, page: Path, images: Path) -> None:
        """Draw the pictures and replace the page's generated section."""
        images.mkdir(exist_ok=True)
        pictures = {study.name: name for study in self.studies if (name := draw(study, images)) is not None}
        replace_section(page, BEGIN, END, self.markdown(pictures, beside="../images"))


def _table(study: Study) -> Table:
    header = ["", study.x_label, *(column.heading for column in study.columns.values()), "figure"]
    body = [
        [
            point.series,
            f"{point.x:,}",
            *(
                f"{point.values[key]:,.{column.digits}f}" if key in point.values else ""
                for key, column in study.columns.items()
            ),
            point.how,
        ]
        for point in study.points
    ]
    return header, body


def _figures(figures: dict[str, float]) -> Table:
    body = [[name, f"{value:,.0f}" if value >= 100 else f"{value:.2f}", "measured"] for name, value in figures.items()]
    return ["behind the targets", "value", "figure"], body
