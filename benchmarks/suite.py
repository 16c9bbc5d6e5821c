"""Measure Toolgate and its peers in one run, print the tables and targets, and put them into the docs page.

Rounds are interleaved (every contender once, then every contender again) and each measurement is a fresh
process on one core, so that a noisy machine is noisy for all alike. Exit code 1 when a target is missed.
"""

import argparse
import os
import platform
import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import page, report
from benchmarks.contenders import CONTENDERS, GROUPS, Contender, MeasurementFailedError, measure, own_python
from benchmarks.diffs import measure_diffs
from benchmarks.durable import measure_durable
from benchmarks.environments import ENVIRONMENTS, EnvironmentFailedError, ensure
from benchmarks.policies import measure_policies
from benchmarks.targets import PARKED, SECTIONS, judge

STARTS = {
    "toolgate": ("benchmarks/toolgate_startup.py",),
    "pydantic": ("benchmarks/pydantic_startup.py",),
    "pydantic_asyncio": ("benchmarks/pydantic_startup.py", "--asyncio"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is measured: rounds, calls per batch, start-ups, parked calls, decisions, rounds of the sections."""

    rounds: int
    calls: int
    starts: int
    parked: int
    decisions: int
    parking_rounds: int
    durable_rounds: int
    diff_rounds: int
    policy_rounds: int


FULL = Size(
    rounds=15,
    calls=4000,
    starts=15,
    parked=PARKED,
    decisions=200,
    parking_rounds=3,
    durable_rounds=5,
    diff_rounds=3,
    policy_rounds=5,
)
QUICK = Size(
    rounds=5,
    calls=2000,
    starts=5,
    parked=PARKED,
    decisions=50,
    parking_rounds=1,
    durable_rounds=1,
    diff_rounds=1,
    policy_rounds=1,
)
CORES = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else frozenset[int]()


def say(text: str) -> None:
    """Print a progress line on the error stream, so that the tables can be piped."""
    print(text, file=sys.stderr, flush=True)


def pin_to_one_core() -> bool:
    """Keep this process and all it starts on the last core allowed; False where that is unsupported."""
    if not hasattr(os, "sched_setaffinity"):
        return False
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    return True


def use_all_cores() -> None:
    """Take `pin_to_one_core` back."""
    if CORES:
        os.sched_setaffinity(0, CORES)


def summary(values: Iterable[float]) -> dict[str, Any]:
    """Return median, minimum and the values themselves, rounded to what a reader can use."""
    kept = [round(value, 3) for value in values]
    return {"median": statistics.median(kept), "min": min(kept), "max": max(kept), "rounds": kept}


def interpreters(chosen: list[Contender]) -> dict[str, Path]:
    """Return an interpreter per contender; one whose environment cannot be built is named and left out."""
    found: dict[str, Path] = {}
    for contender in chosen:
        if contender.environment is None:
            found[contender.name] = own_python()
            continue
        try:
            found[contender.name] = ensure(ENVIRONMENTS[contender.environment], say=say)
        except EnvironmentFailedError as error:
            say(f"{contender.name}: left out, its environment could not be built: {error}")
    return found


def measure_calls(chosen: list[Contender], size: Size) -> list[dict[str, Any]]:
    """Return one row per contender; a failed round is named and missing from its row."""
    pythons = interpreters(chosen)
    pin_to_one_core()
    lines: dict[str, list[dict[str, Any]]] = {name: [] for name in pythons}
    for number in range(1, size.rounds + 1):
        for contender in [one for one in chosen if one.name in lines]:
            calls = str(max(size.calls // contender.slowness, 50))
            try:
                line = measure(
                    pythons[contender.name],
                    "-m",
                    "benchmarks.measure",
                    f"benchmarks/{contender.script}",
                    contender.case or contender.name,
                    f"--work={contender.work}",
                    f"--calls={calls}",
                    is_own=contender.environment is None,
                )
            except MeasurementFailedError as error:
                say(f"round {number}/{size.rounds} {contender.name}: failed: {error}")
                if not lines[contender.name]:
                    del lines[contender.name]  # it never worked: the other rounds need not wait for it
                continue
            lines[contender.name].append(line)
            say(f"round {number}/{size.rounds} {contender.name}: {line['raw_us']:.1f} us")
    quickest = min((line["reference_us"] for kept in lines.values() for line in kept), default=0.0)
    return [_row(contender, lines[contender.name], quickest) for contender in chosen if lines.get(contender.name)]


def _commit(contender: Contender) -> str | None:
    return ENVIRONMENTS[contender.environment].commit if contender.environment else None


def _row(contender: Contender, lines: list[dict[str, Any]], quickest_us: float) -> dict[str, Any]:
    """Return a contender's row; `call_us` is the CPU time of a call while the core runs at its quickest."""
    return {
        "name": contender.name,
        "group": contender.group,
        "path": contender.path,
        "is_ours": contender.is_ours,
        "is_information": contender.is_information,
        "version": _commit(contender) or lines[0]["version"],
        "pydantic": lines[0]["pydantic"],
        "call_us": summary(line["references"] * quickest_us for line in lines),
        "raw_us": summary(line["raw_us"] for line in lines),
        "parallel_per_s": summary(line["parallel_per_s"] for line in lines),
    }


def measure_starts(size: Size) -> dict[str, Any]:
    """Return start-up times; each script runs once unmeasured first, so that bytecode exists for all."""
    pin_to_one_core()
    values: dict[str, list[float]] = {name: [] for name in STARTS}
    for number in range(size.starts + 1):
        for name in list(values):
            try:
                line = measure(own_python(), *STARTS[name], is_own=True)
            except MeasurementFailedError as error:
                say(f"start of {name}: left out, measuring failed: {error}")
                del values[name]
                continue
            if number:
                values[name].append(line["start_ms"])
    say(f"start-up: {size.starts} processes each")
    return {name: {"start_ms": summary(kept)} for name, kept in values.items() if kept}


def measure_parking(size: Size) -> dict[str, Any]:
    """Return memory and wake latency with many calls parked and with one, in alternating processes."""
    pin_to_one_core()
    lines: dict[str, list[dict[str, Any]]] = {"one": [], "many": []}
    for number in range(1, size.parking_rounds + 1):
        for name, parked in (("one", 1), ("many", size.parked)):
            arguments = (f"--parked={parked}", f"--decisions={size.decisions}")
            try:
                line = measure(own_python(), "-m", "benchmarks.toolgate_parking", *arguments, is_own=True)
            except MeasurementFailedError as error:
                say(f"parking: left out, measuring failed: {error}")
                return {}
            lines[name].append(line)
            say(f"parking {number}/{size.parking_rounds}, {parked} parked: wake {line['wake_p50_us']:.0f} us")
    keys = ("growth_mb", "park_all_s", "wake_p50_us", "wake_p95_us", "wake_references")
    return {
        name: {"parked": kept[0]["parked"], **{key: summary(line[key] for line in kept) for key in keys}}
        for name, kept in lines.items()
    }


def measure_durability(size: Size) -> dict[str, Any]:
    """Return a summary of every number of the durable section, by script and name."""
    use_all_cores()
    lines = measure_durable(size.durable_rounds, say=say)
    return {
        name: {key: summary(line[key] for line in kept) for key in kept[0] if isinstance(kept[0][key], float)}
        for name, kept in lines.items()
    }


def measure_decision(size: Size) -> dict[str, Any]:
    """Return how long a decision takes to reach its handler, and one fsynced commit, in as many processes."""
    use_all_cores()
    lines = []
    for number in range(1, size.durable_rounds + 1):
        try:
            line = measure(own_python(), "-m", "benchmarks.sqlite_decision", is_own=True)
        except MeasurementFailedError as error:
            say(f"decision: left out, measuring failed: {error}")
            return {}
        lines.append(line)
        say(f"decision {number}/{size.durable_rounds}: {line['handler_us']:.0f} us, commit {line['commit_us']:.0f} us")
    return {key: summary(line[key] for line in lines) for key in ("handler_us", "commit_us")}


def measure_server(size: Size) -> dict[str, Any]:
    """Return a summary of every number of the server, by script; what fails is named and left out."""
    use_all_cores()
    found: dict[str, Any] = {}
    scripts = {"posts": "server_posts", "streams": "server_streams", "large": "server_large"}
    for name, script in scripts.items():
        lines = []
        for number in range(1, (size.durable_rounds + 1) // 2 + 1):
            try:
                lines.append(measure(own_python(), "-m", f"benchmarks.{script}", is_own=True))
            except MeasurementFailedError as error:
                say(f"server {name}: left out, measuring failed: {error}")
                break
            say(f"server {name} {number}")
        else:
            found[name] = {key: summary(line[key] for line in lines) for key in lines[0]}
    return found


def measure_agent(size: Size) -> dict[str, Any]:
    """Return what a conversation with the agent takes, beside its bare parts, and what waiting ones hold."""
    use_all_cores()
    lines = []
    for number in range(1, (size.durable_rounds + 1) // 2 + 1):
        try:
            line = measure(own_python(), "-m", "benchmarks.agent_conversation", is_own=True)
        except MeasurementFailedError as error:
            say(f"agent: left out, measuring failed: {error}")
            return {}
        lines.append(line)
        say(f"agent {number}: {line['conversation_ms']:.0f} ms, bare parts {line['bare_ms']:.0f} ms")
    return {key: summary(line[key] for line in lines) for key in lines[0]}


def measure_policy(size: Size) -> dict[str, Any]:
    """Return a summary of every number of the policy section, by contender."""
    pin_to_one_core()
    lines = measure_policies(size.policy_rounds, say=say)
    return {
        name: {key: summary(line[key] for line in kept) for key in kept[0] if isinstance(kept[0][key], float)}
        for name, kept in lines.items()
    }


def measure_sandbox(size: Size) -> dict[str, Any]:
    """Return what the sandbox and the built-in tools take, and what they are compared with."""
    use_all_cores()
    lines = []
    for number in range(1, size.durable_rounds + 1):
        try:
            line = measure(own_python(), "-m", "benchmarks.sandbox_calls", is_own=True)
        except MeasurementFailedError as error:
            say(f"sandbox: left out, measuring failed: {error}")
            return {}
        lines.append(line)
        say(
            f"sandbox {number}/{size.durable_rounds}: start {line['confined_ms']:.1f} ms, read {line['read_us']:.0f} us"
        )
    return {key: summary(line[key] for line in lines) for key in lines[0]}


def measure_texts(what: str, size: Size) -> dict[str, Any]:
    """Return how many MB of each kind of text are masked, or become a card, in a second of the CPU."""
    pin_to_one_core()
    lines = []
    for number in range(1, size.diff_rounds + 1):
        try:
            line = measure(own_python(), "-m", f"benchmarks.{what}", is_own=True)
        except MeasurementFailedError as error:
            say(f"{what}: left out, measuring failed: {error}")
            return {}
        lines.append(line)
        speeds = [speed for kind, speed in line.items() if kind != "call_us"]
        say(f"{what} {number}/{size.diff_rounds}: from {min(speeds):.0f} to {max(speeds):.0f} MB/s")
    return {kind: summary(line[kind] for line in lines) for kind in lines[0]}


def measure_keys(size: Size) -> dict[str, Any]:
    """Return what a call takes of the CPU without an effect key, with one, and where a doubt is looked for."""
    pin_to_one_core()
    lines = []
    for number in range(1, size.diff_rounds + 1):
        try:
            lines.append(measure(own_python(), "-m", "benchmarks.effect_keys", is_own=True))
        except MeasurementFailedError as error:
            say(f"keys: left out, measuring failed: {error}")
            return {}
        say(f"keys {number}/{size.diff_rounds}: {lines[-1]['key_added_us']:+.1f} us")
    return {what: summary(line[what] for line in lines) for what in lines[0]}


def measure_adapters(size: Size) -> dict[str, Any]:
    """Return what a framework's tool call takes of the CPU by itself and through an adapter."""
    pin_to_one_core()
    lines = []
    for number in range(1, size.diff_rounds + 1):
        try:
            lines.append(measure(own_python(), "-m", "benchmarks.adapters", is_own=True))
        except MeasurementFailedError as error:
            say(f"adapters: left out, measuring failed: {error}")
            return {}
        say(f"adapters {number}/{size.diff_rounds}: {lines[-1]['adapter_added_us']:+.1f} us")
    return {what: summary(line[what] for line in lines) for what in lines[0]}


def measure_differences(size: Size) -> dict[str, Any]:
    """Return a summary of every number of the diff section, by case and contender."""
    pin_to_one_core()
    lines = measure_diffs(size.diff_rounds, say=say)
    return {
        case: {name: {key: summary(line[key] for line in kept) for key in kept[0]} for name, kept in contenders.items()}
        for case, contenders in lines.items()
    }


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the command line's options; `wanted` is what is to be measured, each by its own name."""
    names = [contender.name for contender in CONTENDERS]
    groups = {group: [one.name for one in CONTENDERS if one.group == group] for group in GROUPS}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only",
        action="append",
        metavar="NAME",
        choices=[*names, *groups, *SECTIONS],
        help=f"measure only this; may be repeated. One of {', '.join([*names, *groups, *SECTIONS])}",
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds; for a first look, never for the docs")
    parser.add_argument(
        "--write-docs",
        action=argparse.BooleanOptionalAction,
        help="put what was measured into the documentation page; without --quick that is done unless you say no",
    )
    options = parser.parse_args(arguments)
    if options.quick and options.write_docs:
        parser.error("the figures of a quick run are rough: leave out --quick or --write-docs")
    if options.write_docs is None:
        options.write_docs = not options.quick
    asked = options.only or [*names, *SECTIONS]
    options.wanted = {one for name in asked for one in groups.get(name, [name])}
    return options


def main() -> int:
    """Measure what was asked for, report it and return the exit code."""
    options = parse()
    wanted = options.wanted
    size = QUICK if options.quick else FULL
    chosen = [contender for contender in CONTENDERS if contender.name in wanted]
    results: dict[str, Any] = {
        "measured_on": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "is_quick": options.quick,
        "rounds": size.rounds,
        "calls": measure_calls(chosen, size) if chosen else [],
        "start": measure_starts(size) if "start" in wanted else {},
        "parking": measure_parking(size) if "parking" in wanted else {},
        "durable": measure_durability(size) if "durable" in wanted else {},
        "decision": measure_decision(size) if "decision" in wanted else {},
        "sandbox": measure_sandbox(size) if "sandbox" in wanted else {},
        "diff": measure_differences(size) if "diff" in wanted else {},
        "masking": measure_texts("masking", size) if "masking" in wanted else {},
        "cards": measure_texts("cards", size) if "cards" in wanted else {},
        "keys": measure_keys(size) if "keys" in wanted else {},
        "adapters": measure_adapters(size) if "adapters" in wanted else {},
        "server": measure_server(size) if "server" in wanted else {},
        "agent": measure_agent(size) if "agent" in wanted else {},
        "policy": measure_policy(size) if "policy" in wanted else {},
    }
    verdicts = judge(results)
    results["targets"] = [verdict.as_json() for verdict in verdicts]
    print(report.terminal(results, verdicts))
    if options.only is None:
        report.write_files(results, verdicts)
    if options.write_docs:
        page.write_targets(page.PAGE, verdicts, measured=report.conditions(results))
    if options.write_docs and options.only is None:
        page.write_tables(page.PAGE, report.tables(results))
    missed = [verdict for verdict in verdicts if verdict.is_reached is False]
    unmeasured = [verdict for verdict in verdicts if verdict.is_reached is None and options.only is None]
    return 1 if missed or unmeasured else 0


if __name__ == "__main__":
    raise SystemExit(main())
