"""Orders through PgQueuer, in tables of its own in the same PostgreSQL as the store.

PgQueuer hands every order to one worker that has room, and again to another if that one dies before it confirms. Its
tables are not logged: a crash of PostgreSQL empties them, and the orders are sent again from the calls' own rows.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import uuid
from collections import deque
from collections.abc import Collection
from datetime import timedelta
from typing import Any

import asyncpg
import orjson
from pgqueuer.adapters.drivers.asyncpg import AsyncpgDriver
from pgqueuer.adapters.persistence import qb
from pgqueuer.adapters.persistence.queries import Queries
from pgqueuer.domain.models import Job
from pgqueuer.domain.settings import DBSettings, Durability
from pgqueuer.domain.types import QueueEntrypoint, QueueManagerId
from pgqueuer.ports.repository import EntrypointExecutionParameter

from toolgate.ports.dispatcher import Order, Take

PREFIX = "toolgate_"
INSTALLING = 0x746F6F6C6761_7465 & 0x7FFF_FFFF_FFFF_FFFF
"""The advisory lock under which the tables are made."""
CONNECT_S = 5.0
LOOK_EVERY_S = 2.0
"""How often a worker asks without having been told: notifications are lost with a connection."""
REDELIVER_AFTER_S = 5.0
"""After how long an order that a worker took and did not confirm goes to another; confirming takes milliseconds."""
AGAIN_S = (0.1, 0.5, 2.0)
BATCH = 1000
MOST_UNSENT = 100_000
AWAY = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, TimeoutError)
log = logging.getLogger("toolgate.worker")


class PgQueuerDispatcher:
    """Sends on a thread of its own, many orders at a time; delivers on the loop of whoever asks."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._unsent: deque[Order] = deque()
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._wake: asyncio.Event | None = None
        self._is_closed = False

    def send(self, order: Order) -> None:
        if len(self._unsent) >= MOST_UNSENT:
            log.warning("too many orders wait to be sent; call %s is sent later", order.call_id)
            return
        self._unsent.append(order)
        with self._lock:
            if self._is_closed:
                return
            if self._thread is None:
                self._loop, self._wake = asyncio.new_event_loop(), asyncio.Event()
                self._thread = threading.Thread(target=self._serve, name="toolgate-orders", daemon=True)
                self._thread.start()
            assert self._loop is not None
            assert self._wake is not None
            self._loop.call_soon_threadsafe(self._wake.set)

    def _serve(self) -> None:
        assert self._loop is not None
        try:
            self._loop.run_until_complete(self._send_all())
        finally:
            self._loop.close()

    async def _send_all(self) -> None:
        """Send what is there until closed, over a connection that is made again when it is lost."""
        failures = 0
        while not self._is_closed:
            try:
                async with _connected(self._dsn, "toolgate-orders") as (connection, queries):
                    while not self._is_closed or self._unsent:
                        await self._send_some(queries)
                        failures = 0
                        await self._next(connection)
            except Exception as error:  # noqa: BLE001  # whatever a broken connection raises, orders must go on
                log.warning("orders cannot be sent now (%s); trying again", type(error).__name__)
                await asyncio.sleep(AGAIN_S[min(failures, len(AGAIN_S) - 1)])
                failures += 1

    async def _next(self, connection: asyncpg.Connection[Any]) -> None:
        assert self._wake is not None
        if self._unsent or self._is_closed:
            return
        await self._wake.wait()
        self._wake.clear()
        if connection.is_closed():
            raise ConnectionResetError

    async def _send_some(self, queries: Queries) -> None:
        orders = [self._unsent.popleft() for _ in range(min(len(self._unsent), BATCH))]
        if not orders:
            return
        unique = {f"{order.project}\x1f{order.call_id}": order for order in orders}
        try:
            await queries.enqueue(
                [_entry(order.queue) for order in unique.values()],
                [orjson.dumps(tuple(order)) for order in unique.values()],
                [0] * len(unique),
                dedupe_key=list(unique),
                on_conflict="skip",
            )
        except BaseException:
            self._unsent.extendleft(reversed(orders))
            raise

    async def deliver(self, queues: Collection[str], take: Take, *, concurrency: int) -> None:
        running: set[asyncio.Task[None]] = set()
        failures = 0
        try:
            while True:
                try:
                    async with _connected(self._dsn, "toolgate-worker") as (_connection, queries):
                        failures = 0
                        await _Delivery(queries, queues, take, concurrency, running).run()
                except Exception as error:  # noqa: BLE001  # the same
                    log.warning("orders cannot be fetched now (%s); trying again", type(error).__name__)
                    await asyncio.sleep(AGAIN_S[min(failures, len(AGAIN_S) - 1)])
                    failures += 1
        finally:
            if running:
                await asyncio.wait(running)

    async def close(self) -> None:
        with self._lock:
            self._is_closed = True
            loop, thread = self._loop, self._thread
            if loop is not None and self._wake is not None and not loop.is_closed():
                loop.call_soon_threadsafe(self._wake.set)
        if thread is not None:
            await asyncio.to_thread(thread.join, 5)


class _Delivery:
    """One connection's worth of delivering: fetch as many orders as there is room for, start them, confirm them."""

    def __init__(
        self, queries: Queries, queues: Collection[str], take: Take, concurrency: int, running: set[asyncio.Task[None]]
    ) -> None:
        self._queries, self._take, self._concurrency, self._running = queries, take, concurrency, running
        self._entries = {QueueEntrypoint(_entry(queue)): EntrypointExecutionParameter(0) for queue in queues}
        self._id = QueueManagerId(uuid.uuid4())
        self._news = asyncio.Event()

    async def run(self) -> None:
        await self._queries.driver.add_listener(self._queries.qbe.settings.channel, lambda _payload: self._news.set())
        while True:
            self._news.clear()
            room = self._concurrency - len(self._running)
            jobs = await self._fetch(room) if room > 0 else []
            for job in jobs:
                self._start(job)
            if jobs:
                await self._queries.log_jobs([(job, "successful", None) for job in jobs])
            else:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_EVERY_S):
                        await self._news.wait()

    async def _fetch(self, room: int) -> list[Job]:
        return await self._queries.dequeue(
            batch_size=min(room, BATCH),
            entrypoints=self._entries,
            queue_manager_id=self._id,
            global_concurrency_limit=None,
            heartbeat_timeout=timedelta(seconds=REDELIVER_AFTER_S),
        )

    def _start(self, job: Job) -> None:
        order = Order(*orjson.loads(job.payload or b"[]"))
        task = asyncio.get_running_loop().create_task(_run(self._take, order))
        self._running.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._news.set()  # there is room again


async def _run(take: Take, order: Order) -> None:
    await take(order)


def _entry(queue: str) -> str:
    return f"toolgate:{queue}"


@contextlib.asynccontextmanager
async def _connected(dsn: str, name: str) -> Any:
    """A connection and the engine on it. Nothing here need outlive a crash, so nothing waits for the disk."""
    settings = {"application_name": name, "synchronous_commit": "off"}
    connection = await asyncpg.connect(dsn, timeout=CONNECT_S, command_timeout=CONNECT_S, server_settings=settings)
    try:
        queries = _queries(connection)
        if not await queries.has_table(queries.qbe.settings.queue_table):
            await _make(connection, queries)
        yield connection, queries
    finally:
        connection.terminate() if connection.is_closed() else await _end(connection)


async def _end(connection: asyncpg.Connection[Any]) -> None:
    with contextlib.suppress(*AWAY):
        await connection.close(timeout=1)


def _queries(connection: asyncpg.Connection[Any]) -> Queries:
    settings = DBSettings(prefix=PREFIX, durability=Durability.volatile)
    return Queries(
        AsyncpgDriver(connection),
        qbe=qb.QueryBuilderEnvironment(settings),
        qbq=qb.QueryQueueBuilder(settings),
        qbs=qb.QuerySchedulerBuilder(settings),
    )


async def _make(connection: asyncpg.Connection[Any], queries: Queries) -> None:
    """Make the tables, or bring them to what this version of the engine needs; one process at a time."""
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", INSTALLING)
        if not await queries.schema_is_installed():
            await queries.install()


async def upgrade(dsn: str) -> bool:
    """Make or upgrade the engine's tables; whether anything was to be done. What `toolgate db upgrade` does."""
    connection = await asyncpg.connect(dsn, timeout=CONNECT_S)
    try:
        queries = _queries(connection)
        if not await queries.has_table(queries.qbe.settings.queue_table):
            await _make(connection, queries)
            return True
        return bool((await queries.apply_upgrade()).statements)
    finally:
        await connection.close()
