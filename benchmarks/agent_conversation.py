"""A conversation with the agent against the sum of its bare parts, and what conversations that wait hold in memory.

Five messages make 20 calls; each message has one call that an automatic approver approves over HTTP when it hears of
it on the stream. The bare parts are as many HTTP round trips to a server that does nothing, and as many commits of one
row, fsynced and not, as the conversation needs, measured in the same run. Prints one JSON line.
"""

import argparse
import asyncio
import json
import sqlite3
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import psutil
from benchmarks.server_host import PROJECT, hosted

BASE = f"/my/projects/{PROJECT}"
MESSAGES, READS = 5, 3
ROUND_TRIPS = 2 * MESSAGES
"""A message and an approval each."""
FSYNCED = MESSAGES * (3 + 6)
"""Question, decision and claim of the approved call; six versions of the run: begun, called, waiting, taken up,
told, answered."""
COMMITTED = MESSAGES * (2 * READS + 1)
"""Claim and result of each read, and the result of the approved call."""


class Ear:
    """Hears the chat stream, approves every question, and says when the agent has answered."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client
        self.answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.ready = asyncio.Event()

    async def listen(self) -> None:
        async with self._client.stream("GET", f"{BASE}/chat/stream", timeout=None) as response:
            name = ""
            async for line in response.aiter_lines():
                if line.startswith("event: "):
                    name = line[7:]
                elif line.startswith("data: "):
                    await self._hear(name, line[6:])

    async def _hear(self, name: str, data: str) -> None:
        if name == "stream.ready":
            self.ready.set()
        elif name == "tool.approval_request":
            path = f"{BASE}/approvals/{json.loads(data)['approval_id']}/approve"
            (await self._client.post(path, json={})).raise_for_status()
        elif name == "chat.message" and '"final":true' in data:
            self.answers.put_nowait(json.loads(data))


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[tuple[httpx2.AsyncClient, psutil.Process]]:
    async with hosted("ours-agent", folder) as told:
        headers = {"Authorization": f"Bearer {told['token']}"}
        url = f"http://127.0.0.1:{told['port']}"
        async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=60) as client:
            yield client, psutil.Process(told["pid"])


async def say(client: httpx2.AsyncClient, content: str, session: str) -> None:
    body = {"content": content, "session_id": session}
    (await client.post(f"{BASE}/chat/messages", json=body)).raise_for_status()


async def converse(client: httpx2.AsyncClient, session: str, ear: Ear) -> float:
    """Return how many milliseconds the whole conversation takes."""
    lines = [f'/tool look {{"number": {number}}}' for number in range(READS)] + ['/tool change {"number": 1}']
    began = time.perf_counter()
    for _ in range(MESSAGES):
        await say(client, "\n".join(lines), session)
        answer = await ear.answers.get()
        if [one["status"] for one in answer["tool_results"]] != ["completed"] * len(lines):
            raise RuntimeError(f"the conversation went wrong: {answer}")
    return (time.perf_counter() - began) * 1000


async def conversation_ms(folder: Path, rounds: int) -> float:
    """The best of some conversations, after one that warms everything up."""
    async with served(folder) as (client, _):
        ear = Ear(client)
        listening = asyncio.create_task(ear.listen())
        await ear.ready.wait()
        taken = [await converse(client, f"s{number}", ear) for number in range(rounds + 1)]
        listening.cancel()
        return min(taken[1:])


async def round_trips_ms(folder: Path, rounds: int) -> float:
    async with hosted("bare-stream", folder) as told, httpx2.AsyncClient() as client:
        url, best = f"http://127.0.0.1:{told['port']}/", float("inf")
        for _ in range(rounds + 1):
            began = time.perf_counter()
            for _ in range(ROUND_TRIPS):
                await client.post(url, json={"content": "x"})
            best = min(best, (time.perf_counter() - began) * 1000)
        return best


def commits_ms(folder: Path, rounds: int) -> float:
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, body BLOB)")
    body, best = b"x" * 500, float("inf")
    for _ in range(rounds + 1):
        began = time.perf_counter()
        for level, count in (("FULL", FSYNCED), ("NORMAL", COMMITTED)):
            connection.execute(f"PRAGMA synchronous={level}")
            for _ in range(count):
                connection.execute("INSERT INTO rows (body) VALUES (?)", (body,))
        best = min(best, (time.perf_counter() - began) * 1000)
    connection.close()
    return best


async def waiting(folder: Path, count: int) -> dict[str, float]:
    """What conversations that wait for a person add to the server, after a few that warm it up."""
    async with served(folder) as (client, process):
        for number in range(20):
            await say(client, '/tool change {"number": 1}', f"warm{number}")
        await _all_wait(client, 20)
        memory, threads = process.memory_info().rss, process.num_threads()
        for number in range(count):
            await say(client, '/tool change {"number": 1}', f"s{number}")
        await _all_wait(client, count + 20)
        return {
            "waiting": float(count),
            "waiting_kb": (process.memory_info().rss - memory) / 1024 / count,
            "waiting_threads": float(max(0, process.num_threads() - threads)),
        }


async def _all_wait(client: httpx2.AsyncClient, count: int) -> None:
    async with asyncio.timeout(120):
        while True:
            found = (await client.get(f"{BASE}/chat/runs?status=waiting&limit=1000")).json()["runs"]
            if len(found) == count:
                return
            await asyncio.sleep(0.05)


async def measure(rounds: int, count: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as place:
        folders = [Path(place) / name for name in ("agent", "bare", "commits", "waiting")]
        for folder in folders:
            folder.mkdir()
        taken = await conversation_ms(folders[0], rounds)
        trips, commits = await round_trips_ms(folders[1], rounds), commits_ms(folders[2], rounds)
        parts = {"bare_ms": trips + commits, "round_trips_ms": trips, "commits_ms": commits}
        return {"conversation_ms": taken, **parts, **await waiting(folders[3], count)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--waiting", type=int, default=200)
    options = parser.parse_args()
    print(json.dumps(asyncio.run(measure(options.rounds, options.waiting))))
