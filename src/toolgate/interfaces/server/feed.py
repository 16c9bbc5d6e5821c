"""One project's events for all who listen: read once, encoded once, kept in a ring, each listener with a cursor.

A listener that falls out of the ring, or comes back with an old cursor, reads from the store: nothing is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable

from toolgate.errors import ToolgateError
from toolgate.gate import Gate
from toolgate.interfaces.server.frames import Encoder, Frame
from toolgate.kernel.approval import Approval

AGAIN_S = 1.0
PAGE = 200
log = logging.getLogger("toolgate.server")


class Listener:
    """One connection's place in a feed. `wake` may be called on the feed's loop at any time."""

    __slots__ = ("_future", "cursor", "is_closed", "skip", "skip_until")

    def __init__(self, cursor: int) -> None:
        self.cursor = cursor
        self.is_closed = False
        self.skip: set[str] = set()
        self.skip_until = 0
        self._future: asyncio.Future[None] | None = None

    def wake(self) -> None:
        future = self._future
        if future is not None and not future.done():
            future.set_result(None)

    def close(self) -> None:
        self.is_closed = True
        self.wake()

    async def wait(self) -> None:
        """Return at the next wake-up."""
        self._future = asyncio.get_running_loop().create_future()
        try:
            await self._future
        finally:
            self._future = None


async def skip_told(gate: Gate, feed: Feed, listener: Listener, pending: list[Approval]) -> None:
    """A question asked just now is among the pending and still to come from the feed: have it told once."""
    coming = await gate.events(project=feed.project, after=listener.cursor) if pending else []
    asked = {event.data["request_id"] for event in coming if event.type == "approval.requested"}
    listener.skip = asked & {approval.id for approval in pending}
    listener.skip_until = coming[-1].seq if coming else 0


class Feed:
    """The ring of one project in one encoding, filled for as long as somebody listens."""

    def __init__(
        self, gate: Gate, project: str, encode: Encoder, *, frames: int, renew: Callable[[], Awaitable[None]]
    ) -> None:
        self._gate = gate
        self._renew = renew
        self.project = project
        self._encode = encode
        self._ring: deque[Frame] = deque(maxlen=frames)
        self._frames = frames
        self.head = 0
        self.listeners: set[Listener] = set()
        self._task: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()
        self._cached: tuple[int, int, bytes] = (-1, -1, b"")

    async def join(self, listener: Listener) -> None:
        """Begin to wake this listener; the feed is up to date when it returns."""
        self.listeners.add(listener)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._fill(), name=f"toolgate-feed-{self.project}")
        await self._ready.wait()

    def leave(self, listener: Listener) -> None:
        self.listeners.discard(listener)

    async def _fill(self) -> None:
        """Follow the project's events for ever; what cannot be read now is read later."""
        while True:
            try:
                if not self._ready.is_set():
                    self.head = max(0, (await self._gate.host.head(self.project)).seq - self._frames)
                    await self._catch_up()
                    self._ready.set()
                async for event in self._gate.follow(project=self.project, after=self.head):
                    frame = await self._encode(self._gate, event)
                    await self._renew()  # who may not hear it any more is gone before it is told
                    self._add(frame)
                return
            except ToolgateError as error:
                log.warning("the events of a project cannot be read now: %s", error.code)
                await asyncio.sleep(AGAIN_S)

    async def _catch_up(self) -> None:
        while batch := await self._gate.events(project=self.project, after=self.head, limit=PAGE):
            for event in batch:
                self._add(await self._encode(self._gate, event))
            await asyncio.sleep(0)

    def _add(self, frame: Frame) -> None:
        self._ring.append(frame)
        self.head = frame.seq
        for listener in self.listeners:
            listener.wake()

    async def after(self, listener: Listener) -> bytes:
        """Return what follows the listener's cursor and move it on; empty where there is nothing yet."""
        if listener.cursor >= self.head:
            return b""
        first = self._ring[0].seq if self._ring else self.head + 1
        if listener.cursor < first - 1:
            return await self._from_store(listener)
        if listener.skip:
            return self._without_skipped(listener)
        cursor, head, chunk = self._cached
        if (cursor, head) != (listener.cursor, self.head):
            missing = self.head - listener.cursor
            chunk = b"".join([self._ring[index].data for index in range(len(self._ring) - missing, len(self._ring))])
            self._cached = (listener.cursor, self.head, chunk)
        listener.cursor = self.head
        return chunk

    def _without_skipped(self, listener: Listener) -> bytes:
        """Leave out the questions this listener was told of when it came."""
        fresh = [frame for frame in self._ring if frame.seq > listener.cursor]
        kept = [frame.data for frame in fresh if frame.approval_id is None or frame.approval_id not in listener.skip]
        listener.cursor = self.head
        if self.head >= listener.skip_until:
            listener.skip.clear()
        return b"".join(kept)

    async def _from_store(self, listener: Listener) -> bytes:
        await self._renew()
        if listener.is_closed:
            return b""
        events = await self._gate.events(project=self.project, after=listener.cursor, limit=PAGE)
        if not events:
            listener.cursor = self.head
            return b""
        frames = [await self._encode(self._gate, event) for event in events]
        listener.cursor = frames[-1].seq
        return b"".join(frame.data for frame in frames)

    async def close(self) -> None:
        """End the feed and everybody who listens."""
        for listener in tuple(self.listeners):
            listener.close()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
