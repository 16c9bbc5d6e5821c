"""Turn results into the terminal tables, `results/latest.json`, a Markdown table and the docs page's section.

Formatting only: nothing here decides whether a target is reached.
"""

import json
from pathlib import Path
from typing import Any

from benchmarks.chart import bars
from benchmarks.targets import Results, Verdict

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
DOCS_PAGE = HERE.parent / "docs" / "explanation" / "benchmarks.md"
BEGIN = "<!-- benchmarks:begin -->"
END = "<!-- benchmarks:end -->"

Table = tuple[list[str], list[list[str]]]


def terminal(results: Results, verdicts: list[Verdict]) -> str:
    """Return everything measured as aligned plain text, the verdicts last."""
    blocks = [_aligned(table) for table in _tables(results) if table[1]]
    blocks.append(_aligned(_verdict_table(verdicts)))
    return "\n\n".join(blocks)


def markdown(results: Results, verdicts: list[Verdict]) -> str:
    """Return everything measured as Markdown tables with the conditions in front."""
    quick = " This was a quick run: the numbers are rough." if results["is_quick"] else ""
    intro = (
        f"Measured on {results['measured_on']} with Python {results['python']} on {results['machine']}: "
        f"{results['rounds']} interleaved rounds, each in a fresh process on one core.{quick}"
    )
    tables = [table for table in (_verdict_table(verdicts), *_tables(results)) if table[1]]
    return "\n\n".join([intro, *(_piped(table) for table in tables)]) + "\n"


def write_files(results: Results, verdicts: list[Verdict]) -> None:
    """Write the JSON, the Markdown and the chart into `results/`."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "latest.json").write_text(json.dumps(results, indent=2) + "\n")
    (RESULTS / "latest.md").write_text(markdown(results, verdicts))
    rows = [row for row in results["calls"] if not row["is_information"]]
    if rows:
        values = {row["name"]: row["call_us"]["median"] for row in rows}
        (RESULTS / "latest.svg").write_text(bars("One tool call, median us", values, ours="toolgate"))


def write_docs(results: Results, verdicts: list[Verdict]) -> None:
    """Replace the generated section of the documentation page; raise when its markers are missing."""
    page = DOCS_PAGE.read_text()
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{DOCS_PAGE.name} has no section between {BEGIN} and {END}. Put the markers back.")
    DOCS_PAGE.write_text(f"{before}{BEGIN}\n{markdown(results, verdicts)}{END}{after}")


def _tables(results: Results) -> list[Table]:
    return [
        _call_table(results["calls"]),
        _start_table(results["start"]),
        _parking_table(results["parking"]),
        _durable_table(results["durable"] | {"decision": results["decision"]}),
        _diff_table(results["diff"]),
        _server_table(results["server"]),
        _agent_table(results["agent"]),
        _policy_table(results["policy"]),
    ]


def _call_table(rows: list[dict[str, Any]]) -> Table:
    header = [
        "contender",
        "version",
        "path",
        "median us",
        "min us",
        "toolgate is",
        "by minima",
        "parallel /s",
    ]
    ours = next((row for row in rows if row["name"] == "toolgate"), None)
    body = []
    for row in sorted(rows, key=lambda one: (one["is_information"], one["call_us"]["median"])):
        times = (row["call_us"]["median"], row["raw_us"]["min"])
        own = (ours["call_us"]["median"], ours["raw_us"]["min"]) if ours else None
        ratios = [f"{mine / other:.2f}x" for mine, other in zip(own, times, strict=True)] if own else ["", ""]
        body.append(
            [
                f"({row['name']})" if row["is_information"] else row["name"],
                row["version"],
                row["path"],
                *(f"{value:.1f}" for value in times),
                *ratios,
                f"{row['parallel_per_s']['median']:,.0f}",
            ]
        )
    return header, body


def _start_table(start: dict[str, Any]) -> Table:
    titles = {
        "toolgate": "import toolgate, open, first governed call",
        "pydantic": "import pydantic, define a model, first validation",
        "pydantic_asyncio": "(the same inside `asyncio.run`)",
    }
    body = []
    for name, title in titles.items():
        if name in start:
            times = start[name]["start_ms"]
            body.append([title, f"{times['median']:.0f}", f"{times['min']:.0f}"])
    return ["start-up", "median ms", "min ms"], body


def _parking_table(parking: dict[str, Any]) -> Table:
    body = []
    for name in ("one", "many"):
        if name in parking:
            row = parking[name]
            body.append(
                [
                    f"{row['parked']:,}",
                    f"{row['growth_mb']['median']:.1f}",
                    f"{row['wake_p50_us']['median']:.0f}",
                    f"{row['wake_p95_us']['median']:.0f}",
                ]
            )
    return ["calls parked", "memory MB", "wake p50 us", "wake p95 us"], body


DURABLE = (
    ("fsynced changes, 256 tasks", "changes", "ours_per_s", "/s"),
    ("the same rows in a raw loop", "changes", "raw_per_s", "/s"),
    ("the same, aiosqlite, one transaction each", "aiosqlite", "per_s", "/s"),
    ("approval workflows, 256 tasks", "approvals", "ours_per_s", "/s"),
    ("their four transitions alone", "approvals", "bare_per_s", "/s"),
    ("decision committed to handler start, p50", "decision", "handler_us", "us"),
    ("one fsynced commit, p50", "decision", "commit_us", "us"),
    ("kill-safe call, p50", "call", "sqlite_us", "us"),
    ("memory call, p50", "call", "memory_us", "us"),
    ("opening 110,000 calls", "reopen", "ours_ms", "ms"),
    ("sqlite3: opening and counting", "reopen", "plain_ms", "ms"),
    ("(first opening of the process, modules loaded by it)", "reopen", "first_ms", "ms"),
)


def _durable_table(durable: dict[str, Any]) -> Table:
    body = []
    for title, name, key, unit in DURABLE:
        if durable.get(name):
            numbers = durable[name][key]
            best = numbers["max" if unit == "/s" else "min"]
            digits = 1 if unit == "ms" else 0
            body.append([title, unit, f"{numbers['median']:,.{digits}f}", f"{best:,.{digits}f}"])
    return ["SQLite", "unit", "median", "best"], body


def _diff_table(diff: dict[str, Any]) -> Table:
    titles = {
        "text_unique": "text, unique lines, 1 % changed",
        "text_150": "text, 150 distinct lines, 1 % changed",
        "text_log": "repetitive log, 200 lines inserted",
        "json_changed": "JSON, 1 % changed",
        "json_head": "JSON list, one head insertion",
    }
    body = []
    for case, contenders in diff.items():
        for name, numbers in contenders.items():
            counts = f"+{numbers['additions']['max']:.0f} -{numbers['deletions']['max']:.0f}"
            body.append([titles[case], name, f"{numbers['ms']['median']:,.0f}", f"{numbers['ms']['min']:,.0f}", counts])
    return ["diff of 1 MB", "by", "median ms", "min ms", "counts"], body


SERVER = (
    ("approve POSTs", "posts", "approve_per_s", "/s"),
    ("result POSTs", "posts", "result_per_s", "/s"),
    ("the same load on a bare route with one durable write", "posts", "bare_per_s", "/s"),
    ("(approve POSTs where the server also claims and offers the calls)", "posts", "approve_and_claim_per_s", "/s"),
    ("memory of a stream", "streams", "ours_memory_kb", "KB"),
    ("memory of a bare stream", "streams", "bare_memory_kb", "KB"),
    ("CPU of a delivery", "streams", "ours_delivery_us", "us"),
    ("CPU of a bare delivery", "streams", "bare_delivery_us", "us"),
)


def _server_table(server: dict[str, Any]) -> Table:
    body = []
    for title, name, key, unit in SERVER:
        if server.get(name):
            numbers = server[name][key]
            best = numbers["max" if unit == "/s" else "min"]
            body.append([title, unit, f"{numbers['median']:,.1f}", f"{best:,.1f}"])
    return ["server", "unit", "median", "best"], body


AGENT = (
    ("conversation with 20 calls, 5 of them approved over HTTP", "conversation_ms", "ms"),
    ("its bare HTTP round trips and commits", "bare_ms", "ms"),
    ("memory of a conversation that waits for a person", "waiting_kb", "KB"),
)


def _agent_table(agent: dict[str, Any]) -> Table:
    body = []
    for title, key, unit in AGENT if agent else ():
        numbers = agent[key]
        body.append([title, unit, f"{numbers['median']:,.1f}", f"{numbers['min']:,.1f}"])
    return ["agent", "unit", "median", "best"], body


def _policy_table(policy: dict[str, Any]) -> Table:
    body = [
        [name, f"{numbers['per_s']['median']:,.0f}", f"{numbers['per_s']['max']:,.0f}"]
        for name, numbers in policy.items()
    ]
    return ["policy of 200 tools", "median decisions/s", "max decisions/s"], body


def _verdict_table(verdicts: list[Verdict]) -> Table:
    words = {True: "reached", False: "MISSED", None: "not measured"}
    body = []
    for verdict in verdicts:
        unit = verdict.unit
        pair = (verdict.measured, verdict.of_minima)
        numbers = ["" if number is None else f"{number:.2f}{unit}" for number in pair]
        sign = ">=" if verdict.at_least else "<="
        body.append([verdict.title, f"{sign} {verdict.limit:g}{unit}", *numbers, words[verdict.is_reached]])
    return ["target", "limit", "medians", "best rounds", "verdict"], body


def _aligned(table: Table) -> str:
    header, body = table
    body = [[cell.replace("`", "") for cell in line] for line in body]
    lines = [header, *body]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    rule = ["-" * width for width in widths]
    padded = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in (header, rule, *body)
    ]
    return "\n".join(padded)


def _piped(table: Table) -> str:
    header, body = table
    lines = [header, ["---"] * len(header), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
