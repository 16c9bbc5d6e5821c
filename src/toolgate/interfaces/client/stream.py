"""An event stream that outlives its connections: it comes back where it was and tells no event twice.

Signals to run a call carry no id: they are sent once, to one connection, and are never repeated by coming back.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing
from typing import Any, Self

from toolgate.errors import AnswerLostError, ServerError
from toolgate.interfaces.client.backoff import LONGEST_S, delays
from toolgate.interfaces.client.connection import Connection, is_passing
from toolgate.interfaces.client.sse import StreamEvent, event_of

__all__ = ["EventStream", "StreamEvent"]

SILENCE_S = 50.0
"""Servers break silence every 15 seconds: a connection that says nothing for longer than this is dead."""
READY = "stream.ready"


class EventStream:
    """Yields `StreamEvent`s: `async with client.stream() as events: async for event in events: ...`.

    A lost connection and a server that restarts are waited out for as long as it takes, once the first connection
    was made; the first is tried for the client's `retry_s`. `last_id` is where it is. `stream.ready` tells a
    beginning: coming again, it says that the server's history is not the one we know, so look at everything anew.
    """

    def __init__(
        self,
        connection: Connection,
        path: str,
        query: Mapping[str, Any],
        *,
        after: int | None = None,
        silence_s: float = SILENCE_S,
        on_lost: Callable[[ServerError], None] | None = None,
        on_open: Callable[[], None] | None = None,
    ) -> None:
        self._connection = connection
        self._path = path
        self._query = dict(query)
        self._silence_s = silence_s
        self._on_lost = on_lost
        self._on_open = on_open
        self.last_id = after
        self.is_connected = False
        self._wanted_s: float | None = None  # how long the server wants us to wait before coming back
        self._source: AsyncGenerator[StreamEvent, None] | None = None
        self._is_closed = False
        self._reader: asyncio.Task[Any] | None = None
        self._left = asyncio.Event()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> StreamEvent:
        if self._is_closed:
            raise StopAsyncIteration
        if self._source is None:
            self._source = self._run()
        self._reader = reader = asyncio.current_task()
        self._left.clear()
        try:
            return await anext(self._source)
        except asyncio.CancelledError:
            if reader is None or not self._is_closed or reader.uncancel():
                raise  # not by `aclose` alone
            raise StopAsyncIteration from None
        finally:
            self._reader = None
            self._left.set()

    async def aclose(self) -> None:
        """End the connection, and the loop of who reads it in another task. `last_id` is where to go on."""
        self._is_closed = True
        reader = self._reader
        if reader is not None and reader is not asyncio.current_task():
            reader.cancel()
            await self._left.wait()
        if self._source is not None:
            await self._source.aclose()

    async def _run(self) -> AsyncGenerator[StreamEvent, None]:
        now = asyncio.get_running_loop().time
        until: float | None = now() + self._connection.options.retry_s
        waits = delays()
        while True:
            error: ServerError = AnswerLostError("The server ended the stream.")
            try:
                async with aclosing(self._connected()) as told:
                    async for event in told:
                        until, waits = None, _from(self._wanted_s)
                        yield event
            except ServerError as caught:
                error = caught
            finally:
                self.is_connected = False
            pause_s = max(next(waits), error.retry_after_s or 0.0)
            if not is_passing(error, repeats=True) or (until is not None and now() + pause_s > until):
                raise error
            if self._on_lost is not None:
                self._on_lost(error)
            await asyncio.sleep(pause_s)

    async def _connected(self) -> AsyncGenerator[StreamEvent, None]:
        async with self._connection.open_stream(
            self._path, self._query, last_id=self.last_id, silence_s=self._silence_s
        ) as source:
            self.is_connected = True
            if self._on_open is not None:
                self._on_open()
            id_before = ""
            async for sent in source:
                if sent.retry is not None:
                    self._wanted_s = sent.retry / 1000
                event, id_before = event_of(sent, id_before), sent.id
                if event is not None and self._is_new(event):
                    yield event

    def _is_new(self, event: StreamEvent) -> bool:
        if event.id is None:
            return True
        if event.name != READY and self.last_id is not None and event.id <= self.last_id:
            return False
        self.last_id = event.id
        return True


def _from(wanted_s: float | None) -> Iterator[float]:
    """Waits that begin as the server wants, within reason."""
    return delays() if wanted_s is None else delays(first_s=min(max(wanted_s / 4, 0.05), LONGEST_S))
