"""A server that says whatever a test wants, true or not, and a runner in the test's own loop that hears it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

from toolgate.interfaces.client.client import Client
from toolgate.interfaces.runner.asking import Prompt, ServerSaid
from toolgate.interfaces.runner.ledger import Ledger
from toolgate.interfaces.runner.local import LocalGate, open_local
from toolgate.interfaces.runner.notices import Kind, Notice
from toolgate.interfaces.runner.run import Options, Runner
from toolgate.interfaces.runner.state import StateFolder
from toolgate.kernel.tool import ToolDefinition
from toolgate.testing.patience import until

POLICY = """
version: 1
default: deny
tools:
  read_file: {decision: allow, paths: {allowed: ["${WORKSPACE}/**"]}}
  list_directory: {decision: allow, paths: {allowed: ["${WORKSPACE}/**"]}}
  write_file: {decision: allow, paths: {allowed: ["${WORKSPACE}/**"]}}
  edit_file: {decision: ask, paths: {allowed: ["${WORKSPACE}/**"]}}
  delete_file: {decision: deny}
  slow*: {decision: allow}
"""
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
READY = {"project_id": "demo", "last_event_id": 0, "mode": "NORMAL"}


def frame(name: str, data: Any) -> bytes:
    text = data if isinstance(data, str) else json.dumps(data)
    return f"event: {name}\ndata: {text}\n\n".encode()


class AnyServer:
    """Speaks just enough HTTP. `answers` are given to reports in turn; without one, a report is taken."""

    def __init__(self) -> None:
        self.results: list[dict[str, Any]] = []
        self.beats: list[dict[str, Any]] = []
        self.queries: list[str] = []
        self.answers: list[tuple[int, dict[str, Any]]] = []
        self.beat_answer: tuple[int, dict[str, Any]] | None = None
        self.stream_answer: tuple[int, dict[str, Any]] | None = None
        self.call: dict[str, Any] = {}
        self._streams: list[asyncio.StreamWriter] = []
        self._open: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, limit=2**26)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self.hang_up()
            for writer in self._open:  # a connection kept alive would go on being answered
                writer.close()
            await self._server.wait_closed()
            self._server = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def hang_up(self) -> None:
        for stream in self._streams:
            stream.close()
        self._streams.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                method, path, _ = head.split("\r\n")[0].split(" ")
                size = next(
                    (int(line[15:]) for line in head.lower().split("\r\n") if line.startswith("content-length")), 0
                )
                body = json.loads(await reader.readexactly(size)) if size else {}
                if "/chat/stream" in path and self.stream_answer is None:
                    self.queries.append(path)
                    writer.write(HEAD + _chunk(frame("stream.ready", READY)))
                    self._streams.append(writer)
                    return
                status, answer = self._answer(method, path, body)
                writer.write(_http(status, answer))
                await writer.drain()
        self._open.discard(writer)
        writer.close()

    def _answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if "/chat/stream" in path and self.stream_answer is not None:
            return self.stream_answer
        tool_id = path.split("/")[5]
        taken = {"success": True, "tool_id": tool_id, "status": "completed", "message": "ok"}
        if method == "GET":
            return 200, _record(tool_id) | self.call
        if path.endswith("/progress"):
            self.beats.append(body | {"tool_id": tool_id})
            return self.beat_answer or (200, taken)
        self.results.append(body | {"tool_id": tool_id})
        return self.answers.pop(0) if self.answers else (200, taken)

    def say(self, name: str, data: Any) -> None:
        self.raw(frame(name, data))

    def raw(self, data: bytes) -> None:
        for stream in self._streams:
            stream.write(_chunk(data))

    def run(self, tool_id: str, tool_name: str, params: Any, **more: Any) -> None:
        """Signal a call."""
        told = {"tool_id": tool_id, "tool_name": tool_name, "tool_params": params, "fence": f"f-{tool_id}"}
        self.say("tool.execution_signal", told | {"attempt": 1, "timeout_seconds": 30, "timestamp": "now"} | more)

    async def result(self, count: int = 1) -> dict[str, Any]:
        """Return the last report once there are so many."""
        await until(lambda: len(self.results) >= count)
        return self.results[-1]


def _record(tool_id: str) -> dict[str, Any]:
    empty = dict.fromkeys(
        "result error error_type approval_id session_id run_id user approved_by runner undo_of execution_time_ms "
        "started_at approved_at completed_at".split()
    )
    return empty | {
        "success": False, "tool_id": tool_id, "tool_name": "x", "status": "executing", "internal_status": "EXECUTING",
        "project_id": "demo", "requester": "agent:ann", "tool_params": {}, "risk_level": "LOW",
        "requires_approval": False, "attempt": 1, "artifacts": [], "created_at": "2026-01-01T00:00:00Z",
    }  # fmt: skip


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _http(status: int, answer: dict[str, Any]) -> bytes:
    body = json.dumps(answer).encode()
    return b"HTTP/1.1 %d X\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (
        status,
        len(body),
        body,
    )


def problem(code: str, **more: Any) -> dict[str, Any]:
    return {"type": "about:blank", "title": "no", "detail": "no", "success": False, "code": code, **more}


class Notes:
    """A view that remembers."""

    def __init__(self) -> None:
        self.notices: list[Notice] = []
        self.pauses = 0

    def tell(self, notice: Notice) -> None:
        self.notices.append(notice)

    def pause(self) -> None:
        self.pauses += 1

    def resume(self) -> None:
        self.pauses -= 1

    def close(self) -> None:
        """Nothing is held."""

    def of(self, kind: Kind, tool_id: str | None = None) -> list[Notice]:
        return [one for one in self.notices if one.kind is kind and tool_id in (None, one.tool_id)]

    async def saw(self, kind: Kind, count: int = 1, *, tool_id: str | None = None) -> Notice:
        await until(lambda: len(self.of(kind, tool_id)) >= count)
        return self.of(kind, tool_id)[count - 1]


class Stage:
    """A workspace, a state folder and a server; `runner` as often as a test likes."""

    def __init__(self, folder: Path, *tools: ToolDefinition) -> None:
        self.workspace = folder / "ws"
        self.workspace.mkdir()
        self.state = folder / "state"
        self.policy = folder / "policy.yaml"
        self.policy.write_text(POLICY, encoding="utf-8")
        self.server = AnyServer()
        self.notes = Notes()
        self.tools = tools
        self.local: LocalGate | None = None

    @property
    def gate(self) -> Any:
        assert self.local is not None
        return self.local.gate

    @asynccontextmanager
    async def runner(
        self, *, confirm: bool = False, trust: bool = False, grace_s: float = 5.0, connects: bool = True
    ) -> AsyncIterator[Runner]:
        """A runner, connected unless it cannot be; stopped like with Ctrl-C at the end, unless it was before."""
        options = Options(
            server=self.server.url,
            project="demo",
            workspace=self.workspace,
            confirm=confirm,
            trust_approvals=trust,
            grace_s=grace_s,
        )
        connected = len(self.notes.of(Kind.CONNECTED))
        async with Client(self.server.url, token="tg_x", project="demo") as client:
            with (
                StateFolder(self.state, server=client.url, project="demo", workspace=self.workspace) as state,
                closing(Ledger(state.signals)) as ledger,
            ):
                said = ServerSaid(Prompt(self.notes))
                said.server = client if trust else None
                self.local = open_local(
                    state=state,
                    project="demo",
                    workspace=self.workspace,
                    policy=self.policy,
                    more=self.tools,
                    confirm=confirm,
                    channels=[said],
                )
                try:
                    runner = Runner(options, self.notes, client, self.local, ledger)
                    running = asyncio.ensure_future(runner.run())
                    await until(_either(self.notes, connected if connects else -1, running))
                    try:
                        yield runner
                    finally:
                        runner.stop()
                        await running
                finally:
                    await self.local.gate.aclose()


def _either(notes: Notes, connected: int, running: asyncio.Future[None]) -> Callable[[], bool]:
    return lambda: running.done() or len(notes.of(Kind.CONNECTED)) > connected
