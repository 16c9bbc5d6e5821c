"""From a decision that is committed to its handler's first line, in one process, beside one fsynced SQLite commit.

The two take turns on the same disk. Between them lie the wake-up, the checks of what was approved, and the claim,
which is a fsynced commit itself: a tool with effects never starts before it. Prints one JSON line.
"""

import argparse
import asyncio
import json
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import toolgate
from toolgate.kernel.call import Status
from toolgate.kernel.change import Change

ARG = {"order": "A-1", "amount": 12}
STARTED: list[float] = []
DECIDED: list[float] = []


@toolgate.tool(requires_approval=True)
async def refund(order: str, amount: int) -> dict[str, Any]:
    """Note when it starts, and return a receipt."""
    STARTED.append(time.perf_counter())
    return {"order": order, "amount": amount}


def plain(path: Path) -> sqlite3.Connection:
    """Return a connection that commits as durably as the gate's own."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, text TEXT)")
    return connection


def commit(connection: sqlite3.Connection) -> float:
    """Return the microseconds one fsynced commit of one row takes."""
    began = time.perf_counter()
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO rows (text) VALUES (?)", ("x" * 500,))
    connection.execute("COMMIT")
    return (time.perf_counter() - began) * 1e6


def note(change: Change) -> None:
    """Note when a decision is committed: listeners hear of a change once it is."""
    if change.call is not None and change.call.status is Status.APPROVED:
        DECIDED.append(time.perf_counter())


async def measure(decisions: int) -> dict[str, float]:
    """Alternate decisions and plain commits and return the median of each."""
    commits: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        connection = plain(Path(folder) / "plain.db")
        async with toolgate.open(f"sqlite:///{folder}/gate.db", tools=[refund]) as gate:
            gate._driver.listeners.append(note)
            for _ in range(decisions):
                asked = await gate.call("refund", ARG, wait=False)
                waiting = asyncio.create_task(gate.wait(asked.call_id))
                await asyncio.sleep(0)
                await gate.decide(str(asked.approval_id), "approve", by="alice")
                (await waiting).unwrap()
                commits.append(commit(connection))
        connection.close()
    waits = [(started - decided) * 1e6 for decided, started in zip(DECIDED, STARTED, strict=True)]
    warm = decisions // 10
    return {"handler_us": statistics.median(waits[warm:]), "commit_us": statistics.median(commits[warm:])}


def main() -> None:
    """Read the arguments, measure and print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decisions", type=int, default=300)
    options = parser.parse_args()
    print(json.dumps(asyncio.run(measure(options.decisions))))


if __name__ == "__main__":
    main()
