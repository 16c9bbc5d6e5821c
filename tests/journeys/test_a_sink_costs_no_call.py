"""An event sink that hangs, fails or dawdles costs calls nothing, and hears everything once it listens."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

import toolgate
from toolgate.kernel.context import Context
from toolgate.kernel.registry import ToolRegistry
from toolgate.testing.patience import until
from toolgate.tools import Action, ToolDefinition, ToolExecutionError, ToolExecutor, ToolExecutorConfig

CALLS = 20
CEILING_S = 60.0
"""Far more than the calls need, however loaded the machine; far less than they would wait for the sink."""


@toolgate.tool(effects="read")
async def ping() -> str:
    return "pong"


def context() -> Context:
    return Context(project="shop")


class Hanging:
    """Takes the first event and never comes back, until it is let go."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.is_busy = False
        self.go = asyncio.Event()

    async def emit(self, *, type: str, data: dict[str, Any]) -> None:
        self.is_busy = True
        await self.go.wait()
        self.is_busy = False
        self.told.append(type)

    def let_go(self) -> None:
        self.go.set()


class HangingThread(Hanging):
    def __init__(self) -> None:
        super().__init__()
        self.free = threading.Event()

    def emit(self, *, type: str, data: dict[str, Any]) -> None:  # type: ignore[override]  # a plain one
        self.is_busy = True
        self.free.wait()
        self.is_busy = False
        self.told.append(type)

    def let_go(self) -> None:
        self.free.set()


class HangingTry(HangingThread):
    def try_emit(self, *, type: str, data: dict[str, Any]) -> None:
        HangingThread.emit(self, type=type, data=data)


@pytest.mark.parametrize("kind", [Hanging, HangingThread, HangingTry])
async def test_calls_go_on_while_the_sink_hangs_and_it_hears_them_later(kind: Callable[[], Hanging]) -> None:
    sink = kind()
    async with asyncio.timeout(CEILING_S), toolgate.open() as gate:
        realm = gate.host.attach("shop", ToolRegistry([ping]), sink=sink)
        for _ in range(CALLS):
            assert (await gate.call("ping", context=context())).success
        assert sink.is_busy
        assert sink.told == []
        sink.let_go()
        await until(lambda: len(sink.told) == 3 * CALLS, within_s=CEILING_S)
        assert sink.told == ["tool.invoked", "tool.started", "tool.completed"] * CALLS
        assert realm.relay is not None


@pytest.mark.parametrize("kind", [Hanging, HangingThread, HangingTry])
async def test_a_gate_closes_although_its_sink_hangs(kind: Callable[[], Hanging]) -> None:
    sink = kind()
    async with asyncio.timeout(CEILING_S):
        gate = toolgate.open()
        realm = gate.host.attach("shop", ToolRegistry([ping]), sink=sink)
        await gate.call("ping", context=context())
        await gate.aclose()
        assert sink.is_busy or kind is Hanging
        assert realm.relay is not None
    sink.let_go()


@pytest.mark.parametrize("kind", ["async", "plain"])
async def test_a_quick_sink_has_heard_of_a_call_when_it_returns(kind: str) -> None:
    order: list[str] = []

    class Quick:
        async def emit(self, *, type: str, data: dict[str, Any]) -> None:
            order.append(type)

    class Plain:
        def emit(self, *, type: str, data: dict[str, Any]) -> None:
            order.append(type)

    async def look(_given: Any) -> toolgate.ToolOutput:
        order.append("handler")
        return toolgate.ToolOutput.ok()

    async with toolgate.open() as gate:
        tool = ToolDefinition("look", {}, look)
        executor = ToolExecutor([tool], event_sink=Quick() if kind == "async" else Plain(), gate=gate)
        await executor.execute(Action(type="look", payload={}))
        assert order == ["tool.invoked", "tool.started", "handler", "tool.completed"]


class Unsteady:
    """Raises until it is told to work."""

    def __init__(self) -> None:
        self.works = False
        self.tries = 0
        self.told: list[int] = []

    async def emit(self, *, type: str, data: dict[str, Any]) -> None:
        self.tries += 1
        if not self.works:
            raise OSError("down")
        self.told.append(data["seq"])


async def test_a_sink_that_always_raises_costs_no_call_and_the_record_is_whole() -> None:
    sink = Unsteady()
    async with toolgate.open() as gate:
        realm = gate.host.attach("shop", ToolRegistry([ping]), sink=sink)
        for _ in range(CALLS):
            assert (await gate.call("ping", context=context())).success
        assert (sink.told, realm.relay is not None) == ([], True)
        assert 0 < sink.tries < CALLS, "a sink that keeps failing is left alone for a while"
        assert len(await gate.events(project="shop")) == 3 * CALLS


async def test_a_sink_that_recovers_is_told_all_in_order_without_another_call() -> None:
    sink = Unsteady()
    async with toolgate.open() as gate:
        realm = gate.host.attach("shop", ToolRegistry([ping]), sink=sink)
        await gate.call("ping", context=context())
        sink.works = True
        await until(lambda: len(sink.told) == 3)
        assert sink.told == [1, 2, 3]
        assert realm.relay is not None


async def test_nothing_runs_unheard_where_the_sink_is_required() -> None:
    ran = []

    async def touch(_given: Any) -> toolgate.ToolOutput:
        ran.append(1)
        return toolgate.ToolOutput.ok()

    sink = Hanging()
    async with toolgate.open() as gate:
        executor = ToolExecutor(
            [ToolDefinition("touch", {}, touch)],
            config=ToolExecutorConfig(on_sink_failure="refuse"),
            event_sink=sink,
            gate=gate,
        )
        relay = executor._sit().realm.relay
        assert relay is not None
        relay.required_s = 0.05
        with pytest.raises(ToolExecutionError, match=r"did not answer within 0\.05 s, and nothing may run unheard"):
            await executor.execute(Action(type="touch", payload={}))
        assert ran == []
        sink.let_go()
        await until(lambda: "tool.failed" in sink.told)
        await executor.execute(Action(type="touch", payload={}))
        assert ran == [1]


async def test_a_slow_sink_hears_ten_thousand_events_and_calls_do_not_wait_for_it() -> None:
    told: list[int] = []
    slow = asyncio.Event()

    class Slow:
        async def emit(self, *, type: str, data: dict[str, Any]) -> None:
            await asyncio.sleep(0 if slow.is_set() else 0.02)
            told.append(data["seq"])

    async with toolgate.open() as gate:
        realm = gate.host.attach("shop", ToolRegistry([ping]), sink=Slow())
        for _ in range(3334):
            await gate.call("ping", context=context())
        assert len(told) < 10_000
        slow.set()
        await until(lambda: len(told) == 10_002, within_s=CEILING_S)
        assert told == list(range(1, 10_003))
        assert realm.relay is not None
