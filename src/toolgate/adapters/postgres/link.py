"""The way to PostgreSQL: one thread with an event loop of its own, and the connections that live on it.

asyncpg's connections belong to one event loop; callers come from many, which may end at any time. So all work is
done on the loop of this thread, and whoever asks waits on their own.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import asyncpg

from toolgate.adapters.postgres.url import Address
from toolgate.errors import ConflictError, StoreError
from toolgate.kernel.context import SYSTEM_PROJECT

T = TypeVar("T")
Connection = Any
"""asyncpg has no annotations."""
CONNECT_S = 10.0
COMMAND_S = 30.0
"""How long an answer may take before a connection counts as dead; the server itself gives up much earlier."""
STATEMENT_MS, LOCK_MS = 20_000, 10_000
LIMITS = {
    "statement_timeout": str(STATEMENT_MS),
    "lock_timeout": str(LOCK_MS),
    "idle_in_transaction_session_timeout": "5000",
}
"""How long a statement may run and wait for a lock, and how long a transaction whose client is gone keeps its locks."""
READERS = 4
LINGER_S = 2.0
"""How long work under way may take when the store is closed."""

EVERYTHING = "*"
SEPARATOR = "\x1f"
_PEOPLE = "\x1edirectory"
"""Stands for no project: for accounts and tokens, which no transaction of a project sees."""
DIRECTORY = f"{_PEOPLE}{SEPARATOR}{SYSTEM_PROJECT}"
"""What the directory sees: accounts and tokens, and the project whose events tell of them."""

LOST = (OSError, asyncpg.PostgresConnectionError, asyncpg.InterfaceError, asyncpg.InternalClientError, TimeoutError)
"""The connection is gone, or cannot be trusted any more."""
AWAY = (
    *LOST,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.TooManyConnectionsError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.DatabaseDroppedError,
)
"""The server is not there just now, or is not the one that can be written to: worth another try elsewhere or later."""


async def connect(address: Address, **settings: str) -> Connection:
    """Return a connection. Behind a transaction pooler nothing is prepared or set beyond one transaction."""
    return await asyncpg.connect(address.dsn, **_options(address, **settings))


def _options(address: Address, **more: str) -> dict[str, Any]:
    settings = {"application_name": "toolgate"}
    if address.pooled:  # a pooler passes no settings on, and another client may get what was prepared
        return {"timeout": CONNECT_S, "command_timeout": COMMAND_S, "server_settings": settings,
                "statement_cache_size": 0}  # fmt: skip
    return {"timeout": CONNECT_S, "command_timeout": COMMAND_S, "server_settings": {**settings, **LIMITS, **more}}


def check_name(project: str) -> None:
    """Refuse a project whose name would open other projects' rows to its transactions."""
    if project in (EVERYTHING, _PEOPLE) or SEPARATOR in project:
        raise StoreError("A project on PostgreSQL cannot be named `*` or have the character 30 or 31 in its name.")


def begin(address: Address, projects: str | list[str], *, writing: bool = False, then: str = "", **more: str) -> str:
    """Return what begins a transaction that sees these projects (`*`: all) and no others.

    Whatever it sets ends with it, so a pooler may come between any two transactions. The names are written as
    hexadecimal digits: whatever they hold, they end nothing but themselves. `then` is what else to select.
    """
    seen = _seeing(projects, local=True)
    settings = {**LIMITS, **more} if address.pooled else {}
    chosen = [seen, *(f"set_config('{name}', '{value}', true)" for name, value in settings.items())]
    access = "READ WRITE" if writing else "READ ONLY"
    return f"BEGIN ISOLATION LEVEL READ COMMITTED {access}; SELECT {', '.join(chosen)}{then}"


def _seeing(projects: str | list[str], *, local: bool) -> str:
    """Return the expression that lets a transaction, or a whole connection, see these projects and no others."""
    if not isinstance(projects, str):
        for project in projects:
            check_name(project)
    names = projects if isinstance(projects, str) else SEPARATOR.join(projects)
    said = f"convert_from('\\x{names.encode().hex()}'::bytea, 'UTF8')"
    return f"set_config('toolgate.projects', {said}, {'true' if local else 'false'})"


class Reading(asyncpg.Connection):  # type: ignore[misc]  # asyncpg has no types
    """A connection that knows which projects it sees: reading the same ones again takes one round trip."""

    _sees: str | None = None

    async def see(self, projects: str | list[str]) -> None:
        """See these projects and no others from now on. Not for a connection that others use between two queries."""
        wanted = _seeing(projects, local=False)
        if wanted != self._sees:
            self._sees = None
            await self.execute(f"SELECT {wanted}")
            self._sees = wanted


class Link:
    """A thread, its event loop, and a pool of connections for reading."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="toolgate-postgres", daemon=True)
        self._pool: asyncpg.Pool | None = None
        self._lock = threading.Lock()
        self._is_ending = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread.start()

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()

    def check(self) -> None:
        """Refuse to work in a forked child: thread and connections are the parent's."""
        if os.getpid() != self._pid:
            raise StoreError("This store was opened before a fork; open it again in the child process.")
        if self._is_ending:
            raise StoreError("The store is closed.")

    def _start(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Give the work to the loop, unless that is about to end: what it takes before, it sees through."""
        try:
            with self._lock:
                self.check()
                return asyncio.run_coroutine_threadsafe(work, self.loop)
        except StoreError:
            work.close()
            raise

    def hand_over(self, callback: Callable[..., object], *given: object) -> None:
        """Have the loop call this soon; StoreError where it is about to end: what it takes before, it sees through."""
        with self._lock:
            self.check()
            self.loop.call_soon_threadsafe(callback, *given)

    def keep(self, task: asyncio.Task[None]) -> None:
        """Hold on to a task of the link's loop until it ends."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do the work and return its result; blocks this thread."""
        return self._start(work).result()

    async def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Do the work and return its result. Whoever stops waiting leaves it to end by itself."""
        doing = asyncio.wrap_future(self._start(work))
        try:
            return await asyncio.shield(doing)
        except asyncio.CancelledError:
            if doing.cancelled():  # not whoever waits, but the work itself: the store was closed meanwhile
                raise StoreError("The store is closed.") from None
            raise

    @asynccontextmanager
    async def transaction(self, projects: str | list[str], *, writing: bool = False) -> AsyncIterator[Connection]:
        """On the link's own loop: a transaction that sees these projects. StoreError where there is no database."""
        is_committing = False
        try:
            pool = await self._connections()
            async with pool.acquire(timeout=CONNECT_S) as connection:
                await connection.execute(begin(self.address, projects, writing=writing))
                try:
                    yield connection
                except BaseException:
                    if not connection.is_closed():
                        await connection.execute("ROLLBACK")
                    raise
                is_committing = writing
                await connection.execute("COMMIT")
        except asyncpg.IntegrityConstraintViolationError as error:
            raise ConflictError("Something with this id exists already.") from error
        except (asyncpg.PostgresError, *LOST) as error:
            if is_committing and isinstance(error, AWAY):
                raise StoreError(
                    "The connection to PostgreSQL was lost during a commit: it is not known whether it was "
                    "written. Look before you repeat it."
                ) from error
            raise failure(error, doing="read" if not writing else "written") from error

    async def fetch(self, sql: str, *values: Any, projects: str | list[str]) -> list[Any]:
        """Return the rows of one query; tried once more where an idle connection turned out to be dead."""
        for last in (False, True):
            try:
                return await self._fetch(sql, values, projects)
            except StoreError as error:
                if last or not isinstance(error.__cause__, AWAY):
                    raise
                if self._pool is not None:
                    await self._pool.expire_connections()
        raise AssertionError("unreachable")

    async def _fetch(self, sql: str, values: tuple[Any, ...], projects: str | list[str]) -> list[Any]:
        rows: list[Any]
        if self.address.pooled:  # the next query may be another client's connection
            async with self.transaction(projects) as connection:
                rows = await connection.fetch(sql, *values)
                return rows
        try:
            pool = await self._connections()
            async with pool.acquire(timeout=CONNECT_S) as connection:
                await connection.see(projects)
                rows = await connection.fetch(sql, *values)
                return rows
        except (asyncpg.PostgresError, *LOST) as error:
            raise failure(error, doing="read") from error

    async def _connections(self) -> asyncpg.Pool:
        if self._pool is None:
            self._pool = asyncpg.create_pool(
                self.address.dsn,
                min_size=0,
                max_size=READERS,
                reset=_nothing,
                connection_class=Reading,
                **_options(self.address),
            )
            await self._pool
        return self._pool

    async def close(self) -> None:
        """End all connections and the thread."""
        if (ending := self._begin_end()) is not None:
            await asyncio.shield(asyncio.wrap_future(ending))
            await asyncio.to_thread(self._stop)

    def abandon(self) -> None:
        """The same for whoever has no event loop."""
        if (ending := self._begin_end()) is not None:
            ending.result()
            self._stop()

    def _begin_end(self) -> concurrent.futures.Future[None] | None:
        """Take no more work and end what is there; None where that was begun already, or is another process's."""
        with self._lock:
            if os.getpid() != self._pid or self._is_ending:
                return None
            self._is_ending = True
            return asyncio.run_coroutine_threadsafe(self._end(), self.loop)

    def _stop(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()

    async def _end(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:
            await asyncio.wait(others, timeout=LINGER_S)
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        if self._pool is not None:
            pool, self._pool = self._pool, None
            try:
                await asyncio.wait_for(pool.close(), timeout=5)
            except (TimeoutError, *LOST):
                pool.terminate()


async def _nothing(_connection: object) -> None:
    """Nothing needs resetting: every transaction takes its settings along when it ends."""


def failure(error: BaseException, *, doing: str = "written") -> StoreError:
    """What PostgreSQL could not do, in words that say what to do; nothing of the values or the URL is in them."""
    if isinstance(error, asyncpg.DiskFullError):
        return StoreError("PostgreSQL's disk is full: nothing was written and nothing runs. Free some space there.")
    if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
        return StoreError(
            "PostgreSQL takes no writes (a standby, or read-only): nothing was written and nothing runs. Point the URL "
            "at the primary, or name all hosts with `target_session_attrs=read-write`."
        )
    if isinstance(error, asyncpg.InvalidAuthorizationSpecificationError | asyncpg.InvalidCatalogNameError):
        return StoreError(f"PostgreSQL refused the connection: {_said(error)}. Check user, password and database.")
    if isinstance(error, asyncpg.LockNotAvailableError):
        return StoreError(f"The project stayed locked by another server for {LOCK_MS / 1000:g} s; nothing was {doing}.")
    if isinstance(error, asyncpg.QueryCanceledError):
        return StoreError(f"PostgreSQL did not answer within {STATEMENT_MS / 1000:g} s; nothing was {doing}.")
    if isinstance(error, asyncpg.InsufficientPrivilegeError):
        return StoreError(f"PostgreSQL does not let this user do that: {_said(error)}.")
    if isinstance(error, AWAY):
        return StoreError(
            f"PostgreSQL cannot be reached ({type(error).__name__}): nothing was {doing} and nothing runs. Every "
            "further attempt tries to reach it again."
        )
    state = getattr(error, "sqlstate", None) or "no code"
    return StoreError(f"PostgreSQL cannot do that ({type(error).__name__}, {state}); nothing was {doing}.")


def _said(error: BaseException) -> str:
    """The message alone: details may quote values."""
    return str(error.args[0]).rstrip(".") if error.args else type(error).__name__
