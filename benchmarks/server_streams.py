"""Server-sent events to thousands of clients: memory of each, CPU of each delivery, and a storm of reconnects.

Ours against a bare ASGI loop with a shared list of frames, each server a process of its own with the same clients.
In the storm every client comes back with the last id it saw, while events go on; what it then hears must be every
event once and in order. Prints one JSON line.
"""

import argparse
import asyncio
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import psutil
from benchmarks.server_host import PROJECT, hosted
from benchmarks.server_posts import post, pump

AT_ONCE = 200
_ID = re.compile(rb"^id: (\d+)$", re.MULTILINE)


class Ear(asyncio.Protocol):
    """A client that listens and notes the ids it hears."""

    def __init__(self, request: bytes, opened: asyncio.Future[None]) -> None:
        self._request = request
        self._opened = opened
        self._rest = b""
        self.ids: list[int] = []
        self.transport: Any = None
        self.closed = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        text = self._rest + data
        cut = text.rfind(b"\n\n") + 2 if b"\n\n" in text else 0
        self.ids += map(int, _ID.findall(text[:cut]))
        self._rest = text[cut:]
        if not self._opened.done():
            if not text.startswith(b"HTTP/1.1 200"):
                self._opened.set_exception(RuntimeError(repr(text[:200])))
            elif b"\n\n" in text:
                self._opened.set_result(None)

    def connection_lost(self, _error: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)


async def listen(port: int, path: str, token: str, last_id: int | None = None) -> Ear:
    """Open one stream."""
    loop = asyncio.get_running_loop()
    head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    head += f"Authorization: Bearer {token}\r\n" if token else ""
    head += f"Last-Event-ID: {last_id}\r\n" if last_id is not None else ""
    opened: asyncio.Future[None] = loop.create_future()
    _, ear = await loop.create_connection(lambda: Ear(f"{head}\r\n".encode(), opened), "127.0.0.1", port)
    await asyncio.wait_for(opened, 60)
    return ear


async def crowd(count: int, port: int, path: str, token: str, last_id: int | None = None) -> list[Ear]:
    """Open so many streams, some at once."""
    ears: list[Ear] = []
    while len(ears) < count:
        share = min(AT_ONCE, count - len(ears))
        ears += await asyncio.gather(*(listen(port, path, token, last_id) for _ in range(share)))
    return ears


async def until_heard(ears: list[Ear], last: int) -> None:
    async with asyncio.timeout(300):
        while any(not ear.ids or ear.ids[-1] < last for ear in ears):  # noqa: ASYNC110  # they are many
            await asyncio.sleep(0.02)


async def one(kind: str, folder: Path, clients: int, events: int) -> dict[str, float]:
    """Return memory and CPU of one kind of server, and for ours what a storm of reconnects lost or repeated."""
    path = "/stream" if kind == "bare-stream" else f"/my/projects/{PROJECT}/chat/stream"
    async with hosted(kind, folder, count=1) as told:
        port, token, process = told["port"], told.get("token", ""), psutil.Process(told["pid"])
        if kind == "bare-stream":
            publish = post("/publish", "{}")
        else:
            publish = post(f"/my/projects/{PROJECT}/tools/{told['calls'][0]}/progress", '{"progress": 0.5}', token)
        await pump(port, [publish] * 3)
        await crowd(10, port, path, token)
        before = process.memory_info().rss
        ears = await crowd(clients, port, path, token)
        memory_kb = (process.memory_info().rss - before) / 1024 / clients
        await pump(port, [publish])
        first = await _head(ears)
        cpu = sum(process.cpu_times()[:2])
        for _ in range(events):
            await pump(port, [publish])
        await until_heard(ears, first + events)
        delivery_us = (sum(process.cpu_times()[:2]) - cpu) / (clients * events) * 1e6
        found = {
            "memory_kb": memory_kb,
            "delivery_us": delivery_us,
            "held": float(sum(not e.closed.done() for e in ears)),
        }
        if kind != "bare-stream":
            found |= await storm(port, path, token, publish, ears[:1000])
        return found


async def _head(ears: list[Ear]) -> int:
    async with asyncio.timeout(60):
        while not ears[0].ids:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    await asyncio.sleep(1.0)
    return ears[0].ids[-1]


async def storm(port: int, path: str, token: str, publish: bytes, ears: list[Ear]) -> dict[str, float]:
    """Cut clients off, let events happen, and let all come back at once with the last id they saw."""
    seen = [ear.ids[-1] for ear in ears]
    for ear in ears:
        ear.transport.abort()
    await pump(port, [publish] * 200)
    publishing = asyncio.create_task(pump(port, [publish] * 200))
    back = await asyncio.gather(*(listen(port, path, token, last) for last in seen))
    await publishing
    watcher = await listen(port, path, token, 0)
    last = seen[0] + 400
    await until_heard([*back, watcher], last)
    wrong = sum(ear.ids != list(range(before + 1, ear.ids[-1] + 1)) for before, ear in zip(seen, back, strict=True))
    return {"storm_clients": float(len(back)), "storm_wrong": float(wrong)}


async def measure(clients: int, events: int) -> dict[str, float]:
    found: dict[str, float] = {"clients": float(clients)}
    with tempfile.TemporaryDirectory() as place:
        for kind in ("bare-stream", "ours-result"):
            folder = Path(place) / kind
            folder.mkdir()
            name = "bare" if kind == "bare-stream" else "ours"
            found |= {f"{name}_{key}": value for key, value in (await one(kind, folder, clients, events)).items()}
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=5000)
    parser.add_argument("--events", type=int, default=20)
    options = parser.parse_args()
    print(json.dumps(asyncio.run(measure(options.clients, options.events))))
