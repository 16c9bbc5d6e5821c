"""How long others wait while large calls arrive: `/healthz` during twenty writes of a megabyte at once.

The server is a process of its own on real sockets, with a SQLite file and undo data. One connection asks `/healthz`
over and over, a millisecond after each answer; the others send one `write_file` each, all at the same moment. The times
are wall times of the one who asks, so a busy machine is in them. Prints one JSON line.
"""

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.server_host import PROJECT, hosted
from benchmarks.server_posts import post, pump

AT_ONCE = 20
MEGABYTE = 1_000_000
PAUSE_S = 0.001
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
LINE = "the quick brown fox jumps over the lazy dog, and nobody minds.\n"


class Probe:
    """One connection that asks `/healthz` again and again and notes how long each answer took, in milliseconds."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._task: asyncio.Task[None] | None = None
        self.waits_ms: list[float] = []

    async def __aenter__(self) -> "Probe":
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        for _ in range(20):  # the first answers of a server are slower
            await self._ask()
        self._task = asyncio.create_task(self._probe())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait({self._task})
        self._writer.close()

    async def _ask(self) -> float:
        began = time.perf_counter()
        self._writer.write(HEALTH)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        await self._reader.readexactly(length)
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(repr(head[:60]))
        return (time.perf_counter() - began) * 1000

    async def _probe(self) -> None:
        while True:
            self.waits_ms.append(await self._ask())
            await asyncio.sleep(PAUSE_S)


def write_of(name: str, token: str, round_: int) -> bytes:
    """The request that writes a megabyte to a file of this name."""
    content = f"{round_}\n" + LINE * (MEGABYTE // len(LINE))
    body = {"tool_name": "write_file", "tool_params": {"path": name, "content": content}}
    return post(f"/my/projects/{PROJECT}/tools/execute", json.dumps(body), token)


async def measure(rounds: int) -> dict[str, Any]:
    """Return what `/healthz` took while nothing else happened and while large calls did, and what those took."""
    with tempfile.TemporaryDirectory() as place:
        async with hosted("ours-files", Path(place)) as told:
            port, token = told["port"], told["token"]
            await pump(port, [write_of("warm.txt", token, 0)])
            async with Probe(port) as quiet:
                await asyncio.sleep(1.0)
            waits: list[float] = []
            seconds = 0.0
            for number in range(1, rounds + 1):
                requests = [write_of(f"{one}.txt", token, number) for one in range(AT_ONCE)]
                async with Probe(port) as probe:
                    began = time.perf_counter()
                    await pump(port, requests)
                    seconds += time.perf_counter() - began
                waits += probe.waits_ms
    return {
        "quiet_p99_ms": _p99(quiet.waits_ms),
        "health_p50_ms": statistics.median(waits),
        "health_p99_ms": _p99(waits),
        "health_worst_ms": max(waits),
        "large_call_ms": seconds / rounds / AT_ONCE * 1000,
    }


def _p99(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.99)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    print(json.dumps(asyncio.run(measure(parser.parse_args().rounds))))
