"""A server on a real socket in the test's own loop, with people in it."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from datetime import UTC, datetime
from typing import Any

import httpx2

import toolgate
from toolgate import bootstrap
from toolgate.adapters.runners.client import ClientRunner
from toolgate.gate import Gate
from toolgate.interfaces.server.app import create_app
from toolgate.interfaces.server.dispatch import Application
from toolgate.interfaces.server.serve import Server, agent_of, server_of
from toolgate.interfaces.server.services import Services
from toolgate.interfaces.server.settings import ServerSettings
from toolgate.interfaces.server.tokens import new_token
from toolgate.kernel.context import PrincipalKind
from toolgate.ports.directory import Account, Directory
from toolgate.testing.patience import PATIENCE_S

P = "/my/projects/demo"
SECRET = "correct-horse-battery-9"
TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Never used, since the server speaks plain HTTP; without it every client would read the system's certificates."""


def nothing(_given: toolgate.ToolInput) -> toolgate.ToolOutput:
    return toolgate.ToolOutput.ok()


@toolgate.tool(effects="read")
async def add(left: int, right: int) -> int:
    """Add two numbers."""
    return left + right


@toolgate.tool(risk_level="medium", effects="irreversible")
async def pay(amount: int, password: str = "") -> dict[str, Any]:
    """Pay somebody."""
    return {"paid": amount, "password": password}


@toolgate.tool(risk_level="high", requires_reason=True)
async def drop(name: str) -> str:
    """Drop a table."""
    return name


@toolgate.tool(undoable=True, undo_handler=lambda _undo: None)
async def keep(value: int) -> toolgate.ToolOutput:
    """Keep a value."""
    return toolgate.ToolOutput.ok(value, undo_metadata={"old": 0}, artifacts=["a"])


far = toolgate.ToolDefinition("far", {}, nothing, placement="client", timeout_seconds=20)
look = toolgate.ToolDefinition("look", {}, nothing, placement="client", effects="read", timeout_seconds=20)
TOOLS = [add, pay, drop, keep, far, look]


class House:
    """The server and everything behind it."""

    def __init__(self, gate: Gate, directory: Directory, app: Application, server: Server) -> None:
        self.gate = gate
        self.directory = directory
        self.app = app
        self.server = server
        self.url = ""
        self.tokens: dict[str, str] = {}
        self.clients: list[httpx2.AsyncClient] = []

    @property
    def services(self) -> Services:
        services: Services = self.app.state.services
        return services

    async def add(self, name: str, kind: str, places: Any = ("demo",), **fields: Any) -> str:
        """Add an account and return the text of its token."""
        roles = places if isinstance(places, dict) else {place: frozenset() for place in places}
        acts_for = fields.pop("acts_for", None)
        await self.directory.put_account(Account(name=name, kind=PrincipalKind(kind), roles=roles, acts_for=acts_for))
        text, token = new_token(name, now=datetime.now(UTC), **fields)
        await self.directory.put_token(token)
        self.tokens[name] = text
        return text

    def client(self, who: str | None = None, **headers: str) -> httpx2.AsyncClient:
        """A client that shows this account's token."""
        if who is not None:
            headers["Authorization"] = f"Bearer {self.tokens[who]}"
        client = httpx2.AsyncClient(base_url=self.url, headers=headers, timeout=PATIENCE_S, verify=TLS)
        self.clients.append(client)
        return client

    def listen(self, who: str, path: str = f"{P}/chat/stream", **options: Any) -> Listening:
        return Listening(self.client(who), path, options)


class Listening:
    """An open event stream: `await next(name)` gives the data of the next event of that name."""

    def __init__(self, client: httpx2.AsyncClient, path: str, options: dict[str, Any]) -> None:
        self._client = client
        self._path = path
        self._options = options
        self.heard: list[tuple[str, int | None, Any]] = []
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.response: httpx2.Response | None = None
        self.has_ended = False

    async def __aenter__(self) -> Listening:
        self._task = asyncio.create_task(self._read())
        await self.until(lambda: self.response is not None or self.has_ended)
        return self

    async def __aexit__(self, *_exc: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait({self._task})

    async def _read(self) -> None:
        try:
            async with self._client.stream("GET", self._path, **self._options) as response:
                self.response = response
                self._news.set()
                fields: dict[str, str] = {}
                async for line in response.aiter_lines():
                    if line:
                        name, _, value = line.partition(":")
                        fields[name] = value.strip()
                        continue
                    if "event" in fields:
                        id = int(fields["id"]) if "id" in fields else None
                        self.heard.append((fields["event"], id, json.loads(fields["data"])))
                    elif "" in fields:
                        self.heard.append(("comment", None, fields[""]))
                    fields = {}
                    self._news.set()
        except httpx2.HTTPError:
            pass
        finally:
            self.has_ended = True
            self._news.set()

    async def until(self, holds: Any) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not holds():
                self._news.clear()
                await self._news.wait()

    async def next(self, name: str) -> Any:
        """Wait for an event of this name and take it."""
        await self.until(lambda: any(one[0] == name for one in self.heard))
        index = next(number for number, one in enumerate(self.heard) if one[0] == name)
        return self.heard.pop(index)[2]

    async def ready(self) -> Any:
        return await self.next("stream.ready")

    @property
    def names(self) -> list[str]:
        return [name for name, _, _ in self.heard]


@asynccontextmanager
async def open_house(
    url: str = "memory://",
    *,
    people: str | None = None,
    agent: Any = None,
    tools: Any = None,
    policy: Any = None,
    project_policies: Any = None,
    **settings: Any,
) -> AsyncIterator[House]:
    """A running server with an admin, two people, an agent and a stranger, whose accounts may be kept elsewhere;
    `settings` as agent: the server's own.
    """
    chosen = ServerSettings(host="127.0.0.1", port=0, drain_s=1, **settings)
    gate = toolgate.open(
        url,
        tools=TOOLS if tools is None else tools,
        policy=policy,
        project_policies=project_policies,
        runners={"client": ClientRunner()},
    )
    directory = bootstrap.directory(people or url)
    if agent == "settings":
        agent = agent_of(chosen.model_copy(update={"database": url}), gate)
    app = create_app(gate, directory, settings=chosen, agent=agent, owns_gate=True)
    serves: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    server = server_of(app, chosen, said=serves.set_result)
    server.capture_signals = _no_signals  # type: ignore[method-assign]  # the test keeps its own
    house = House(gate, directory, app, server)
    serving = asyncio.create_task(server.serve())
    house.url = await asyncio.wait_for(serves, PATIENCE_S)
    await house.add("ann", "person")
    await house.add("bob", "person")
    await house.add("bot", "agent", acts_for="ann")
    await house.add("root", "admin", ())
    await house.add("eve", "person", ("elsewhere",))
    await house.add("runner:1", "runner")
    try:
        yield house
    finally:
        for client in house.clients:
            await client.aclose()
        server.should_exit = True
        await serving


def _no_signals() -> Any:
    return nullcontext()


def execute(tool: str, params: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """The body of a call."""
    return {"tool_name": tool, "tool_params": params or {}, **more}
