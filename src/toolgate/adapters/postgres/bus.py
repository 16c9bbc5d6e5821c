"""The bus of servers on one PostgreSQL: own changes at once, others' by NOTIFY, and a look at the events besides.

Notifications of a few milliseconds go out together, after the commits they tell of: one in each transaction would
halve the speed of writing. They are hints. What a server that died did not send, or what a broken connection did not
bring, is found by a look at the ends of the chains: every few seconds, at once after a reconnect, and often where
nobody can listen, as behind a transaction pooler.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

import orjson

from toolgate.adapters.postgres.news import News
from toolgate.errors import StoreError
from toolgate.kernel.call import Status
from toolgate.ports.bus import Hint, Listener

GATHER_S = 0.005
LOOK_EVERY_S, POLL_EVERY_S, RETRY_S = 2.0, 0.1, 0.25
MOST_BYTES, MOST_PAYLOADS = 7000, 16
"""PostgreSQL carries less than 8000 bytes at a time; of very many hints only the news that there are some is sent."""
MOST_REMEMBERED = 10_000
log = logging.getLogger("toolgate.bus")


class PostgresBus:
    """Publishes to listeners of this process and of every other on the same database."""

    def __init__(self, news: News) -> None:
        self._news = news
        self._listeners: tuple[Listener, ...] = ()
        self._known: dict[tuple[str, str], Status] = {}
        self._outbox: list[Hint] = []
        self._is_due = False
        self._is_closed = False
        self._lock = threading.Lock()
        self._look = asyncio.Event()
        self._watching: asyncio.Future[None] | None = None
        self._sending: set[asyncio.Task[None]] = set()
        self._started = threading.Event()

    def publish(self, hint: Hint) -> None:
        if self._is_closed:
            return
        self._remember(hint)
        self._tell(hint)
        with self._lock:
            self._outbox.append(hint)
            if self._is_due:
                return
            self._is_due = True
        try:
            self._news.loop.call_soon_threadsafe(self._schedule)
        except RuntimeError:
            log.debug("the store closed before a hint was sent")

    def _remember(self, hint: Hint) -> None:
        if len(self._known) > MOST_REMEMBERED:
            self._known.clear()
        self._known[hint.project, hint.call_id] = hint.status

    def _tell(self, hint: Hint) -> None:
        for listener in self._listeners:
            try:
                listener(hint)
            except Exception as error:  # noqa: BLE001  # whatever it raises, the others hear the hint, and the next one
                log.error("a listener of the bus failed with %s", type(error).__name__)

    def _schedule(self) -> None:
        self._news.loop.call_later(GATHER_S, self._flush)

    def _flush(self) -> None:
        with self._lock:
            hints, self._outbox, self._is_due = self._outbox, [], False
        if hints and not self._is_closed:
            task = self._news.loop.create_task(self._send(payloads_of(self._news.owner, hints)))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _send(self, payloads: list[str]) -> None:
        try:
            await self._news.notify(payloads)
        except StoreError as error:
            log.warning("other servers cannot be notified now, they will poll: %s", error)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        with self._lock:
            self._listeners = (*self._listeners, listener)
            is_first = self._watching is None and not self._is_closed
            if is_first:
                watching = asyncio.run_coroutine_threadsafe(self._watch(), self._news.loop)
                self._watching = asyncio.wrap_future(watching, loop=self._news.loop)
        if is_first:
            self._started.wait(RETRY_S * 4)  # what others write from now on is heard

        def unsubscribe() -> None:
            with self._lock:
                self._listeners = tuple(other for other in self._listeners if other is not listener)

        return unsubscribe

    async def _watch(self) -> None:
        connection: Any = None
        known: dict[str, int] | None = None
        try:
            while True:
                self._look.clear()  # before the look: what is heard during it leads to another one
                try:
                    if self._news.can_listen and (connection is None or connection.is_closed()):
                        connection = await self._news.listen(self._hear, self._look.set)
                    known = await self._catch_up(known)
                    self._started.set()
                except (StoreError, ValueError) as error:  # the latter: a status that only a newer version knows
                    log.warning("notifications of other servers cannot be received now: %s", error)
                    await asyncio.sleep(RETRY_S)
                    continue
                try:
                    await asyncio.wait_for(self._look.wait(), LOOK_EVERY_S if self._news.can_listen else POLL_EVERY_S)
                except TimeoutError:
                    continue
        finally:
            if connection is not None:
                connection.terminate()

    async def _catch_up(self, known: dict[str, int] | None) -> dict[str, int]:
        if known is None:
            return await self._news.heads()
        for project, call_id, status in await self._news.since(known):
            self._pass_on(Hint(project, call_id, Status(status)))
        return known

    def _pass_on(self, hint: Hint) -> None:
        """Tell what another server did, unless it was told here already."""
        if hint.status is Status.EXECUTING or self._known.get((hint.project, hint.call_id)) is hint.status:
            return
        self._remember(hint)
        self._tell(hint)

    def _hear(self, payload: str) -> None:
        try:
            owner, hints = orjson.loads(payload)
            if owner == self._news.owner:
                return
            told = [Hint(project, call_id, Status(status), *more) for project, call_id, status, *more in hints or ()]
        except (ValueError, TypeError):
            log.warning("a notification cannot be read; polling instead")
            self._look.set()
            return
        if hints is None:
            self._look.set()
        for hint in told:  # whoever sent it means it, also where a call only waits or is recalled
            self._remember(hint)
            self._tell(hint)

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._listeners = ()
        loop = self._news.loop
        if loop.is_closed() or not loop.is_running():
            return
        ending = asyncio.run_coroutine_threadsafe(self._end(), loop)
        ending.result(timeout=5)

    async def _end(self) -> None:
        if self._outbox:  # what was published last is worth telling, too
            await self._send(payloads_of(self._news.owner, self._outbox))
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        await asyncio.gather(*self._sending, return_exceptions=True)


def payloads_of(owner: str, hints: list[Hint]) -> list[str]:
    """The hints as notifications that fit; where that would be very many, one that says to look."""
    payloads: list[str] = []
    page: list[str] = []
    size = 0
    for hint in dict.fromkeys(hints):
        text = orjson.dumps([hint.project, hint.call_id, hint.status.value, *hint[3:]]).decode()
        length = len(text.encode()) + 1
        if length > MOST_BYTES:
            return [orjson.dumps([owner, None]).decode()]
        if size + length > MOST_BYTES:
            payloads.append(_page(owner, page))
            page, size = [], 0
        page.append(text)
        size += length
    payloads.append(_page(owner, page))
    return payloads if len(payloads) <= MOST_PAYLOADS else [orjson.dumps([owner, None]).decode()]


def _page(owner: str, hints: list[str]) -> str:
    return f"[{orjson.dumps(owner).decode()},[{','.join(hints)}]]"
