"""The recorded changes written with aiosqlite, fsynced, one transaction for each, by 256 tasks.

Run in an environment of its own, with the recording that `benchmarks/sqlite_changes.py --singles` leaves behind.
Prints one JSON line.
"""

import argparse
import asyncio
import json
import pickle
import tempfile
import time
from pathlib import Path
from typing import Any

import aiosqlite  # type: ignore[import-not-found]  # installed in its own environment only

TASKS = 256


async def measure(schema: str, transactions: list[list[tuple[str, list[Any]]]]) -> float:
    """Return changes per second; the tasks share the one connection, which only one of them may use at a time."""
    left = iter(transactions)
    turn = asyncio.Lock()
    with tempfile.TemporaryDirectory() as folder:
        async with aiosqlite.connect(Path(folder) / "peer.db", isolation_level=None) as connection:
            await connection.execute("PRAGMA journal_mode=WAL")
            await connection.execute("PRAGMA synchronous=FULL")
            await connection.executescript(schema)

            async def work() -> None:
                while True:
                    async with turn:  # changes follow each other: the second one of a call needs the first
                        statements = next(left, None)
                        if statements is None:
                            return
                        await connection.execute("BEGIN IMMEDIATE")
                        for sql, rows in statements:
                            await connection.executemany(sql, rows)
                        await connection.execute("COMMIT")

            started = time.perf_counter()
            await asyncio.gather(*(work() for _ in range(TASKS)))
            return len(transactions) / (time.perf_counter() - started)


def main() -> None:
    """Read the recording, measure and print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recording", type=Path)
    found = pickle.loads(parser.parse_args().recording.read_bytes())
    per_second = asyncio.run(measure(found["schema"], found["transactions"]))
    print(json.dumps({"per_s": per_second}))


if __name__ == "__main__":
    main()
