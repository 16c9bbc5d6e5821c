"""Run the gauntlet: every contender's script in its own environment, then the tables.

`python benchmarks/gauntlet/run.py` prints them; `--write-docs` puts them into the documentation and the README;
`--only NAME` runs some. Exit code 1 where Toolgate breaks a promise or a script failed.
"""

import argparse
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path[0] = str(ROOT)  # the folder itself must not be on the path: scripts carry the names of libraries

from benchmarks.environments import ENVIRONMENTS, EnvironmentFailedError, ensure  # noqa: E402
from benchmarks.gauntlet import readme  # noqa: E402
from benchmarks.gauntlet.sheet import HOLDS, SCENARIOS  # noqa: E402

PAGE, BEGIN, END = readme.PAGE, readme.BEGIN, readme.END
LIMIT_S = 300


class Contender(NamedTuple):
    """A library: what it is called, its script, and its environment; ours has none."""

    name: str
    script: str
    environment: str | None


CONTENDERS = (
    Contender("Toolgate", "benchmarks/gauntlet/toolgate_gauntlet.py", None),
    *(
        Contender(name, f"benchmarks/gauntlet/peers/{environment}_gauntlet.py", environment)
        for name, environment in (
            ("LangChain", "langchain"),
            ("OpenAI Agents", "openai_agents"),
            ("Pydantic AI", "pydantic_ai"),
            ("Agno", "agno"),
            ("Google ADK", "google_adk"),
            ("Agent Framework", "agent_framework"),
            ("HumanLayer", "humanlayer"),
            ("stageflow", "stageflow"),
        )
    ),
)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def sheet_of(contender: Contender) -> dict[str, Any]:
    """Return what a contender's script filled in; raise where it cannot be run."""
    python = Path(sys.executable)
    if contender.environment is not None:
        python = ensure(ENVIRONMENTS[contender.environment], say=say)
    environment = {"PYTHONPATH": str(ROOT), "PATH": os.environ.get("PATH", ""), "HOME": os.environ.get("HOME", "")}
    done = subprocess.run(
        [str(python), str(ROOT / contender.script)],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        env=environment,
        cwd=ROOT,
    )
    if done.returncode or not done.stdout.strip():
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "it printed nothing")
    sheet: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return sheet


def tables(sheets: dict[Contender, dict[str, Any]]) -> str:
    """Return the tables: one over all, then one for each scenario, every row naming its script."""
    names = [f"{contender.name} {sheet['version']}" for contender, sheet in sheets.items()]
    lines = [f"Run on {datetime.now(UTC).date()}.", ""]
    lines += ["| Scenario | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    for scenario in SCENARIOS:
        cells = [sheet["cells"][scenario]["outcome"] for sheet in sheets.values()]
        lines.append(f"| `{scenario}` | " + " | ".join(cells) + " |")
    for scenario, meaning in SCENARIOS.items():
        lines += [
            "",
            f"## `{scenario}`",
            "",
            meaning,
            "",
            "| Contender | Outcome | What happened | Script |",
            "|---|---|---|---|",
        ]
        for contender, sheet in sheets.items():
            cell = sheet["cells"][scenario]
            what = cell["what"].replace("|", "\\|").replace("\n", " ")
            row = (f"{contender.name} {sheet['version']}", cell["outcome"], what, f"`{contender.script}`")
            lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def write_docs(text: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")
    readme.write()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    known = [contender.environment or "toolgate" for contender in CONTENDERS]
    parser.add_argument("--only", action="append", choices=known, help="run only this; may be repeated")
    parser.add_argument("--write-docs", action="store_true", help="put the tables into the documentation page")
    options = parser.parse_args()
    sheets: dict[Contender, dict[str, Any]] = {}
    failed = False
    for contender in CONTENDERS:
        if options.only and (contender.environment or "toolgate") not in options.only:
            continue
        try:
            sheets[contender] = sheet_of(contender)
        except (EnvironmentFailedError, RuntimeError, subprocess.TimeoutExpired, ValueError) as error:
            say(f"{contender.name}: left out: {error}")
            failed = True
            continue
        outcomes = [cell["outcome"] for cell in sheets[contender]["cells"].values()]
        say(f"{contender.name} {sheets[contender]['version']}: {outcomes.count(HOLDS)} of {len(outcomes)} hold")
        failed |= "error" in outcomes or (contender.environment is None and set(outcomes) != {HOLDS})
    print(tables(sheets))
    if options.write_docs and not options.only and not failed:
        write_docs(tables(sheets))
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
