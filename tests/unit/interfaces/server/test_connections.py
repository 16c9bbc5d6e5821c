"""Connections that ask nothing are closed, and those that ask are served meanwhile: on real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import resource
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest
from tests.unit.interfaces.server.house import House, P, execute, open_house
from websockets.asyncio.client import connect

from toolgate.interfaces.server import connections, operations
from toolgate.testing.patience import PATIENCE_S, until

HALF_A_HEAD = b"POST /my/projects/demo/tools/execute HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
WHOLE = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
SLOW_BODY = b"POST /my/projects/demo/tools/execute HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n%b\r\n{"
Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def dialled(house: House, number: int, sent: bytes = b"") -> AsyncIterator[list[Ends]]:
    """That many open connections, over which something was sent."""
    place = urlsplit(house.url)
    made = [await asyncio.open_connection(place.hostname, place.port) for _ in range(number)]
    for _, writer in made:
        writer.write(sent)
    try:
        yield made
    finally:
        for _, writer in made:
            writer.close()
        for _, writer in made:
            with contextlib.suppress(OSError):
                await writer.wait_closed()


async def ended(reader: asyncio.StreamReader) -> bytes:
    """What was said until the server closed the connection."""
    heard = b""
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(PATIENCE_S):
            while some := await reader.read(65536):
                heard += some
    return heard


async def is_served(house: House) -> bool:
    answer = await house.client("bot").post(f"{P}/tools/execute", json=execute("add", {"left": 1, "right": 2}))
    return bool(answer.json()["result"] == 3)


@pytest.mark.parametrize("sent", [b"", HALF_A_HEAD], ids=["silent", "half"])
async def test_half_open_connections_are_closed_while_others_are_served(sent: bytes) -> None:
    async with open_house(head_s=1) as house, dialled(house, 60, sent) as made:
        assert await is_served(house)
        await asyncio.gather(*(ended(reader) for reader, _ in made))
        assert await is_served(house)


async def test_the_head_of_a_second_request_is_timed_too() -> None:
    async with open_house(head_s=1) as house, dialled(house, 20, WHOLE) as made:
        for reader, writer in made:
            assert b" 200 " in await reader.readline()
            writer.write(HALF_A_HEAD)
        await asyncio.gather(*(ended(reader) for reader, _ in made))


async def test_an_endless_head_is_not_taken() -> None:
    async with open_house() as house, dialled(house, 1, HALF_A_HEAD) as [(reader, writer)]:
        ending = asyncio.create_task(ended(reader))
        with contextlib.suppress(ConnectionError):
            for _ in range(8 * connections.MOST_HEAD // 4096):
                writer.write(b"x" * 4096)
                await writer.drain()
        assert b" 200 " not in await ending
        assert await is_served(house)


async def test_a_large_body_is_no_large_head() -> None:
    size = 4 * connections.MOST_HEAD
    head = f"POST /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {size}\r\n\r\n".encode()
    async with open_house() as house, dialled(house, 1, head + b"x" * size + WHOLE) as [(reader, _)]:
        async with asyncio.timeout(PATIENCE_S):
            heard = b""
            while b" 200 " not in heard:
                heard += await reader.read(65536)


async def test_a_head_that_comes_byte_by_byte_is_not_waited_for() -> None:
    async with open_house(head_s=1) as house, dialled(house, 1, HALF_A_HEAD) as [(reader, writer)]:
        ending = asyncio.create_task(ended(reader))
        async with asyncio.timeout(PATIENCE_S):
            while not ending.done():
                writer.write(b"x")
                await asyncio.sleep(0.1)
        assert await ending == b""


async def test_a_body_that_nobody_reads_is_not_waited_for() -> None:
    async with open_house(head_s=1) as house, dialled(house, 20, SLOW_BODY % b"") as made:
        assert await is_served(house)
        for reader, writer in made:
            assert b" 401 " in await reader.readline()
            writer.write(b"x")
        await asyncio.gather(*(ended(reader) for reader, _ in made))


async def test_a_body_that_trickles_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "BODY_S", 0.7)
    async with open_house() as house:
        token = f"Authorization: Bearer {house.tokens['bot']}\r\n".encode()
        async with dialled(house, 1, SLOW_BODY % token) as [(reader, writer)]:
            ending = asyncio.create_task(ended(reader))
            async with asyncio.timeout(PATIENCE_S):
                while not ending.done():  # each part comes in time, but so little of it
                    writer.write(b" ")
                    await asyncio.sleep(0.1)
            assert b"body_timeout" in await ending


async def test_of_many_idle_connections_the_oldest_are_closed() -> None:
    async with open_house(head_s=300, max_idle_connections=20) as house, dialled(house, 80) as made:
        assert await is_served(house)
        await until(lambda: sum(reader.at_eof() or reader.exception() is not None for reader, _ in made) >= 59)
        newest = made[-1]
        newest[1].write(WHOLE)
        assert b" 200 " in await newest[0].readline()


async def test_streams_and_sockets_are_not_idle() -> None:
    async with open_house(head_s=0.3, max_idle_connections=2) as house:
        token = house.tokens["ann"]
        at = house.url.replace("http", "ws", 1) + "/ws"
        async with (
            house.listen("ann") as stream,
            connect(at, additional_headers={"Authorization": f"Bearer {token}"}) as socket,
        ):
            await stream.ready()
            async with dialled(house, 10) as made:
                await asyncio.gather(*(ended(reader) for reader, _ in made[:8]))
                await asyncio.sleep(1.5)
            await socket.send('{"type": "ping"}')
            assert "pong" in await socket.recv()
            assert await is_served(house)
            assert not stream.has_ended


async def test_an_answer_nobody_takes_is_given_up() -> None:
    async with open_house(slow_s=0.5) as house:
        asked = b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 100
        async with dialled(house, 1, asked) as [(_, writer)]:
            writer.transport.pause_reading()  # type: ignore[attr-defined]  # a socket's transport has it
            known = house.server.server_state.connections
            await until(lambda: known)
            await until(lambda: not known)
        assert await is_served(house)


def test_a_server_may_open_as_many_files_as_the_system_lets_it() -> None:
    least, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, most))
        connections.allow_more_files()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(most, connections.MOST_FILES)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (least, most))
