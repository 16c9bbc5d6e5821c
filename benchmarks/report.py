"""Turn results into the terminal tables, `results/latest.json`, Markdown tables and a chart.

Formatting only: nothing here decides whether a target is reached. What the docs page keeps of it is `page.py`'s.
"""

import json
from pathlib import Path
from typing import Any

from benchmarks.chart import bars
from benchmarks.targets import Results, Verdict

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"

Table = tuple[list[str], list[list[str]]]


def terminal(results: Results, verdicts: list[Verdict]) -> str:
    """Return everything measured as aligned plain text, the verdicts last."""
    blocks = [aligned(table) for table in _tables(results) if table[1]]
    return "\n\n".join([*blocks, conditions(results), aligned(verdict_table(verdicts))])


def conditions(results: Results) -> str:
    """Return when and on what was measured, for one line or one cell."""
    return f"{results['measured_on']}, {results['machine']}, Python {results['python']}"


def markdown(results: Results, verdicts: list[Verdict]) -> str:
    """Return everything measured as Markdown tables, the verdicts first."""
    return f"{piped(verdict_table(verdicts))}\n\n{tables(results)}"


def tables(results: Results) -> str:
    """Return the figures behind the verdicts as Markdown tables with the conditions in front."""
    quick = " This was a quick run: the numbers are rough." if results["is_quick"] else ""
    intro = (
        f"Measured on {results['measured_on']} with Python {results['python']} on {results['machine']}: "
        f"{results['rounds']} interleaved rounds, each in a fresh process on one core.{quick}"
    )
    return "\n\n".join([intro, *(piped(table) for table in _tables(results) if table[1])]) + "\n"


def write_files(results: Results, verdicts: list[Verdict]) -> None:
    """Write the JSON, the Markdown and the chart into `results/`."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "latest.json").write_text(json.dumps(results, indent=2) + "\n")
    (RESULTS / "latest.md").write_text(markdown(results, verdicts))
    rows = [row for row in results["calls"] if row["group"] == "call" and not row["is_information"]]
    if rows:
        values = {row["name"]: row["call_us"]["median"] for row in rows}
        (RESULTS / "latest.svg").write_text(bars("One tool call, median us", values, ours="toolgate"))


def replace_section(page: Path, begin: str, end: str, text: str) -> None:
    """Replace what stands between two markers of a page; raise when they are missing."""
    before, found_begin, rest = page.read_text(encoding="utf-8").partition(begin)
    _, found_end, after = rest.partition(end)
    if not found_begin or not found_end:
        raise SystemExit(f"{page.name} has no section between {begin} and {end}. Put the markers back.")
    page.write_text(f"{before}{begin}\n{text}{end}{after}", encoding="utf-8")


def _tables(results: Results) -> list[Table]:
    return [
        *(
            _call_table(title, [row for row in results["calls"] if row["group"] == group])
            for group, title in GROUP_TITLES.items()
        ),
        _start_table(results["start"]),
        _parking_table(results["parking"]),
        _durable_table(results["durable"] | {"decision": results["decision"]}),
        _diff_table(results["diff"]),
        _text_table("masking 1 MB", results["masking"]),
        _text_table("card of 1 MB", results["cards"]),
        _key_table(results["keys"]),
        _adapter_table(results["adapters"]),
        _server_table(results["server"]),
        _agent_table(results["agent"]),
        _policy_table(results["policy"]),
    ]


GROUP_TITLES = {
    "call": "flat call",
    "form_300": "call with a form of 300 bytes",
    "form_2k": "call with a form of 2 KB",
    "approval": "approval workflow, form of 300 bytes",
}


def _call_table(title: str, rows: list[dict[str, Any]]) -> Table:
    header = [
        title,
        "version",
        "path",
        "median CPU us",
        "min CPU us",
        "toolgate is",
        "by minima",
        "parallel /s",
    ]
    ours = next((row for row in rows if row["is_ours"]), None)
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


KEYS = {
    "none_us": "call of a tool with declared effects",
    "key_us": "with an effect key",
    "doubt_us": "irreversible, without a key",
    "run_us": "the same in a run",
}


def _key_table(found: dict[str, Any]) -> Table:
    body = [
        [title, f"{found[what]['median']:.1f}", f"{found[what]['min']:.1f}"] for what, title in KEYS.items() if found
    ]
    return ["effect keys, in memory", "median us", "best us"], body


ADAPTERS = {
    "ungoverned_us": "Pydantic AI's tool manager, ungoverned",
    "governed_us": "the same through the adapter",
    "adapter_added_us": "what the adapter adds",
    "wrap_added_us": "what `gate.wrap` adds to a function",
}


def _adapter_table(found: dict[str, Any]) -> Table:
    body = [
        [title, f"{found[what]['median']:.1f}", f"{found[what]['min']:.1f}"]
        for what, title in ADAPTERS.items()
        if found
    ]
    return ["no-op through a framework, in memory", "median us", "best us"], body


def _text_table(what: str, speeds: dict[str, Any]) -> Table:
    body = [
        [kind, f"{speed['median']:,.0f}", f"{speed['max']:,.0f}"] for kind, speed in speeds.items() if kind != "call_us"
    ]
    return [what, "median MB/s", "best MB/s"], body


SERVER = (
    ("approve POSTs", "posts", "approve_per_s", "/s"),
    ("result POSTs", "posts", "result_per_s", "/s"),
    ("the same load on a bare route with one durable write", "posts", "bare_per_s", "/s"),
    ("(approve POSTs where the server also claims and offers the calls)", "posts", "approve_and_claim_per_s", "/s"),
    ("memory of a stream", "streams", "ours_memory_kb", "KB"),
    ("memory of a bare stream", "streams", "bare_memory_kb", "KB"),
    ("CPU of a delivery", "streams", "ours_delivery_us", "us"),
    ("CPU of a bare delivery", "streams", "bare_delivery_us", "us"),
    ("/healthz during 20 calls of 1 MB, median", "large", "health_p50_ms", "ms"),
    ("/healthz during 20 calls of 1 MB, 99th percentile", "large", "health_p99_ms", "ms"),
    ("/healthz during 20 calls of 1 MB, worst", "large", "health_worst_ms", "ms"),
    ("/healthz while nothing happens, 99th percentile", "large", "quiet_p99_ms", "ms"),
    ("one of 20 calls of 1 MB", "large", "large_call_ms", "ms"),
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


WORDS = {True: "reached", False: "MISSED", None: "not measured"}


def verdict_table(verdicts: list[Verdict]) -> Table:
    """Each target with its limit, what was measured, and whether it is reached."""
    return ["target", "limit", "medians", "best rounds", "verdict"], [verdict_row(verdict) for verdict in verdicts]


def verdict_row(verdict: Verdict) -> list[str]:
    """One line of the table of targets."""
    unit = verdict.unit
    pair = (verdict.measured, verdict.of_minima)
    numbers = ["" if number is None else f"{number:.2f}{unit}" for number in pair]
    limit = f"{'>=' if verdict.at_least else '<='} {round(verdict.limit, 3):g}{unit}"
    return [verdict.title, limit, *numbers, WORDS[verdict.is_reached]]


def aligned(table: Table) -> str:
    """A table for the terminal."""
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


def piped(table: Table) -> str:
    """A table in Markdown."""
    header, body = table
    lines = [header, ["---"] * len(header), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
