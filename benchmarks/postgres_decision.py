"""Deciding one approval while 100 and while 100,000 others wait in the project, by turns. Prints one JSON line."""

import argparse
import asyncio
import json
import os
import statistics
import time

import asyncpg
from tests.postgres import KEY, Cluster

import toolgate
from toolgate.adapters.sql.tables import metadata

FEW, MANY = 100, 100_000


@toolgate.tool(requires_approval=True)
def publish(text: str) -> str:
    """Publish a text."""
    return text


async def crowd(url: str, count: int) -> None:
    """Copy the one call that waits, and its approval, until `count` wait."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("SET toolgate.projects='*'")
        for table, named in (("tool_executions", ("id", "approval_id")), ("approval_requests", ("id", "action_id"))):
            columns = [column.name for column in metadata.tables[table].columns]
            fresh = {name: f"md5('{name[-2:]}' || n)::uuid" for name in named} | {"call_id": "'copy-' || n"}
            chosen = ", ".join(fresh.get(name, name) for name in columns)
            await connection.execute(
                f"INSERT INTO {table} ({', '.join(columns)}) SELECT {chosen} FROM "
                f"(SELECT * FROM {table} LIMIT 1) AS one, generate_series(1, {count}) AS n"
            )
            await connection.execute(f"ANALYZE {table}")
    finally:
        await connection.close()


async def decide_one(gate: toolgate.Gate) -> float:
    """Return the milliseconds of one decision."""
    asked = await gate.call("publish", {"text": "one more"}, wait=False)
    assert asked.approval_id is not None
    started = time.perf_counter()
    await gate.decide(asked.approval_id, "deny", by="ann", reason="no")
    return (time.perf_counter() - started) * 1000


async def prepared(cluster: Cluster, count: int) -> toolgate.Gate:
    """Return a gate on a database of its own in which `count` questions wait."""
    url = await asyncio.to_thread(cluster.new_database)
    gate = toolgate.open(url, tools=[publish])
    await gate.call("publish", {"text": "first"}, wait=False)
    await crowd(url, count)
    return gate


async def measure(cluster: Cluster, decisions: int) -> dict[str, float]:
    """Return the medians of both, and how much slower it is among many."""
    few, many = await prepared(cluster, FEW), await prepared(cluster, MANY)
    took: dict[str, list[float]] = {"few_ms": [], "many_ms": []}
    try:
        for _ in range(decisions):
            took["few_ms"].append(await decide_one(few))
            took["many_ms"].append(await decide_one(many))
    finally:
        await few.aclose()
        await many.aclose()
    found = {name: statistics.median(values) for name, values in took.items()}
    return {**found, "growth": found["many_ms"] / found["few_ms"]}


def main() -> None:
    """Read the arguments, measure and print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decisions", type=int, default=200)
    options = parser.parse_args()
    os.environ["TOOLGATE_KEY"] = KEY
    cluster = Cluster(fsync=True)
    try:
        print(json.dumps(asyncio.run(measure(cluster, options.decisions))))
    finally:
        cluster.close()


if __name__ == "__main__":
    main()
