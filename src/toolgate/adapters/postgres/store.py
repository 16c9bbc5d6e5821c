"""The durable store of many machines: PostgreSQL, with group commit.

Changes wait for the writer, which writes all that are there in one transaction; while it does, the next ones gather.
Every write is on the disk before its `commit` returns. All work is done on the loop of one thread; callers come from
any number of loops and threads.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial

from toolgate.adapters import sealing
from toolgate.adapters.postgres import schema
from toolgate.adapters.postgres.batch import keys_of
from toolgate.adapters.postgres.cursors import Cursors
from toolgate.adapters.postgres.gathered import Gathered
from toolgate.adapters.postgres.link import EVERYTHING, Link, check_name
from toolgate.adapters.postgres.news import News
from toolgate.adapters.postgres.owners import Lease
from toolgate.adapters.postgres.read import Reader, grants_of
from toolgate.adapters.postgres.url import read
from toolgate.adapters.postgres.write import PUT_SETTING, UNKEEPABLE, Writer
from toolgate.adapters.sealing import check_keys
from toolgate.adapters.sql.brakes import Watch
from toolgate.adapters.sql.gathering import Gathering, Outcome, Waiting, tell
from toolgate.adapters.sql.recent import Recent
from toolgate.adapters.sql.rows import CHANGING, approval_of
from toolgate.adapters.sql.write_set import WriteSet, is_large, write_set_of
from toolgate.errors import StoreError
from toolgate.kernel.approval import Approval
from toolgate.kernel.brake import Brakes
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change
from toolgate.kernel.delegation import Delegation
from toolgate.kernel.event import Event
from toolgate.kernel.grant import Grant
from toolgate.kernel.undo import UndoRecord
from toolgate.ports.sink import Cursor
from toolgate.ports.store import ApprovalQuery, CallQuery, DelegationQuery, Due, GrantQuery, Head, Question

ENOUGH_FOR_A_GROUP = 512
_ERROR = 5
"""Where a call's error stands among the columns that change: text of a handler, which may hold anything."""

_PRINTABLE = {0x00: "\u2400", 0x1E: "\u241e", 0x1F: "\u241f"}

log = logging.getLogger("toolgate.postgres")
utc_now: Callable[[], datetime] = partial(datetime.now, UTC)


class PostgresStore:
    """Keeps every guarantee of the Store port, durably, for any number of servers on one database."""

    is_shared = True

    def __init__(self, url: str, *, owner: str, clock: Callable[[], datetime] = utc_now) -> None:
        self.owner = owner
        self.brakes = Brakes()
        address = read(url)
        self._sealer = sealing.load_shared(address.key)
        self.marks = self._sealer.marks
        self.link = Link(address)
        self._clock = clock
        self._lease = Lease(self.link, owner, clock)
        self._watch = Watch(self.marks)
        self._reader = Reader(self.link, self._sealer)
        self._calls = Gathered(self.link, self._reader.call_rows, self._reader.call)
        self._approvals = Gathered(self.link, self._reader.approval_rows, approval_of)
        self._grants = Gathered(self.link, self._reader.grant_rows, grants_of)
        self._writer = Writer(address, self._sealer, self._watch, lease=self._lease, later=self._reader.later_changes)
        self._recent = Recent()
        self._cursors = Cursors(self.link, owner)
        self._gathering = Gathering(self._take)
        self._waiting: deque[Waiting] = deque()
        self._writing: asyncio.Task[None] | None = None
        self._has_looked = False
        self._closed = False
        try:
            self.link.run(self._open())
        except BaseException:
            self.link.abandon()
            raise

    async def _open(self) -> None:
        await schema.ensure(self.link.address)
        noted = (await self._reader.setting("keys") or "").split()
        check_keys(noted, self._sealer)
        if self._sealer.current not in noted:
            async with self.link.transaction(EVERYTHING, writing=True) as connection:
                await connection.execute(PUT_SETTING, "keys", " ".join([*noted, self._sealer.current]))
        self.brakes = await self._reader.brakes(self._watch)
        await self._lease.begin()

    def now(self) -> datetime:
        """The database's time, as far as it is known here."""
        return self._clock() + self._lease.skew

    def commit(self, change: Change) -> Awaitable[None]:
        if self._closed:
            raise StoreError("The store is closed.")
        self.link.check()
        check_name(change.project)
        if is_large(change):
            return self._gathering.add(WriteSet(change, is_ready=False))
        try:
            write_set = write_set_of(change, self._sealer)
        except UNKEEPABLE as error:
            raise _unkeepable(error) from error
        self._recent.begin(change)
        return self._gathering.add(write_set)

    def _take(self, gathered: list[Waiting]) -> None:
        self.link.loop.call_soon_threadsafe(self._arrive, gathered)

    def _arrive(self, gathered: list[Waiting]) -> None:
        self._waiting.extend(gathered)
        if self._writing is None:
            self._writing = self.link.loop.create_task(self._write_all())

    async def _write_all(self) -> None:
        try:
            while self._waiting:
                group = self._next_group()
                outcomes = await self._write([write_set for write_set, _ in group])
                for (write_set, _), outcome in zip(group, outcomes, strict=True):
                    (self._recent.note if outcome is None else self._recent.drop)(write_set.change)
                tell(group, outcomes)
        finally:
            self._writing = None

    def _next_group(self) -> list[Waiting]:
        """Take what can be written together: of changes that decide about the same thing, the first alone."""
        if self._waiting[0][0].change.set_mode is not None:
            return [self._waiting.popleft()]
        group: list[Waiting] = []
        later: list[Waiting] = []
        seen: set[object] = set()
        while self._waiting and len(group) < ENOUGH_FOR_A_GROUP:
            if self._waiting[0][0].change.set_mode is not None:
                break  # what came before it must be written before it
            waiting = self._waiting.popleft()
            keys = keys_of(waiting[0])
            (group if seen.isdisjoint(keys) else later).append(waiting)
            seen.update(keys)
        self._waiting.extendleft(reversed(later))
        return group

    async def _write(self, write_sets: list[WriteSet]) -> list[Outcome]:
        try:
            write_sets = [write_set.ready(self._sealer) for write_set in write_sets]
            outcomes = await self._writer.write(write_sets)
            self.brakes = self._writer.brakes
            return outcomes
        except StoreError as error:
            log.error("a group of %d changes could not be written: %s", len(write_sets), error)
            return [error] * len(write_sets)
        except UNKEEPABLE as error:
            # A value no row can hold harms its own change only.
            if len(write_sets) > 1:
                return [outcome for write_set in write_sets for outcome in await self._write([write_set])]
            printable = _printable(write_sets[0])
            return [_unkeepable(error)] if printable is None else await self._write([printable])
        except Exception as error:  # noqa: BLE001  # whatever it is, those who wait hear of it and the next are written
            name = type(error).__name__
            log.error("a group of %d changes broke the writer: %s", len(write_sets), name)
            return [StoreError(f"The change could not be written ({name}). Read the call again.")] * len(write_sets)

    def open_news(self) -> News:
        """Return what the bus sends and hears through."""
        return News(self.link, self.owner)

    def known(self, project: str, call_id: str) -> Call | None:
        return self._recent.call(project, call_id)

    def known_question(self, approval_id: str) -> Question | None:
        return self._recent.question(approval_id)

    def forget(self, project: str | None = None, call_id: str = "", version: int | None = None) -> None:
        self._recent.clear() if project is None else self._recent.forget(project, call_id, version)

    async def call(self, project: str, call_id: str) -> Call | None:
        return await self._calls.get((project, call_id))

    async def calls(self, query: CallQuery) -> list[Call]:
        return await self.link.do(self._reader.calls(query))

    async def approvals(self, query: ApprovalQuery) -> list[Approval]:
        if query.id is not None and query == ApprovalQuery(project=query.project, id=query.id, limit=query.limit):
            found = await self._approvals.get((query.project, query.id))
            return [] if found is None else [found]
        return await self.link.do(self._reader.approvals(query))

    async def question(self, approval_id: str, *, project: str | None = None) -> Question | None:
        return await self.link.do(self._reader.question(approval_id, project))

    async def undo(self, project: str, call_id: str) -> UndoRecord | None:
        return await self.link.do(self._reader.undo(project, call_id))

    async def grants(self, query: GrantQuery) -> list[Grant]:
        project, tool, at = query.project, query.tool_name, query.live_at
        if project is not None and tool is not None and at is not None and query.id is None:
            return (await self._grants.get((project, tool, at)) or [])[: query.limit]
        return await self.link.do(self._reader.grants(query))

    async def delegations(self, query: DelegationQuery) -> list[Delegation]:
        return await self.link.do(self._reader.delegations(query))

    async def events(
        self, project: str, *, after: int = 0, limit: int = 1000, call_id: str | None = None
    ) -> list[Event]:
        return await self.link.do(self._reader.events(project, after=after, limit=limit, call_id=call_id))

    async def head(self, project: str) -> Head:
        return await self.link.do(self._reader.head(project))

    async def open_cursor(self, project: str, sink: str | None) -> Cursor:
        check_name(project)
        return await self.link.do(self._cursors.open(project, sink))

    async def move_cursor(self, project: str, sink: str, seq: int) -> bool:
        return await self.link.do(self._cursors.move(project, sink, seq))

    async def close_cursor(self, project: str, sink: str | None) -> None:
        if sink is not None:
            await self.link.do(self._cursors.close(project, sink))

    async def due(self, now: datetime, *, limit: int = 100) -> Due:
        due = await self.link.do(self._reader.due(now, limit))
        newest = self._watch.newest
        found = await self.link.do(self._reader.brakes(self._watch))  # others may have changed them
        if self._watch.is_news(found, self.brakes, newest=newest):
            self.brakes = found
        return due

    async def orphans(self, *, status: Status = Status.EXECUTING, limit: int = 100) -> list[Call]:
        if not self._lease.trusts_others:
            return []
        if status is Status.AWAITING_APPROVAL:
            # There may be very many; they are searched when this store opens, and when somebody died.
            if self._has_looked and not await self.link.do(self._reader.has_dead()):
                return []
            self._has_looked = True
        found = await self.link.do(self._reader.orphans(self.owner, status, limit))
        return found if self._lease.trusts_others else []  # the question may have waited out an outage

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            self.link.check()
        except StoreError:
            return  # in a forked child everything here is the parent's
        self._gathering.hand_over_all()
        await self.link.do(self._finish())
        await self.link.close()

    async def _finish(self) -> None:
        while self._writing is not None:
            await asyncio.wait({self._writing})
        await self._lease.end()
        await self._writer.close()


def _unkeepable(error: Exception) -> StoreError:
    return StoreError(f"The change holds something the database cannot keep ({type(error).__name__}).")


def _printable(write_set: WriteSet) -> WriteSet | None:
    """The same with a handler's error text printable, since not every control character can be kept.

    None where that is not the trouble.
    """
    changes = write_set.update if write_set.update is not None else write_set.insert
    place = _ERROR if write_set.update is not None else _ERROR + CHANGING
    text = "" if changes is None else changes[place] or ""
    if changes is None or text.isprintable() or text.translate(_PRINTABLE) == text:
        return None
    printable = (*changes[:place], text.translate(_PRINTABLE), *changes[place + 1 :])
    return (
        write_set._replace(update=printable) if write_set.update is not None else write_set._replace(insert=printable)
    )
