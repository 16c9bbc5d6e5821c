"""Servers that are not Toolgate's: one that writes down what it is asked, and ones that answer anything."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

Answerer = Callable[["Asked", asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True)
class Asked:
    """One request as it came."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any = None


@dataclass
class Listener:
    """A server on a port; `asked` is what it was asked so far."""

    port: int = 0
    asked: list[Asked] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


async def read_request(reader: asyncio.StreamReader) -> Asked | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    first, *lines = head.strip().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    raw = await reader.readexactly(int(headers.get("content-length", "0")))
    parts = urlsplit(target)
    body = json.loads(raw) if raw else None
    return Asked(method, unquote(parts.path), dict(parse_qsl(parts.query)), headers, body)


def reply(status: int, body: bytes, *headers: str, media: str = "application/json") -> bytes:
    lines = [f"HTTP/1.1 {status} Status", f"Content-Type: {media}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def problem(status: int, code: str, detail: str = "No.", *headers: str, **more: Any) -> bytes:
    body = json.dumps({"code": code, "detail": detail, "status": status, **more}).encode()
    return reply(status, body, *headers, media="application/problem+json")


async def refuse(_asked: Asked, writer: asyncio.StreamWriter) -> None:
    writer.write(problem(400, "recorded", "Written down."))


def always(data: bytes) -> Answerer:
    """Answer everything with the same bytes, and hang up."""

    async def answer(_asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        writer.close()

    return answer


def in_turn(*answers: bytes) -> Answerer:
    """Answer with these bytes one after the other, the last one for ever; empty ones hang up."""
    left = list(answers)

    async def answer(_asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(left.pop(0) if len(left) > 1 else left[0])
        await writer.drain()
        writer.close()

    return answer


@asynccontextmanager
async def listening(answer: Answerer = refuse, *, port: int = 0) -> AsyncIterator[Listener]:
    found = Listener()
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            with suppress(ConnectionError, asyncio.CancelledError):
                while (asked := await read_request(reader)) is not None:
                    found.asked.append(asked)
                    await answer(asked, writer)
                    if writer.is_closing():
                        break
        finally:
            tasks.discard(task)
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", port)
    found.port = server.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        server.close()
        left = list(tasks)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
