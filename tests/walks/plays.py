"""Four calls, and the walks of everybody in them. Each is made once before: plans and keys are known then."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from tests.unit.interfaces.runner.stage import Notes
from tests.unit.interfaces.server.house import House, nothing, open_house
from tests.walks.trace import Walk, tracing
from tests.walks.worker import TOOLS, WorkerProcess

import toolgate
from toolgate.client import Client
from toolgate.gate import Gate
from toolgate.interfaces.runner.notices import Kind
from toolgate.interfaces.runner.run import Options, serve
from toolgate.kernel.context import DEFAULT_PROJECT
from toolgate.kernel.policy import Policy
from toolgate.testing.patience import until

Walks = dict[str, Walk]
"""By who walks."""


@toolgate.tool(effects="read")
async def add(left: int, right: int) -> int:
    return left + right


@toolgate.tool(effects="irreversible")
async def pay(cents: int) -> int:
    return cents


async def in_memory() -> Walks:
    """A call in memory that needs nobody."""
    with tracing({"gate/front.py:call": "Whoever asks"}) as trace:
        async with toolgate.open("memory://", tools=[add]) as gate:
            for _ in range(3):
                await gate.call("add", '{"left": 1, "right": 2}')
    return {"Whoever asks": trace.last("Whoever asks")}


async def decided_elsewhere(database: Path) -> Walks:
    """A call on SQLite that another process decides."""
    url = f"sqlite:///{database}"
    starts = {"call": "Whoever asks", "decide": "Whoever decides", "wait": "Whoever holds the tool"}
    with tracing({f"gate/front.py:{name}": who for name, who in starts.items()}) as trace:
        async with toolgate.open(url, tools=[pay]) as holder, toolgate.open(url, policy=Policy()) as other:
            for _ in range(2):
                asked = await holder.call("pay", '{"cents": 1}', wait=False)
                waiting = asyncio.ensure_future(holder.wait(asked.call_id))
                await until(partial(_is_awaited, holder, DEFAULT_PROJECT, asked.call_id))
                await other.decide(str(asked.approval_id), "approve", by="ann")
                assert (await waiting).success
    return {who: trace.last(who) for who in starts.values()}


def _is_awaited(gate: Gate, project: str, call_id: str) -> bool:
    return (project, call_id) in gate._parked._waiters


async def over_http(folder: Path) -> Walks:
    """A call over HTTP that a runner executes; it ends when its caller waits for it at the server."""
    go = asyncio.Event()

    async def fetch(_given: toolgate.ToolInput) -> toolgate.ToolOutput:
        await go.wait()
        go.clear()
        return toolgate.ToolOutput.ok("fetched")

    starts = {
        "interfaces/client/calling.py:call": "Whoever calls",
        "interfaces/server/dispatch.py:__call__": "A request",
        "interfaces/server/streams.py:_take": "The server, sending",
        "interfaces/runner/executor.py:take": "The runner",
    }
    far = toolgate.ToolDefinition("fetch", {}, nothing, placement="client", risk_level="low", timeout_seconds=300)
    here = toolgate.ToolDefinition("fetch", {}, fetch, risk_level="low", timeout_seconds=300)
    with tracing(starts) as trace:
        async with (
            open_house(tools=[far]) as house,
            _runner(house, folder, here) as notes,
            Client(house.url, token=house.tokens["ann"], project="demo") as ann,
        ):
            for call_id in ("first", "second"):
                calling = asyncio.ensure_future(ann.call("fetch", call_id=call_id))
                await until(partial(_is_awaited, house.gate, "demo", call_id))
                go.set()
                assert (await calling).data == "fetched"
                await notes.saw(Kind.DELIVERED, tool_id=call_id)
    return {
        "Whoever calls": trace.last("Whoever calls"),
        "The server, asked": trace.last("A request", "interfaces/server/routes/executions.py:execute"),
        "The server, sending": trace.last("The server, sending"),
        "The runner": trace.last("The runner"),
        "The server, told": trace.last("A request", "interfaces/server/routes/executions.py:report"),
    }


@asynccontextmanager
async def _runner(house: House, folder: Path, tool: toolgate.ToolDefinition) -> AsyncIterator[Notes]:
    """A runner in this process, connected."""
    workspace, policy, notes = folder / "ws", folder / "policy.yaml", Notes()
    workspace.mkdir(parents=True)
    policy.write_text("version: 1\ndefault: by_risk\n", encoding="utf-8")
    options = Options(
        server=house.url, token=house.tokens["runner:1"], project="demo", workspace=workspace, policy=policy,
        state=folder / "state", only=(tool.name,), tools=(tool,),
    )  # fmt: skip
    serving = asyncio.ensure_future(serve(options, notes))
    try:
        await until(lambda: serving.done() or notes.of(Kind.CONNECTED))
        yield notes
    finally:
        serving.cancel()
        await asyncio.wait({serving})


async def at_a_worker(url: str, folder: Path) -> Walks:
    """A call on PostgreSQL that a worker runs; it ends when it is waited for."""
    worker = WorkerProcess(url, folder)
    try:
        with tracing({"gate/front.py:call": "Whoever asks"}) as trace:
            async with toolgate.open(url, tools=TOOLS) as gate:
                for call_id in ("first", "second"):
                    calling = asyncio.ensure_future(gate.call("send", call_id=call_id))
                    await until(partial(_is_awaited, gate, DEFAULT_PROJECT, call_id))
                    worker.go.set()
                    assert (await calling).success
        return {"Whoever asks": trace.last("Whoever asks"), "The worker": (await worker.end())[-1]}
    finally:
        worker.close()
