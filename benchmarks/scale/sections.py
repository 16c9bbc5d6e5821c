"""The questions of the load report, each a study: what is varied, what is measured, what to know about it."""

from collections.abc import Callable

from benchmarks.contenders import MeasurementFailedError
from benchmarks.scale import events as long_chains
from benchmarks.scale import pending as crowds
from benchmarks.scale.fleet import CONCURRENCY, TASKS, together, workers
from benchmarks.scale.load import Load, drive
from benchmarks.scale.stores import STORES, Places
from benchmarks.scale.studies import Column, Point, Study
from benchmarks.scale.tools import POLICY, TOOLS

import toolgate

Say = Callable[[str], None]

SERVERS = (1, 2, 3)
WORKERS = (1, 2, 4)
TO_ESTIMATE = 10_000_000
_LOAD = {
    "per_s": Column(heading="per second", is_rate=True),
    "p50_ms": Column(heading="p50 ms", digits=1),
    "p95_ms": Column(heading="p95 ms", digits=1),
}


def _point(series: str, x: int, load: Load) -> Point:
    return Point(series=series, x=x, values=load._asdict())


async def by_store(places: Places, *, tasks: tuple[int, ...], seconds: float, say: Say) -> Study:
    """Calls and approval workflows through one gate, by store and by how many are under way."""
    study = Study(
        name="stores",
        title="Store and concurrency",
        x_label="at once",
        about=(
            "One process with a gate; the tool has effects, so its claim is on the disk before it starts (memory keeps "
            "nothing). A call is received, claimed, run and recorded; an approval is asked for, decided, claimed, run "
            "and recorded. Both durable stores commit in groups: one alone waits for the disk, many share the wait."
        ),
        columns=_LOAD,
        drawn=("per_s", "p50_ms"),
    )
    for tool, kind in (("send", "call"), ("pay", "approval")):
        for store in STORES:
            for count in tasks:
                async with places.empty(store) as url, toolgate.open(url, tools=TOOLS, policy=POLICY) as gate:
                    load = await drive(gate, tool, tasks=count, seconds=seconds)
                study.points.append(_point(f"{store}, {kind}", count, load))
                say(f"stores: {store}, {kind}: {load.per_s:.0f}/s with {count} at once")
    return study


async def by_servers(places: Places, *, seconds: float, say: Say) -> Study:
    """Approval workflows of several servers that run their tools themselves, on one project and on one each."""
    study = Study(
        name="servers",
        title="Servers",
        x_label="servers",
        about=(
            f"Each server is a process with a gate and {TASKS} tasks that ask, approve and run; HTTP is left "
            "out, because whoever sends the requests would take more of these cores than the servers. On one project "
            "all servers extend the same chain and take turns at its head; with a project each, they do not meet."
        ),
        columns=_LOAD,
        drawn=("per_s", "p50_ms"),
    )
    for name, is_shared in (("one project", True), ("a project each", False)):
        for count in SERVERS:
            projects = ["default" if is_shared else f"project-{number}" for number in range(count)]
            async with places.empty("PostgreSQL") as url:
                try:
                    load = await together(url, projects, tool="pay", tasks=TASKS, seconds=seconds)
                except MeasurementFailedError as error:
                    say(f"servers: {count}, {name}: left out, measuring failed: {error}")
                    continue
            study.points.append(_point(name, count, load))
            say(f"servers: {count}, {name}: {load.per_s:.0f}/s")
    return study


async def by_workers(places: Places, *, seconds: float, say: Say) -> Study:
    """Approval workflows whose handlers run at workers, by servers and workers."""
    study = Study(
        name="workers",
        title="Servers and workers",
        x_label="workers",
        about=(
            f"The same workflow with its handler at `toolgate worker` ({CONCURRENCY} calls at a time). The handler "
            "does nothing, so this is the whole cost of sending it there: an order through the queue, and the commit "
            "that names the worker. A handler that takes a while hides that cost: there more workers pay sooner."
        ),
        columns=_LOAD,
        drawn=("per_s", "p50_ms"),
    )
    for servers in SERVERS:
        name = f"{servers} server{'s' if servers > 1 else ''}"
        for count in WORKERS:
            async with places.empty("PostgreSQL") as url, workers(url, count):
                try:
                    load = await together(url, ["default"] * servers, tool="pay_far", tasks=TASKS, seconds=seconds)
                except MeasurementFailedError as error:
                    say(f"workers: {name}, {count} workers: left out, measuring failed: {error}")
                    continue
            study.points.append(_point(name, count, load))
            say(f"workers: {name}, {count} workers: {load.per_s:.0f}/s")
    return study


async def by_pending(
    places: Places, *, counts: tuple[int, ...], decisions: int, say: Say
) -> tuple[Study, dict[int, crowds.Waiting]]:
    """Deciding one of many, by store; also what PostgreSQL gave, for the targets."""
    study = Study(
        name="pending",
        title="Pending approvals",
        x_label="pending",
        about=(
            "So many approvals wait, each committed as the pipeline commits it. One of them, chosen at random, is "
            "decided, the first page of 50 is listed, and another is put in its place; the sizes take turns. What the "
            "approved call does afterwards is not part of it."
        ),
        columns={
            "decide_ms": Column(heading="decide, p50 ms", digits=2),
            "decide_p95_ms": Column(heading="decide, p95 ms", digits=2),
            "page_ms": Column(heading="first page, p50 ms", digits=2),
            "ask_per_s": Column(heading="put there per second", is_rate=True),
        },
        drawn=("decide_ms", "page_ms"),
    )
    found: dict[int, crowds.Waiting] = {}
    for store in STORES:
        found = await crowds.pending(places, store, counts=counts, decisions=decisions)
        study.points.extend(Point(series=store, x=count, values=told._asdict()) for count, told in found.items())
        say(f"pending: {store}: " + ", ".join(f"{count:,}: {told.decide_ms:.2f} ms" for count, told in found.items()))
    return study, found


async def by_events(places: Places, *, sizes: tuple[int, ...], seconds: float, say: Say) -> Study:
    """Writing and reading on top of a long chain, by store."""
    study = Study(
        name="events",
        title="Events",
        x_label="events",
        about=(
            "One project's chain has so many events. Measured on top of it: state changes of 256 tasks, one commit "
            "alone, the last 100 events, the events of one call, and reading and verifying 10,000 events; the time to "
            "verify the whole chain and the room it takes follow from that and are estimates."
        ),
        columns={
            "changes_per_s": Column(heading="changes per second", is_rate=True),
            "commit_ms": Column(heading="commit alone, p50 ms", digits=2),
            "tail_ms": Column(heading="last 100, p50 ms", digits=2),
            "of_call_ms": Column(heading="of one call, p50 ms", digits=2),
            "verify_per_s": Column(heading="verified per second", is_rate=True),
            "bytes_each": Column(heading="bytes each"),
            "verify_s": Column(heading="verify all, s", digits=1),
            "gigabytes": Column(heading="GB", digits=2),
        },
        drawn=("changes_per_s", "tail_ms"),
    )
    for store in STORES[1:]:
        found = await long_chains.events(places, store, sizes=sizes, seconds=seconds)
        for size, told in found.items():
            study.points.append(Point(series=store, x=size, values=told._asdict()))
            say(f"events: {store}, {size:,}: {told.changes_per_s:.0f} changes/s")
        last = found[max(found)]
        study.points.append(
            Point(
                series=store,
                x=TO_ESTIMATE,
                how="estimated",
                values={
                    "verify_s": TO_ESTIMATE / last.verify_per_s,
                    "gigabytes": TO_ESTIMATE * last.bytes_each / 1e9,
                },
            )
        )
    return study
