"""What writing and reading cost when a project's chain is already long.

The rows before are written in bulk (COPY, executemany), chained and hashed as the gate would have: the head is valid,
and what is written on top of it verifies.
"""

import asyncio
import itertools
import sqlite3
import statistics
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg
import uuid_utils
from benchmarks.scale.load import Load
from benchmarks.scale.stores import Places
from benchmarks.scale.tools import PAYLOAD
from benchmarks.sqlite_recording import two_changes

from toolgate import bootstrap
from toolgate.adapters.sql.rows import moment
from toolgate.adapters.sqlite.file import prepare
from toolgate.kernel.event import Draft, genesis, link_all, verify
from toolgate.ports.store import Store

PROJECT = "default"
CHUNK = 30_000
TASKS = 256
SAMPLES = 60
VERIFIED = 10_000
_COLUMNS = ("project_id", "seq", "type", "at", "call_id", "frame", "content", "prev", "hash")
_HEAD = """
INSERT INTO chain_heads (project_id, seq, hash) VALUES ('default', {0}, {1})
ON CONFLICT (project_id) DO UPDATE SET seq=excluded.seq, hash=excluded.hash
"""


class Long(NamedTuple):
    """What was measured on top of a chain of some length."""

    changes_per_s: float
    commit_ms: float
    tail_ms: float
    of_call_ms: float
    verify_per_s: float
    bytes_each: float


def _drafts(count: int) -> Iterator[tuple[datetime, list[Draft]]]:
    """Three events for each call, as long as those of a small call are."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    shown = {"payload_summary": PAYLOAD}
    claimed = {"approved_by": "policy:auto", "approval_id": None, "attempt": 1}
    done = {"duration_ms": 0.2, "success": True}
    for number in range(-(-count // 3)):
        id = str(uuid_utils.uuid7())
        told: list[Draft] = [
            ("tool.invoked", id, {"behavior": None}, shown),
            ("tool.started", id, claimed, None),
            ("tool.completed", id, done, {"output_summary": PAYLOAD}),
        ]
        yield at + timedelta(milliseconds=number), told[: count - 3 * number]


def _rows(count: int, seq: int, last: bytes) -> Iterator[list[tuple[Any, ...]]]:
    """Chunks of rows after the head (seq, last), in the order of `_COLUMNS`."""
    drafts = _drafts(count)
    while chunk := list(itertools.islice(drafts, CHUNK // 3)):
        links = link_all(chunk, PROJECT, seq, last)
        seq, last = links[-1][0], links[-1][7]
        yield [(PROJECT, *linked) for linked in links]


async def _fill_postgres(places: Places, url: str, size: int) -> int:
    """Bring the chain to this length; return how many events that took."""
    name = url.rpartition("/")[2]
    connection: Any = await asyncpg.connect(places.cluster.url(name, role="postgres"), command_timeout=600)
    try:
        head = await connection.fetchrow("SELECT seq, hash FROM chain_heads WHERE project_id=$1", PROJECT)
        seq, last = head or (0, genesis(PROJECT))
        rows: list[tuple[Any, ...]] = []
        for rows in _rows(size - seq, seq, last):
            await connection.copy_records_to_table("events", records=rows, columns=_COLUMNS)
        if rows:
            await connection.execute(_HEAD.format("$1", "$2"), rows[-1][1], rows[-1][8])
        await connection.execute("VACUUM ANALYZE events")
        await connection.execute("CHECKPOINT")
        return max(size - int(seq), 0)
    finally:
        await connection.close()


def _fill_sqlite(path: Path, size: int) -> int:
    """The same in a file."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        head = connection.execute("SELECT seq, hash FROM chain_heads WHERE project_id=?", (PROJECT,)).fetchone()
        seq, last = head or (0, genesis(PROJECT))
        marks = ", ".join("?" * len(_COLUMNS))
        for rows in _rows(size - seq, seq, last):
            kept = [(*row[:3], moment(row[3]), *row[4:]) for row in rows]
            connection.execute("BEGIN")
            connection.executemany(f"INSERT INTO events ({', '.join(_COLUMNS)}) VALUES ({marks})", kept)
            connection.execute(_HEAD.format("?", "?"), (rows[-1][1], rows[-1][8]))
            connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return max(size - int(seq), 0)
    finally:
        connection.close()


async def _commit(store: Store) -> list[float]:
    """Write the two changes of one call; return the seconds of each."""
    taken = []
    for change in two_changes():
        began = time.perf_counter()
        writing = store.commit(change)
        if writing is not None:
            await writing
        taken.append(time.perf_counter() - began)
    return taken


async def _throughput(store: Store, seconds: float) -> float:
    taken: list[float] = []

    async def work(until: float) -> None:
        while time.perf_counter() < until:
            taken.extend(await _commit(store))

    await asyncio.gather(*(_commit(store) for _ in range(TASKS)))
    started = time.perf_counter()
    await asyncio.gather(*(work(started + seconds) for _ in range(TASKS)))
    return Load.of(time.perf_counter() - started, taken).per_s


async def _read_ms(reading: Any) -> float:
    taken = []
    for _ in range(SAMPLES):
        began = time.perf_counter()
        assert await reading()
        taken.append((time.perf_counter() - began) * 1e3)
    return statistics.median(taken)


async def _verified(store: Store, size: int) -> float:
    """Read and check the events from the middle on; return events per second."""
    middle = max(size // 2, 1)
    before = (await store.events(PROJECT, after=middle - 1, limit=1))[0]
    began = time.perf_counter()
    page = await store.events(PROJECT, after=middle, limit=VERIFIED)
    count = verify(page, after=(before.seq, before.hash))
    return count / (time.perf_counter() - began)


async def _size(places: Places, url: str) -> int:
    if url.startswith("sqlite"):
        return (await asyncio.to_thread(Path(url.removeprefix("sqlite:///")).stat)).st_size
    sql = "SELECT pg_total_relation_size('events')"
    return int((await places.cluster.as_admin(sql, database=url.rpartition("/")[2]))[0][0])


async def _measure(url: str, size: int, seconds: float, bytes_each: float) -> Long:
    store, bus = bootstrap.connect(url)
    try:
        some = (await store.events(PROJECT, after=size // 3, limit=1))[0].call_id
        tail_ms = await _read_ms(lambda: store.events(PROJECT, after=size - 100, limit=100))
        of_call_ms = await _read_ms(lambda: store.events(PROJECT, call_id=some))
        verify_per_s = await _verified(store, size)
        changes_per_s = await _throughput(store, seconds)
        alone = [second for _ in range(SAMPLES) for second in await _commit(store)]
        return Long(
            changes_per_s=changes_per_s,
            commit_ms=statistics.median(alone) * 1e3,
            tail_ms=tail_ms,
            of_call_ms=of_call_ms,
            verify_per_s=verify_per_s,
            bytes_each=bytes_each,
        )
    finally:
        await asyncio.to_thread(bus.close)
        await store.close()


async def _grow(places: Places, store: str, url: str, size: int) -> float:
    """Bring the chain to this length; return the bytes each new event took."""
    before = await _size(places, url)
    if store == "SQLite":
        added = await asyncio.to_thread(_fill_sqlite, Path(url.removeprefix("sqlite:///")), size)
    else:
        added = await _fill_postgres(places, url, size)
    if not added:
        raise SystemExit(f"The chain is longer than {size:,} events already; take sizes further apart.")
    return (await _size(places, url) - before) / added


async def events(places: Places, store: str, *, sizes: tuple[int, ...], seconds: float) -> dict[int, Long]:
    """Let one chain grow to each size in turn, and measure on top of it."""
    found: dict[int, Long] = {}
    async with places.empty(store) as url:
        if store == "SQLite":
            prepare(Path(url.removeprefix("sqlite:///")))
        for size in sizes:
            bytes_each = await _grow(places, store, url, size)
            found[size] = await _measure(url, size, seconds, bytes_each)
    return found
