"""Reads of many in one statement: what the callers of one moment ask for goes to the database together.

While a statement is under way the next requests gather. A request never joins one that was sent before it was made, so
everybody sees every change whose commit has returned.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from toolgate.adapters.postgres.link import Link
from toolgate.errors import StoreError

K = TypeVar("K")
V = TypeVar("V")
AT_ONCE = 2
"""How many statements of one kind are under way at a time; the pool has room for two kinds of this."""
ENOUGH = 200
log = logging.getLogger("toolgate.postgres")


class Gathered(Generic[K, V]):
    """Reads by key: `load` gets all keys of a moment, on the link's loop, and returns the rows it found of them.

    `decode` makes what is asked for of a row, anew for everybody who asked: nobody is given what others may change.
    """

    def __init__(
        self, link: Link, load: Callable[[Sequence[K]], Awaitable[Mapping[K, Any]]], decode: Callable[[Any], V]
    ) -> None:
        self._link = link
        self._load = load
        self._decode = decode
        self._by_loop: dict[asyncio.AbstractEventLoop, list[tuple[K, asyncio.Future[V | None]]]] = {}
        self._waiting: deque[tuple[K, asyncio.Future[V | None]]] = deque()
        self._loading = 0

    async def get(self, key: K) -> V | None:
        """Return what is stored under a key; None where nothing is. StoreError where it cannot be read."""
        self._link.check()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[V | None] = loop.create_future()
        gathered = self._by_loop.get(loop)
        if gathered is None:
            gathered = self._by_loop[loop] = []
            loop.call_soon(self._hand_over, loop)
        gathered.append((key, future))
        return await future

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        gathered = self._by_loop.pop(loop)
        try:
            self._link.hand_over(self._arrive, gathered)
        except StoreError as error:
            refused: list[tuple[asyncio.Future[V | None], V | StoreError | None]] = []
            refused += [(future, error) for _, future in gathered]
            _settle(refused)

    def _arrive(self, gathered: list[tuple[K, asyncio.Future[V | None]]]) -> None:
        self._waiting.extend(gathered)
        if self._loading < AT_ONCE:
            self._loading += 1
            self._link.keep(self._link.loop.create_task(self._load_all()))

    async def _load_all(self) -> None:
        try:
            while self._waiting:
                group = [self._waiting.popleft() for _ in range(min(len(self._waiting), ENOUGH))]
                _tell(group, await self._found([key for key, _ in group]))
        finally:
            self._loading -= 1

    async def _found(self, keys: list[K]) -> list[V | StoreError | None]:
        try:
            rows = await self._load(list(dict.fromkeys(keys)))
            return [self._decoded(rows.get(key)) for key in keys]
        except StoreError as error:
            return [error] * len(keys)
        except asyncio.CancelledError:
            return [StoreError("The store is closed.")] * len(keys)
        except Exception as error:  # noqa: BLE001  # whatever it is, those who wait hear of it and the next are read
            log.error("a read of %d rows failed: %s", len(keys), type(error).__name__)
            return [StoreError(f"What is stored could not be read ({type(error).__name__}).")] * len(keys)

    def _decoded(self, row: Any) -> V | StoreError | None:
        """What a row says; one that cannot be read is the trouble of whoever asked for it alone."""
        try:
            return None if row is None else self._decode(row)
        except StoreError as error:
            return error


def _tell(group: list[tuple[K, asyncio.Future[V | None]]], found: list[V | StoreError | None]) -> None:
    """Give everybody what they asked for, one wake-up for each event loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[V | None], V | StoreError | None]]] = {}
    for (_, future), value in zip(group, found, strict=True):
        by_loop.setdefault(future.get_loop(), []).append((future, value))
    for loop, told in by_loop.items():
        try:
            loop.call_soon_threadsafe(_settle, told)
        except RuntimeError:
            log.debug("%d readers are gone with their event loop", len(told))


def _settle(told: list[tuple[asyncio.Future[V | None], V | StoreError | None]]) -> None:
    for future, value in told:
        if future.done():
            continue
        if isinstance(value, StoreError):
            future.set_exception(value)
        else:
            future.set_result(value)
