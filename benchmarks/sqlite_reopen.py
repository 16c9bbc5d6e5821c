"""Opening a file with 100,000 finished and 10,000 pending calls, against sqlite3 opening it and counting the latter.

`toolgate.open` returns a gate that takes calls; looking after what others left behind goes on in the background. Both
take turns in one process, modules loaded. `--make` builds the file, which takes a while. Prints one JSON line.
"""

import argparse
import json
import sqlite3
import statistics
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import uuid_utils

import toolgate
from toolgate.adapters import sealing
from toolgate.adapters.sql.write_set import write_set_of
from toolgate.adapters.sqlite.file import connect
from toolgate.adapters.sqlite.statements import INSERT_CALL, INSERT_EVENT
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change
from toolgate.kernel.context import DEFAULT_CONTEXT

PENDING_SQL = "SELECT count(*) FROM tool_executions WHERE status='AWAITING_APPROVAL'"


def make(path: Path, *, finished: int, pending: int) -> None:
    """Build a file with this many calls, each with two events as large as real ones."""
    toolgate.open(f"sqlite:///{path}").close()
    sealer = sealing.load(path.with_name(path.name + ".key"), create=False)
    connection = connect(path, busy_s=1.0)
    connection.execute("BEGIN")
    now = datetime.now(UTC)
    every = (finished + pending) // pending
    for number in range(finished + pending):
        waits = number % every == 0
        call = Call(
            id=str(uuid_utils.uuid7()),
            project="default",
            tool_name="weather",
            context=DEFAULT_CONTEXT,
            created_at=now,
            arguments=b'{"city":"Paris","days":3,"units":"metric"}',
            shown={"city": "Paris", "days": 3, "units": "metric"},
            definition_hash="0" * 64,
            status=Status.AWAITING_APPROVAL if waits else Status.COMPLETED,
            version=2,
            due_at=now + timedelta(hours=1) if waits else None,
            completed_at=None if waits else now,
        )
        row = write_set_of(Change(project="default", at=now, call=call), sealer).insert
        INSERT_CALL.write(connection, [row or ()])
        for seq in (number * 2 + 1, number * 2 + 2):
            event = (seq, "default", seq, "tool.invoked", now.isoformat(" ")[:26], call.id, b"{}" * 170, b"p" * 32)
            INSERT_EVENT.write(connection, [(*event, b"h" * 32)])
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def plain(path: Path, pending: int) -> float:
    """Return the seconds sqlite3 needs to open the file and count the pending calls."""
    started = time.perf_counter()
    connection = sqlite3.connect(path)
    (found,) = connection.execute(PENDING_SQL).fetchone()
    seconds = time.perf_counter() - started
    connection.close()
    if found != pending:
        raise SystemExit(f"{found} calls are pending instead of {pending}.")
    return seconds


def governed(path: Path) -> float:
    """Return the seconds `toolgate.open` needs."""
    started = time.perf_counter()
    gate = toolgate.open(f"sqlite:///{path}")
    seconds = time.perf_counter() - started
    gate.close()
    return seconds


def main() -> None:
    """Read the arguments, build or measure, and print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--finished", type=int, default=100_000)
    parser.add_argument("--pending", type=int, default=10_000)
    parser.add_argument("--turns", type=int, default=15)
    options = parser.parse_args()
    if options.make:
        make(options.path, finished=options.finished, pending=options.pending)
        print("{}")
        return
    first = governed(options.path)  # this one loads the modules
    pairs = [(plain(options.path, options.pending), governed(options.path)) for _ in range(options.turns)]
    loaded = [name for name in ("sqlalchemy", "alembic") if name in sys.modules]
    if loaded:
        raise SystemExit(f"Opening an up-to-date file loaded {' and '.join(loaded)}.")
    plain_s, ours_s = (statistics.median(times) for times in zip(*pairs, strict=True))
    print(json.dumps({"ours_ms": ours_s * 1e3, "plain_ms": plain_s * 1e3, "first_ms": first * 1e3}))


if __name__ == "__main__":
    main()
