"""What one approval workflow costs PostgreSQL and the processes around it: statements, transactions, CPU time.

`python -m benchmarks.scale.costs [--tool pay|pay_far] [--tasks N] [--seconds S] [--statements]`. Counts and CPU time
stay comparable on a machine that others use; rates do not.
"""

import argparse
import asyncio
import contextlib
import os
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg
from benchmarks.scale.fleet import TASKS, together, workers
from tests.postgres import Cluster

TICKS = os.sysconf("SC_CLK_TCK")
WHO = {"server": "benchmarks.scale.server", "worker": "\0worker\0", "postgres": None}


class Cost(NamedTuple):
    """What one workflow took, by who spent it."""

    per_s: float
    statements: float
    transactions: float
    cpu_ms: dict[str, float]
    slowest: list[tuple[float, float, str]]


def _cpu_s(pid: int) -> float:
    """CPU seconds of a process and of the children it has waited for."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(int(value) for value in fields[11:15]) / TICKS
    return 0.0


def _spent(cluster: Cluster) -> dict[str, float]:
    """CPU seconds so far, by role. Backends that ended are in the postmaster's account."""
    found = dict.fromkeys(WHO, 0.0)
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            line, parent = (entry / "cmdline").read_text(), (entry / "stat").read_text().rpartition(")")[2].split()[1]
            pid = int(entry.name)
            if pid == cluster.pid or int(parent) == cluster.pid:
                found["postgres"] += _cpu_s(pid)
            elif int(parent) == os.getpid():
                for who, mark in WHO.items():
                    if mark is not None and mark in line:
                        found[who] += _cpu_s(pid)
    return found


async def _statements(cluster: Cluster, database: str, count: int) -> tuple[float, list[tuple[float, float, str]]]:
    rows: list[Any] = await cluster.as_admin(
        "SELECT s.calls, s.total_exec_time, s.query FROM pg_stat_statements AS s JOIN pg_database AS d ON d.oid=s.dbid "
        f"WHERE d.datname='{database}' ORDER BY s.calls DESC"
    )
    each = [(calls / count, spent / count, " ".join(query.split())) for calls, spent, query in rows]
    return sum(calls for calls, *_ in each), each


async def cost(cluster: Cluster, tool: str, *, tasks: int, seconds: float) -> Cost:
    """Run workflows for so long and return what one cost."""
    url = await asyncio.to_thread(cluster.new_database)
    database = url.rpartition("/")[2]
    await cluster.as_admin("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
    async with contextlib.AsyncExitStack() as stack:
        if tool == "pay_far":
            await stack.enter_async_context(workers(url, 1))
        marks: list[Any] = []

        async def mark() -> None:
            if not marks:
                await cluster.as_admin("SELECT pg_stat_statements_reset()")
            marks.append((_spent(cluster), await _done(url), await _transactions(cluster, database)))

        load = await together(url, ["default"], tool=tool, tasks=tasks, seconds=seconds, mark=mark)
        (before, first, begun), (after, last, ended) = marks
        count = last - first
        statements, each = await _statements(cluster, database, count)
    cpu = {who: (after[who] - before[who]) * 1000 / count for who in WHO}
    return Cost(load.per_s, statements, (ended - begun) / count, cpu, each)


async def _done(url: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("SELECT set_config('toolgate.projects', '*', false)")
        return int(await connection.fetchval("SELECT count(*) FROM tool_executions WHERE status='COMPLETED'"))
    finally:
        await connection.close()


async def _transactions(cluster: Cluster, database: str) -> int:
    rows = await cluster.as_admin(f"SELECT xact_commit+xact_rollback FROM pg_stat_database WHERE datname='{database}'")
    return int(rows[0][0])


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", choices=("pay", "pay_far"), action="append")
    parser.add_argument("--tasks", type=int, default=TASKS)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--statements", action="store_true", help="list every statement by how often it is run")
    given = parser.parse_args()
    cluster = await asyncio.to_thread(lambda: Cluster(fsync=True, counts_statements=True))
    try:
        for tool in given.tool or ("pay", "pay_far"):
            found = await cost(cluster, tool, tasks=given.tasks, seconds=given.seconds)
            spent = ", ".join(f"{who} {value:.2f}" for who, value in found.cpu_ms.items() if value)
            print(
                f"{tool}: {found.per_s:.0f}/s; per workflow {found.statements:.1f} statements, "
                f"{found.transactions:.1f} transactions, {sum(found.cpu_ms.values()):.2f} ms of CPU ({spent})",
                flush=True,
            )
            if given.statements:
                for calls, spent_ms, query in found.slowest:
                    print(f"  {calls:7.2f}x {spent_ms:8.3f} ms  {query[:150]}")
    finally:
        await asyncio.to_thread(cluster.close)


if __name__ == "__main__":
    asyncio.run(main())
