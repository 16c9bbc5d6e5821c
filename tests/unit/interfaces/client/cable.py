"""A wire between a client and a server that can be cut."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from toolgate.testing.patience import until


class Cable:
    """A local TCP proxy whose wire can be cut. Its port stays, whatever happens to the server behind it."""

    def __init__(self) -> None:
        self.target: tuple[str, int] | None = None
        self.port = 0
        self._open: set[asyncio.StreamWriter] = set()
        self.carried = 0

    def plug(self, url: str) -> None:
        host, _, port = url.removeprefix("http://").partition(":")
        self.target = (host, int(port))

    def cut(self) -> None:
        """Break every connection, in the middle of whatever it says."""
        for writer in tuple(self._open):
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.target is None:
            writer.transport.abort()
            return
        try:
            there, back = await asyncio.open_connection(*self.target)
        except OSError:
            writer.transport.abort()
            return
        self._open |= {writer, back}
        self.carried += 1
        try:
            await asyncio.gather(_pump(reader, back), _pump(there, writer))
        finally:
            self._open -= {writer, back}
            for one in (writer, back):
                one.transport.abort()


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
    sink.transport.abort()


@asynccontextmanager
async def cable() -> AsyncIterator[Cable]:
    made = Cable()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        made.cut()
        await until(lambda: not made._open)
