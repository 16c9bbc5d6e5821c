"""The load report: measure, print the tables and the targets, and write the documentation page.

`python -m benchmarks.scale.suite [--quick] [--only SECTION] [--write-docs]`, which `make bench-scale` runs. Exit code 1
when a target is missed or was not measured.
"""

import argparse
import asyncio
import os
import platform
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.contenders import REPOSITORY
from benchmarks.report import RESULTS
from benchmarks.scale import sections
from benchmarks.scale.report import Report
from benchmarks.scale.stores import Places
from benchmarks.scale.studies import Study
from benchmarks.scale.targets import Found, judge, measure_targets
from tests.postgres import KEY, Cluster, program

PAGE = REPOSITORY / "docs" / "explanation" / "scaling.md"
IMAGES = REPOSITORY / "docs" / "images"
SECTIONS = ("targets", "stores", "servers", "workers", "pending", "events")


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is measured."""

    seconds: float
    decisions: int
    calls: int
    tasks: tuple[int, ...]
    pending: tuple[int, ...] = (10, 100, 1000, 100_000)
    events: tuple[int, ...]


FULL = Size(
    seconds=5.0,
    decisions=300,
    calls=40,
    tasks=(1, 4, 16, 64, 256, 1024),
    events=(1000, 100_000, 1_000_000, 10_000_000),
)
QUICK = Size(seconds=1.5, decisions=100, calls=20, tasks=(1, 16, 64, 256), events=(1000, 100_000, 1_000_000))
TINY = Size(
    seconds=0.2, decisions=10, calls=2, tasks=(1, 16), pending=(10, 100), events=(1000, 30_000)
)  # whether everything works


def say(text: str) -> None:
    """Print a progress line on the error stream, so that the tables can be piped."""
    print(f"{datetime.now(UTC):%H:%M:%S} {text}", file=sys.stderr, flush=True)


def conditions(size: Size, load_before: float) -> str:
    """Say when, on what and how this was measured, in words that fit any machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    found = subprocess.run([program("postgres") or "postgres", "--version"], capture_output=True, text=True, check=True)
    version = found.stdout.split()[2]
    form = "the quick form" if size is QUICK else "the full form" if size is FULL else "a trial form, good for nothing"
    return (
        f"Measured on {datetime.now(UTC).date().isoformat()} in {form}, with Python {platform.python_version()} and "
        f"PostgreSQL {version} (fsync on, 64 MB of shared buffers) on {platform.system()} {platform.machine()} with "
        f"{os.cpu_count()} cores and {memory:.0f} GB of memory. Database, servers, workers and whoever makes the load "
        f"share these cores. The load average was {load_before:.1f} before the run: what is above zero was not ours."
    )


async def measure(places: Places, size: Size, wanted: set[str]) -> tuple[Found, list[Study]]:
    """Measure the sections that are wanted."""
    found, studies = Found(), []
    if "targets" in wanted:
        found = await measure_targets(places, seconds=size.seconds, decisions=size.decisions, calls=size.calls, say=say)
    if "stores" in wanted:
        studies.append(await sections.by_store(places, tasks=size.tasks, seconds=size.seconds, say=say))
    if "servers" in wanted:
        studies.append(await sections.by_servers(places, seconds=size.seconds, say=say))
    if "workers" in wanted:
        studies.append(await sections.by_workers(places, seconds=size.seconds, say=say))
    if "pending" in wanted:
        study, found.pending = await sections.by_pending(places, counts=size.pending, decisions=size.decisions, say=say)
        studies.append(study)
    if "events" in wanted:
        studies.append(await sections.by_events(places, sizes=size.events, seconds=size.seconds, say=say))
    return found, studies


def parse() -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(description=__doc__)
    how_much = parser.add_mutually_exclusive_group()
    how_much.add_argument("--quick", action="store_true", help="a few minutes: up to 1,000,000 events")
    how_much.add_argument(
        "--tiny", action="store_true", help="seconds: whether everything works; the numbers say nothing"
    )
    parser.add_argument("--only", action="append", choices=SECTIONS, help="measure only this; may be repeated")
    parser.add_argument("--write-docs", action="store_true", help="put tables and pictures into the documentation page")
    return parser.parse_args()


def main() -> int:
    """Measure what was asked for, report it and return the exit code."""
    options = parse()
    if options.write_docs and (options.only or options.tiny):
        raise SystemExit("--write-docs replaces the whole section: leave --only and --tiny away.")
    size = QUICK if options.quick else TINY if options.tiny else FULL
    os.environ["TOOLGATE_KEY"] = KEY
    load_before = os.getloadavg()[0]
    cluster = Cluster(fsync=True)
    try:
        with tempfile.TemporaryDirectory() as folder:
            places = Places(Path(folder), cluster)
            found, studies = asyncio.run(measure(places, size, set(options.only or SECTIONS)))
    finally:
        cluster.close()
    report = Report(
        conditions=conditions(size, load_before), verdicts=judge(found), figures=found.figures(), studies=studies
    )
    print(report.terminal())
    report.write_results(RESULTS / "scale.json")
    if options.write_docs:
        report.write_docs(PAGE, IMAGES)
    reached = [verdict.is_reached for verdict in report.verdicts]
    return 0 if all(reached) or (options.only and False not in reached) else 1


if __name__ == "__main__":
    raise SystemExit(main())
