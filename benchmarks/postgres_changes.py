"""State changes per second on PostgreSQL with every commit fsynced: 256 tasks on the store against single inserts.

The raw side inserts ready-made rows of calls, one statement and one commit each, from 256 tasks on a pool of
connections: nothing is encoded, masked, sealed or chained in it. The store is measured with and without a bus that
notifies other servers. Prints one JSON line.
"""

import argparse
import asyncio
import json
import os
import time
from typing import Any

import asyncpg
import uuid_utils
from benchmarks.sqlite_recording import two_changes
from tests.postgres import KEY, Cluster

from toolgate.adapters.postgres.bus import PostgresBus
from toolgate.adapters.postgres.store import PostgresStore
from toolgate.adapters.sealing import load_shared
from toolgate.adapters.sql.rows import CALL_COLUMNS, Row, time_of, uuid_hex
from toolgate.adapters.sql.write_set import write_set_of
from toolgate.ports.bus import Hint

TASKS = 256
POOL = 16
"""Connections of the raw side: more make it slower here."""


async def run_store(url: str, *, calls: int, notify: bool) -> float:
    """Return changes per second of `TASKS` tasks with `calls` calls each, two changes a call."""
    store = PostgresStore(url, owner=f"bench-{uuid_utils.uuid7()}")
    bus = PostgresBus(store.open_news()) if notify else None
    try:

        async def work() -> None:
            for _ in range(calls):
                for change in two_changes():
                    await store.commit(change)
                    if bus is not None and change.call is not None:
                        call = change.call
                        bus.publish(Hint(call.project, call.id, call.status, call.tool_name))

        started = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(TASKS)))
        return TASKS * calls * 2 / (time.perf_counter() - started)
    finally:
        if bus is not None:
            await asyncio.to_thread(bus.close)
        await store.close()


def ready_made(count: int) -> list[Row]:
    """Rows of calls that differ in their ids alone."""
    write_set = write_set_of(next(iter(two_changes())), load_shared(None))
    assert write_set.insert is not None
    rows = []
    for _ in range(count):
        id = str(uuid_utils.uuid7())
        row = dict(zip(CALL_COLUMNS, write_set.insert, strict=True)) | {"id": uuid_hex(id), "call_id": id}
        rows.append(tuple(time_of(value) if name.endswith("_at") else value for name, value in row.items()))
    return rows


async def run_raw(url: str, rows: list[Row]) -> float:
    """Return inserts per second, one statement and one commit each."""

    async def prepare(connection: Any) -> None:
        await connection.execute("SET toolgate.projects='*'")

    async def nothing(_connection: Any) -> None:
        """Keep the setting."""

    marks = ", ".join(f"${number}" for number in range(1, len(CALL_COLUMNS) + 1))
    sql = f"INSERT INTO tool_executions ({', '.join(CALL_COLUMNS)}) VALUES ({marks})"
    left = iter(rows)
    async with asyncpg.create_pool(url, min_size=POOL, max_size=POOL, init=prepare, reset=nothing) as pool:

        async def work() -> None:
            for row in left:
                await pool.execute(sql, *row)

        started = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(TASKS)))
        return len(rows) / (time.perf_counter() - started)


async def measure(cluster: Cluster, calls: int, turns: int) -> dict[str, float]:
    """Alternate the three, each on an empty database, and return the medians."""
    found: dict[str, list[float]] = {"ours": [], "quiet": [], "raw": []}
    for _ in range(turns):
        for name in found:
            url = await asyncio.to_thread(cluster.new_database)
            if name == "raw":
                found[name].append(await run_raw(url, ready_made(TASKS * calls)))
            else:
                found[name].append(await run_store(url, calls=calls, notify=name == "ours"))
            await asyncio.to_thread(cluster.drop, url)
    middle = {name: sorted(values)[len(values) // 2] for name, values in found.items()}
    return {
        "ours_per_s": middle["ours"],
        "quiet_per_s": middle["quiet"],
        "raw_per_s": middle["raw"],
        "times_raw": middle["ours"] / middle["raw"],
        "notify_share": 1 - middle["ours"] / middle["quiet"],
    }


def main() -> None:
    """Read the arguments, measure and print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=20, help="calls of each task")
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    os.environ["TOOLGATE_KEY"] = KEY
    cluster = Cluster(fsync=True)
    try:
        print(json.dumps(asyncio.run(measure(cluster, options.calls, options.turns))))
    finally:
        cluster.close()


if __name__ == "__main__":
    main()
