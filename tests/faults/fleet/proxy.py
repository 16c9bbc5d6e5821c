"""A way to a server that can be slow, stall, or break: what a network does."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator

from toolgate.testing.patience import PATIENCE_S


class Proxy:
    """Passes bytes on to a port of this machine. `delay_s` slows them; `cut` ends all connections and takes none."""

    def __init__(self, port: int) -> None:
        self._target = port
        self.port = 0
        self.delay_s = 0.0
        self.is_cut = False
        self.loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_cut:
            writer.transport.abort()
            return
        try:
            theirs, ours = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, ours}
        await asyncio.gather(self._pass(reader, ours), self._pass(theirs, writer))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                if self.delay_s:
                    await asyncio.sleep(self.delay_s)
                writer.write(data)
                await writer.drain()
        writer.transport.abort()
        self._writers.discard(writer)

    def cut(self) -> None:
        """Break everything, from any thread."""
        self.is_cut = True
        assert self.loop is not None
        self.loop.call_soon_threadsafe(self._abort)

    def _abort(self) -> None:
        for writer in tuple(self._writers):
            writer.transport.abort()

    def heal(self) -> None:
        self.is_cut = False

    async def run(self, ready: threading.Event) -> None:
        self.loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await self._stop.wait()
        self._abort()
        server.close()

    def stop(self) -> None:
        self.is_cut = True
        assert self.loop is not None
        assert self._stop is not None
        self.loop.call_soon_threadsafe(self._stop.set)


@contextlib.contextmanager
def proxy_to(port: int) -> Iterator[Proxy]:
    """A running proxy to a port, on a thread of its own: what goes through it may block everybody else's."""
    proxy, ready = Proxy(port), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(proxy.run(ready)), name="proxy", daemon=True)
    thread.start()
    assert ready.wait(PATIENCE_S)
    try:
        yield proxy
    finally:
        proxy.stop()
        thread.join(PATIENCE_S)
