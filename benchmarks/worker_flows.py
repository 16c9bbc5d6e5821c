"""Approval workflows whose handler runs at a worker, on PostgreSQL with every commit fsynced. Prints one JSON line.

Throughput: 256 tasks ask, decide and wait through the gate, a worker in another process runs the handler. The bare loop
writes the four state changes and events of as many workflows by group commit, with no engine, policy, seal or chain.
Latency: from the decision at this process to the first line of the handler at the worker, against one commit and one
NOTIFY to another connection.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import asyncpg
import uuid_utils
from tests.postgres import KEY, Cluster

import toolgate

TASKS = 256
ROOT = Path(__file__).resolve().parents[1]


@toolgate.tool(effects="read", requires_approval=True, placement="worker")
async def refund(order: str, amount: int) -> dict[str, Any]:
    """Return a refund's receipt, and when this began."""
    return {"order": order, "amount": amount, "began_at": time.time()}


TOOLS = [refund]


async def one_flow(gate: toolgate.Gate) -> float:
    """Ask, approve, wait; return the seconds from the decision to the handler's first line."""
    asked = await gate.call("refund", {"order": "A-1", "amount": 12}, wait=False)
    assert asked.approval_id is not None
    waiting = asyncio.create_task(gate.wait(asked.call_id))
    decided_at = time.time()
    await gate.decide(asked.approval_id, "approve", by="alice")
    data: dict[str, float] = (await waiting).unwrap()
    return data["began_at"] - decided_at


async def through_the_gate(gate: toolgate.Gate, flows: int) -> float:
    """Return workflows per second."""

    async def work() -> None:
        for _ in range(flows):
            await one_flow(gate)

    started = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(TASKS)))
    return TASKS * flows / (time.perf_counter() - started)


class Bare:
    """A group commit as one writes it by hand: whoever waits for the writer is written with the next group."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._waiting: list[tuple[str, str, asyncio.Future[None]]] = []
        self._writing: asyncio.Task[None] | None = None

    def commit(self, id: str, status: str) -> Awaitable[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((id, status, future))
        if self._writing is None:
            self._writing = asyncio.get_running_loop().create_task(self._write())
        return future

    async def _write(self) -> None:
        while self._waiting:
            group, self._waiting = self._waiting[:512], self._waiting[512:]
            ids, statuses = [item[0] for item in group], [item[1] for item in group]
            async with self._connection.transaction():
                await self._connection.execute(
                    "INSERT INTO flows (id, status, body) SELECT id, status, repeat('x', 400) FROM "
                    "unnest($1::text[], $2::text[]) AS t(id, status) "
                    "ON CONFLICT (id) DO UPDATE SET status=excluded.status, version=flows.version + 1",
                    ids,
                    statuses,
                )
                await self._connection.execute(
                    "INSERT INTO flow_events (id, status, body) SELECT id, status, repeat('x', 300) FROM "
                    "unnest($1::text[], $2::text[]) AS t(id, status)",
                    ids,
                    statuses,
                )
            for _, _, future in group:
                future.set_result(None)
        self._writing = None


async def by_hand(url: str, flows: int) -> float:
    """Return workflows per second of the bare loop."""
    connection = await asyncpg.connect(url)
    await connection.execute(
        "CREATE TABLE IF NOT EXISTS flows (id text PRIMARY KEY, status text, body text, version int DEFAULT 1);"
        "CREATE TABLE IF NOT EXISTS flow_events (seq bigserial PRIMARY KEY, id text, status text, body text)"
    )
    bare = Bare(connection)

    async def work() -> None:
        for _ in range(flows):
            id = str(uuid_utils.uuid7())
            for status in ("AWAITING_APPROVAL", "APPROVED", "EXECUTING", "COMPLETED"):
                await bare.commit(id, status)

    started = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(TASKS)))
    seconds = time.perf_counter() - started
    await connection.close()
    return TASKS * flows / seconds


async def commit_and_notify(url: str, times: int) -> list[float]:
    """Return the seconds from a commit's beginning to the notification of another connection, which follows it."""
    writer, listener = await asyncpg.connect(url), await asyncpg.connect(url)
    await writer.execute("CREATE TABLE IF NOT EXISTS notes (id text PRIMARY KEY, body text)")
    heard = asyncio.Event()
    await listener.add_listener("bench", lambda *_told: heard.set())
    taken = []
    for _ in range(times):
        heard.clear()
        began = time.perf_counter()
        await writer.execute("INSERT INTO notes VALUES ($1, repeat('x', 400))", str(uuid_utils.uuid7()))
        await writer.execute("SELECT pg_notify('bench', 'x')")
        await heard.wait()
        taken.append(time.perf_counter() - began)
    await writer.close()
    await listener.close()
    return taken


async def repeated(times: int, measure: Callable[[], Awaitable[float]]) -> list[float]:
    return [await measure() for _ in range(times)]


async def measure(url: str, *, flows: int, rounds: int, decisions: int, policy: str) -> dict[str, Any]:
    async with toolgate.open(url, tools=TOOLS, policy=policy) as gate:
        await one_flow(gate)  # everything is connected
        governed, bare = [], []
        for _ in range(rounds):
            bare.append(await by_hand(url, flows))
            governed.append(await through_the_gate(gate, flows))
        single = await commit_and_notify(url, decisions)
        starts = [await one_flow(gate) for _ in range(decisions)]
    share, times = statistics.median(governed) / statistics.median(bare), statistics.median(starts)
    return {
        "governed_per_s": round(statistics.median(governed)),
        "bare_per_s": round(statistics.median(bare)),
        "share": round(share, 3),
        "start_p50_ms": round(times * 1000, 2),
        "commit_and_notify_p50_ms": round(statistics.median(single) * 1000, 2),
        "start_times": round(times / statistics.median(single), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flows", type=int, default=8, help="workflows of each task and round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--decisions", type=int, default=100)
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    os.environ["TOOLGATE_KEY"] = KEY
    cluster = Cluster(fsync=True)
    workers: list[subprocess.Popen[bytes]] = []
    with TemporaryDirectory() as folder:
        policy = Path(folder, "toolgate.yaml")
        policy.write_text("version: 1\ndefault: by_risk\n", encoding="utf-8")
        url = cluster.new_database()
        try:
            command = [
                sys.executable, "-m", "toolgate.interfaces.cli", "worker", "--database", url, "--policy", str(policy),
                "--tools", "benchmarks.worker_flows:TOOLS", "--concurrency", "256", "--json",
            ]  # fmt: skip
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            workers += [
                subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
                for _ in range(given.workers)
            ]
            found = asyncio.run(
                measure(url, flows=given.flows, rounds=given.rounds, decisions=given.decisions, policy=str(policy))
            )
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
            cluster.close()
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
