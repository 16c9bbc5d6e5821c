"""The servers that are compared, each as a process of its own: ours, and bare ones that do the least possible.

`python -m benchmarks.server_host KIND FOLDER` prints what the load needs as one JSON line, serves on the port it
names, and ends when its standard input does.
"""

import argparse
import asyncio
import contextlib
import json
import os
import queue
import sqlite3
import sys
import threading
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

import toolgate
from toolgate import bootstrap
from toolgate.adapters.runners.client import ClientRunner
from toolgate.agent.build import build_agent
from toolgate.gate import Gate
from toolgate.interfaces.server.app import create_app
from toolgate.interfaces.server.settings import ServerSettings
from toolgate.interfaces.server.tokens import new_token
from toolgate.kernel.context import PrincipalKind
from toolgate.kernel.policy import Policy, Verdict, Word
from toolgate.ports.directory import Account

PROJECT = "bench"
FAR = toolgate.ToolDefinition("far", {}, lambda _given: None, placement="client", timeout_seconds=3600)
ASK = toolgate.ToolDefinition("ask", {}, lambda _given: None, placement="client", risk_level="medium")


class GroupWriter:
    """The least that commits in groups: one thread, one transaction for all that waits, fsynced."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=self._serve, daemon=True).start()

    def write(self, row: tuple[str, str]) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._queue.put((row, loop, future))
        return future

    def _serve(self) -> None:
        connection = sqlite3.connect(self._path, isolation_level=None)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("CREATE TABLE decisions (id TEXT PRIMARY KEY, decision TEXT)")
        while True:
            group = [self._queue.get()]
            while not self._queue.empty():
                group.append(self._queue.get())
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT OR REPLACE INTO decisions VALUES (?, ?)", [row for row, _, _ in group])
            connection.execute("COMMIT")
            for _, loop, future in group:
                loop.call_soon_threadsafe(future.set_result, None)


def bare_posts(folder: Path) -> Starlette:
    """A Starlette route that reads JSON and waits for one group-committed write."""
    writer = GroupWriter(folder / "bare.db")

    async def decide(request: Request) -> JSONResponse:
        body = await request.json()
        await writer.write((request.path_params["id"], body["decision"]))
        return JSONResponse({"success": True, "approval_id": request.path_params["id"], "status": "approved"})

    return Starlette(routes=[Route("/approvals/{id}/approve", decide, methods=["POST"])])


class BareStream:
    """The least that sends server-sent events: shared frames, a cursor and a future for each client."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.waiting: list[asyncio.Future[None]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["method"] == "POST":
            self.frames.append(b'id: %d\nevent: e\ndata: {"number":%d}\n\n' % ((len(self.frames),) * 2))
            waiting, self.waiting = self.waiting, []
            for future in waiting:
                future.set_result(None)
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
            await send({"type": "http.response.body", "body": b"{}"})
        else:
            await self._stream(send)

    async def _stream(self, send: Send) -> None:
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        cursor = len(self.frames)
        await send({"type": "http.response.body", "body": b": hello\n\n", "more_body": True})
        while True:
            while cursor < len(self.frames):
                await send({"type": "http.response.body", "body": self.frames[cursor], "more_body": True})
                cursor += 1
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.waiting.append(future)
            await future


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


async def ours(folder: Path, *, kind: str, count: int) -> tuple[Any, dict[str, Any]]:
    """Our server on SQLite with one person, and calls that wait for decisions or results.

    `ours-approve`: the tool is held by another process, as where a server takes decisions for workers. `ours-claim`:
    it is held here, so every approved call is claimed and offered here, too. `ours-result`: calls wait for results.
    `ours-inbox`: like `ours-claim`, and no two questions are alike.
    """
    url = f"sqlite:///{folder}/ours.db"
    gate = _gate(url, [FAR, ASK])
    told: dict[str, Any] = await (
        _dispatched(gate, count) if kind == "ours-result" else _asked(gate, count, alike=kind != "ours-inbox")
    )
    if kind == "ours-approve":
        await gate.aclose()
        gate = _gate(url, [FAR])
    directory = bootstrap.directory(url)
    await directory.put_account(Account(name="ann", kind=PrincipalKind.PERSON, roles={PROJECT: frozenset()}))
    text, token = new_token("ann", now=datetime.now(UTC))
    await directory.put_token(token)
    settings = ServerSettings(
        port=0, requests_per_second=1e9, request_burst=10**9, max_streams_per_account=100_000, max_streams=100_000
    )
    return create_app(gate, directory, settings=settings, owns_gate=True), {"token": text, **told}


def _gate(url: str, tools: list[toolgate.ToolDefinition]) -> Gate:
    return toolgate.open(url, tools=tools, runners={"client": ClientRunner()})


CONTEXT = toolgate.Context(project=PROJECT, principal="agent:bench")


async def _asked(gate: Gate, count: int, *, alike: bool) -> dict[str, list[str]]:
    given: list[dict[str, Any]] = [{} if alike else {"to": f"{number}@example.org"} for number in range(count)]
    asked = await asyncio.gather(*(gate.call("ask", one, context=CONTEXT, wait=False) for one in given))
    return {"approvals": [str(one.approval_id) for one in asked]}


async def _dispatched(gate: Gate, count: int) -> dict[str, list[str]]:
    started = await asyncio.gather(*(gate.call("far", {}, context=CONTEXT, wait=False) for _ in range(count)))
    await asyncio.gather(*(gate.remote.dispatch(one.call_id, to="ann", project=PROJECT) for one in started))
    return {"calls": [one.call_id for one in started]}


@toolgate.tool(effects="read")
async def look(number: int) -> int:
    """Read something; nobody is asked."""
    return number


@toolgate.tool(risk_level="medium")
async def change(number: int) -> int:
    """Change something; a person is asked."""
    return number


async def with_agent(folder: Path) -> tuple[Any, dict[str, Any]]:
    """Our server on SQLite with the scripted agent and one person, who may also approve."""
    url = f"sqlite:///{folder}/ours.db"
    gate = _gate(url, [look, change])
    directory = bootstrap.directory(url)
    await directory.put_account(Account(name="ann", kind=PrincipalKind.PERSON, roles={PROJECT: frozenset()}))
    text, token = new_token("ann", now=datetime.now(UTC))
    await directory.put_token(token)
    settings = ServerSettings(port=0, requests_per_second=1e9, request_burst=10**9)
    agent = build_agent(gate, bootstrap.threads(url))
    return create_app(gate, directory, settings=settings, agent=agent, owns_gate=True), {"token": text}


class AllowAll:
    """A rule that allows everything, so that nobody is asked about a write."""

    name = "benchmark"
    is_static = True

    def __call__(self, *_: object) -> Verdict:
        return Verdict(Word.ALLOW, "measured", self.name)


async def with_files(folder: Path) -> tuple[Any, dict[str, Any]]:
    """Our server on SQLite with the built-in tools and one person, who is asked about nothing."""
    url = f"sqlite:///{folder}/ours.db"
    files = folder / "files"
    files.mkdir()
    policy = Policy(rules=(AllowAll(),), revision="benchmark")
    runners = {"client": ClientRunner()}
    gate = toolgate.open(url, workspace=files, built_in_tools=True, policy=policy, runners=runners)
    return await _served(gate, url)


async def _served(gate: Gate, url: str) -> tuple[Any, dict[str, Any]]:
    directory = bootstrap.directory(url)
    await directory.put_account(Account(name="ann", kind=PrincipalKind.PERSON, roles={PROJECT: frozenset()}))
    text, token = new_token("ann", now=datetime.now(UTC))
    await directory.put_token(token)
    settings = ServerSettings(port=0, requests_per_second=1e9, request_burst=10**9)
    return create_app(gate, directory, settings=settings, owns_gate=True), {"token": text}


async def application(kind: str, folder: Path, count: int) -> tuple[Any, dict[str, Any]]:
    if kind == "bare-posts":
        return bare_posts(folder), {"approvals": [f"id-{number}" for number in range(count)]}
    if kind == "bare-stream":
        return BareStream(), {}
    if kind == "ours-agent":
        return await with_agent(folder)
    if kind == "ours-files":
        return await with_files(folder)
    return await ours(folder, kind=kind, count=count)


KINDS = (
    "bare-posts",
    "bare-stream",
    "ours-approve",
    "ours-claim",
    "ours-result",
    "ours-inbox",
    "ours-agent",
    "ours-files",
)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=0)
    options = parser.parse_args()
    app, told = await application(options.kind, options.folder, options.count)
    config = uvicorn.Config(app, port=0, log_level="critical", access_log=False, backlog=8192)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110  # it tells nobody
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    print(json.dumps({"port": port, "pid": os.getpid(), **told}), flush=True)
    await asyncio.to_thread(sys.stdin.read)
    server.should_exit = server.force_exit = True
    with contextlib.suppress(asyncio.CancelledError):
        await serving


@contextlib.asynccontextmanager
async def hosted(kind: str, folder: Path, *, count: int = 0) -> AsyncIterator[dict[str, Any]]:
    """A server of this kind in a process of its own; what it told."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.server_host", kind, str(folder), f"--count={count}",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=2**26,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        yield json.loads(await process.stdout.readline())
    finally:
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), 10)
        except TimeoutError:
            process.kill()
            await process.wait()


if __name__ == "__main__":
    asyncio.run(main())
