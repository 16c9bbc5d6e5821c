"""What scale-out must reach, each number measured in the same run as what it is compared with."""

import asyncio
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.contenders import MeasurementFailedError, measure, own_python
from benchmarks.scale.by_hand import by_hand
from benchmarks.scale.costs import Cost
from benchmarks.scale.costs import cost as measure_cost
from benchmarks.scale.fleet import TASKS, together, workers
from benchmarks.scale.pending import Waiting
from benchmarks.scale.stores import Places
from benchmarks.scale.wake import wake
from benchmarks.targets import Verdict
from tests.postgres import Cluster

CHANGES_TIMES = 4.0
WORKFLOW_SHARE = 0.35
WAKE_LIMIT = 8.0
AT_WORKER_PER_S, INLINE_PER_S = 500.0, 700.0
CPU_MS = 2.5
"""Per workflow, over all processes; the driver of the load is in the server's, and counts."""
NOTIFY_PERCENT = 15.0
PENDING_LIMIT = 1.5
FEW, MANY = 100, 100_000
BY_HAND_TASKS = 256
"""More than a server's TASKS, which keeps a run short; not shown to be the best number of either side."""
RUNS = 5
"""Workflows are judged by the median of so many runs."""

Say = Callable[[str], None]


@dataclass(slots=True, kw_only=True)
class Found:
    """The numbers behind the verdicts; empty or None where something was not measured."""

    changes: dict[str, float] = field(default_factory=dict)
    ours_per_s: list[float] = field(default_factory=list)
    by_hand_per_s: list[float] = field(default_factory=list)
    by_hand_bare_per_s: float | None = None
    wake: dict[str, float] = field(default_factory=dict)
    pending: dict[int, Waiting] = field(default_factory=dict)
    costs: dict[str, Cost] = field(default_factory=dict)

    def figures(self) -> dict[str, float]:
        """Every number by the name a reader knows it by."""
        named: dict[str, float] = {}
        if self.changes:
            named["governed state changes/s, 256 tasks, notifying"] = self.changes["ours_per_s"]
            named["the same without NOTIFY"] = self.changes["quiet_per_s"]
            named["asyncpg inserts of ready rows/s, one statement each"] = self.changes["raw_per_s"]
        if self.ours_per_s:
            named["approval workflows/s, one server, one worker"] = statistics.median(self.ours_per_s)
            named["by hand, group commit, with a journal/s"] = statistics.median(self.by_hand_per_s)
        for where, cost in self.costs.items():
            named[f"approval workflows/s, {where}"] = cost.per_s
            named[f"statements per workflow, {where}"] = cost.statements
            named[f"CPU ms per workflow, {where}"] = sum(cost.cpu_ms.values())
        if self.by_hand_bare_per_s is not None:
            named["(by hand without a journal/s)"] = self.by_hand_bare_per_s
        if self.wake:
            named["approve called on A to handler start on B, p50 ms"] = self.wake["called_ms"]
            named["(the same from the decision's commit, p50 ms)"] = self.wake["committed_ms"]
            named["one commit, p50 ms"] = self.wake["commit_ms"]
            named["one NOTIFY until it is heard, p50 ms"] = self.wake["notify_ms"]
        for count in (FEW, MANY):
            if count in self.pending:
                named[f"deciding one of {count:,}, p50 ms"] = self.pending[count].decide_ms
        return named


async def measure_targets(places: Places, *, seconds: float, decisions: int, calls: int, say: Say) -> Found:
    """Measure everything but the pending approvals, which are a study of their own."""
    found = Found()
    try:
        arguments = ("-m", "benchmarks.postgres_changes", f"--calls={calls}", "--turns=3")
        found.changes = await asyncio.to_thread(measure, own_python(), *arguments, is_own=True)
        say(f"targets: changes {found.changes['times_raw']:.2f}x raw, NOTIFY {found.changes['notify_share']:.0%}")
    except MeasurementFailedError as error:
        say(f"targets: changes were not measured: {error}")
    try:
        await _count(found, seconds, say)
        await _compare(found, places, seconds, say)
        async with places.empty("PostgreSQL") as url, workers(url, 1):
            found.wake = await wake(url, decisions=decisions)
            say(f"targets: approval to handler {found.wake['called_ms']:.1f} ms")
    except MeasurementFailedError as error:
        say(f"targets: what runs at workers was not measured: {error}")
    return found


async def _count(found: Found, seconds: float, say: Say) -> None:
    """What a workflow costs, inline and at a worker, on a PostgreSQL of its own that counts statements."""
    cluster = await asyncio.to_thread(lambda: Cluster(fsync=True, counts_statements=True))
    try:
        for where, tool in (("inline", "pay"), ("at a worker", "pay_far")):
            found.costs[where] = cost = await measure_cost(cluster, tool, tasks=TASKS, seconds=seconds)
            say(f"targets: {where} {cost.per_s:.0f}/s, {cost.statements:.1f} statements per workflow")
    finally:
        await asyncio.to_thread(cluster.close)


async def _compare(found: Found, places: Places, seconds: float, say: Say) -> None:
    """Let workflows at a worker and by hand take turns."""
    for number in range(1, RUNS + 1):
        async with places.empty("PostgreSQL") as url, workers(url, 1):
            load = await together(url, ["default"], tool="pay_far", tasks=TASKS, seconds=seconds)
            found.ours_per_s.append(load.per_s)
        async with places.empty("PostgreSQL") as url:
            theirs = await by_hand(url, tasks=BY_HAND_TASKS, seconds=seconds)
            found.by_hand_per_s.append(theirs.per_s)
        say(f"targets: workflows {number}/{RUNS}: {load.per_s:.0f}/s at a worker, {theirs.per_s:.0f}/s by hand")
    async with places.empty("PostgreSQL") as url:
        found.by_hand_bare_per_s = (await by_hand(url, tasks=BY_HAND_TASKS, seconds=seconds, journal=False)).per_s


def judge(found: Found) -> list[Verdict]:
    """Return every target's verdict, those without numbers included."""
    changes, wakes, pending = found.changes, found.wake, found.pending
    ours, theirs = found.ours_per_s, found.by_hand_per_s
    inline, far = found.costs.get("inline"), found.costs.get("at a worker")
    both = FEW in pending and MANY in pending
    return [
        Verdict(
            title="durable governed changes, 256 at once / single asyncpg inserts",
            limit=CHANGES_TIMES,
            at_least=True,
            measured=changes["times_raw"] if changes else None,
        ),
        Verdict(
            title="approval workflows/s at a worker, 64 at once",
            limit=AT_WORKER_PER_S,
            at_least=True,
            unit="/s",
            measured=None if far is None else far.per_s,
        ),
        Verdict(
            title="approval workflows/s inline, 64 at once",
            limit=INLINE_PER_S,
            at_least=True,
            unit="/s",
            measured=None if inline is None else inline.per_s,
        ),
        Verdict(
            title="CPU of an approval workflow at a worker, all processes",
            limit=CPU_MS,
            unit=" ms",
            measured=None if far is None else sum(far.cpu_ms.values()),
        ),
        Verdict(
            title="approval workflows at a worker / group commit by hand",
            limit=WORKFLOW_SHARE,
            at_least=True,
            measured=statistics.median(ours) / statistics.median(theirs) if ours and theirs else None,
            of_minima=max(ours) / max(theirs) if ours and theirs else None,
        ),
        Verdict(
            title="approve on A to handler on B, p50 / commit + NOTIFY",
            limit=WAKE_LIMIT,
            measured=wakes["called_ms"] / (wakes["commit_ms"] + wakes["notify_ms"]) if wakes else None,
        ),
        Verdict(
            title="what NOTIFY takes of write speed",
            limit=NOTIFY_PERCENT,
            unit=" %",
            measured=changes["notify_share"] * 100 if changes else None,
        ),
        Verdict(
            title=f"deciding one of {MANY:,} pending / one of {FEW}",
            limit=PENDING_LIMIT,
            measured=pending[MANY].decide_ms / pending[FEW].decide_ms if both else None,
        ),
    ]
