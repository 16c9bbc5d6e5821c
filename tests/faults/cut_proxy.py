"""A TCP proxy before PostgreSQL that cuts a connection exactly at a COMMIT: before it arrives, or before its answer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from toolgate.testing.patience import PATIENCE_S


class CutProxy:
    """Cuts the next `cuts` commits; `before` says whether they still arrive."""

    def __init__(self, port: int) -> None:
        self._target = port
        self.port = 0
        self.cuts = 0
        self.before = False

    async def serve(self, ready: threading.Event, stop: asyncio.Event) -> None:
        server = await asyncio.start_server(self._handle, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await stop.wait()
        server.close()

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._target)
        silent = asyncio.Event()
        pumps = [
            asyncio.create_task(self._up(reader, up_writer, silent)),
            asyncio.create_task(self._down(up_reader, writer, silent)),
        ]
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        for end in (writer, up_writer):
            end.close()
            with suppress(OSError):
                await end.wait_closed()

    async def _up(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, silent: asyncio.Event) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                if self.cuts and b"COMMIT\x00" in data:
                    self.cuts -= 1
                    if self.before:
                        return
                    silent.set()
                writer.write(data)
                await writer.drain()

    @staticmethod
    async def _down(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, silent: asyncio.Event) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                if silent.is_set():
                    return  # the answer to the commit: it never arrives
                writer.write(data)
                await writer.drain()


@contextmanager
def proxied(port: int) -> Iterator[CutProxy]:
    """A running proxy, on a thread of its own."""
    proxy, ready = CutProxy(port), threading.Event()
    loop, stop = asyncio.new_event_loop(), asyncio.Event()

    def work() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(proxy.serve(ready, stop))

    thread = threading.Thread(target=work, name="proxy")
    thread.start()
    ready.wait(PATIENCE_S)
    try:
        yield proxy
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(PATIENCE_S)
