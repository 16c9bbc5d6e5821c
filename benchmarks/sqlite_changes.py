"""State changes per second with every commit fsynced: 256 tasks on the store against a raw loop.

The raw loop replays, group for group, the statements and rows of a recorded run on a file like the store's: nothing
is encoded, masked, sealed or chained in it, and no task waits. `--singles` leaves a recording with one transaction
for each change behind, for the peer that writes that way. Prints one JSON line.
"""

import argparse
import asyncio
import gc
import json
import pickle
import sqlite3
import tempfile
import time
from pathlib import Path

from benchmarks.sqlite_recording import Recorder, Transaction, opened, record, two_changes

from toolgate.adapters.sqlite.file import SCHEMA, connect, prepare
from toolgate.adapters.sqlite.store import SqliteStore

TASKS = 256


async def run_tasks(store: SqliteStore, *, tasks: int, calls: int) -> float:
    """Return the seconds that `tasks` tasks need for two changes of `calls` calls each."""

    async def work() -> None:
        for _ in range(calls):
            for change in two_changes():
                writing = store.commit(change)
                if writing is not None:
                    await writing

    started = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(tasks)))
    return time.perf_counter() - started


async def recorded(folder: Path, name: str, *, tasks: int, calls: int) -> Recorder:
    """Return the recording of such a run on a new file."""
    async with opened(folder, name) as store:
        recorder = record(store)
        await run_tasks(store, tasks=tasks, calls=calls)
    return recorder


def replay(path: Path, transactions: list[Transaction]) -> float:
    """Return the seconds a plain loop needs for the same statements on a new file."""
    prepare(path)
    connection = connect(path, busy_s=1.0)
    connection.execute("PRAGMA synchronous=FULL")
    started = time.perf_counter()
    for transaction in transactions:
        connection.execute("BEGIN IMMEDIATE")
        for sql, rows in transaction:
            connection.executemany(sql, rows)
        connection.execute("COMMIT")
    seconds = time.perf_counter() - started
    connection.close()
    return seconds


def leave_singles(path: Path, transactions: list[Transaction]) -> None:
    """Write the schema and the recording where a process without Toolgate can read them."""
    path.write_bytes(pickle.dumps({"schema": SCHEMA.read_text(encoding="ascii"), "transactions": transactions}))


async def measure(calls: int, turns: int, singles: Path | None) -> dict[str, float]:
    """Alternate the store and the raw loop, each on a new file, and return changes per second of both."""
    ours, raw = [], []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        recorder = await recorded(folder, "recorded", tasks=TASKS, calls=calls)
        if singles is not None:
            alone = await recorded(folder, "singles", tasks=1, calls=250)
            leave_singles(singles, alone.transactions)
        gc.collect()
        gc.freeze()  # the recording is the raw loop's; the collector must not search it on the store's time
        for turn in range(turns):
            async with opened(folder, f"ours{turn}") as store:
                ours.append(await run_tasks(store, tasks=TASKS, calls=calls))
            raw.append(replay(folder / f"raw{turn}.db", recorder.transactions))
    changes = TASKS * calls * 2
    return {
        "ours_per_s": changes * turns / sum(ours),
        "raw_per_s": changes * turns / sum(raw),
        "group": changes / len(recorder.transactions),
    }


def main() -> None:
    """Read the arguments, measure and print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=20, help="calls of each task")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--singles", type=Path)
    options = parser.parse_args()
    line = asyncio.run(measure(options.calls, options.turns, options.singles))
    print(json.dumps({**line, "sqlite": sqlite3.sqlite_version}))


if __name__ == "__main__":
    main()
