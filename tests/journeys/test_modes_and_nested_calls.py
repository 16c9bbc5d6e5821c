"""LOCKDOWN stops what it can and says so, exhaustion degrades, and tools call tools through the gate."""

from __future__ import annotations

import asyncio
import errno
import threading
from typing import Any

import pytest
from tests.journeys.scene import Open, names, park

import toolgate
from toolgate import Context, ToolInput
from toolgate.errors import DecisionConflictError, UsageError
from toolgate.kernel.call import Status
from toolgate.testing.patience import PATIENCE_S, until


async def test_lockdown_stops_what_runs_and_says_what_it_did(open_gate: Open) -> None:
    begun, release = asyncio.Event(), threading.Event()
    blocked = threading.Event()

    @toolgate.tool
    async def slow() -> None:
        begun.set()
        await asyncio.sleep(60)

    @toolgate.tool
    def stubborn() -> str:
        blocked.set()
        release.wait(PATIENCE_S)
        return "done"

    @toolgate.tool(allowed_modes=("NORMAL", "LOCKDOWN"))
    async def watch() -> str:
        while not release.is_set():  # noqa: ASYNC110  # a thread sets it
            await asyncio.sleep(0.01)
        return "watched"

    @toolgate.tool(requires_approval=True)
    async def ask() -> None: ...

    async with open_gate(tools=[slow, stubborn, watch, ask]) as gate:
        calls = [asyncio.create_task(gate.call(name, call_id=name)) for name in ("slow", "stubborn", "watch")]
        approval = await park(gate, "ask")
        await begun.wait()
        await until(blocked.is_set)
        await gate.set_mode("LOCKDOWN", by="ann", reason="drill")
        stopped = await calls[0]
        assert (stopped.status, "LOCKDOWN" in (stopped.error or "")) == (Status.CANCELLED, True)
        with pytest.raises(DecisionConflictError):
            await gate.decide(approval.id, "approve", by="ann")
        release.set()
        assert [(await call).data for call in calls[1:]] == ["done", "watched"]
        events = await gate.events(project="_system")
        assert names(events) == ["mode.changed", "mode.enforced"]
        data = events[1].data
        assert (data["pending"], data["stopped"], data["still_running"]) == (1, ["slow"], ["stubborn"])


async def test_lockdown_set_elsewhere_stops_what_runs_here(tmp_path: Any) -> None:
    begun = asyncio.Event()

    @toolgate.tool
    async def slow() -> None:
        begun.set()
        await asyncio.sleep(60)

    url = f"sqlite:///{tmp_path}/shared.db"
    async with toolgate.open(url, tools=[slow]) as here, toolgate.open(url) as there:
        call = asyncio.create_task(here.call("slow"))
        await begun.wait()
        await there.set_mode("LOCKDOWN", by="ann")
        assert (await asyncio.wait_for(call, PATIENCE_S)).status is Status.CANCELLED


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE])
async def test_exhaustion_of_the_machine_moves_the_system_to_degraded(open_gate: Open, number: int) -> None:
    @toolgate.tool
    async def fill() -> None:
        raise OSError(number, "out of it")

    async with open_gate(tools=[fill]) as gate:
        result = await gate.call("fill")
        assert (result.status, result.error_code) == (Status.FAILED, "resource_exhausted")
        await until(lambda: gate.mode == "DEGRADED")
        await gate.set_mode("RECOVERY", by="ann")
        await gate.call("fill")
        assert gate.mode == "RECOVERY"  # a stricter posture stays
        changed = [event for event in await gate.events(project="_system") if event.type == "mode.changed"]
        assert (changed[0].data["by"], len(changed)) == ("policy:resources", 2)


async def test_a_handler_that_wants_too_much_memory_fails_alone(open_gate: Open) -> None:
    @toolgate.tool
    async def hoard() -> int:
        return len(bytearray(2**62))

    @toolgate.tool
    def hoard_plainly() -> int:
        return len([None] * 2**60)

    @toolgate.tool
    async def ping() -> str:
        return "pong"

    async with open_gate(tools=[hoard, hoard_plainly, ping]) as gate:
        for name in ("hoard", "hoard_plainly"):
            result = await gate.call(name)
            assert (result.status, result.error_code) == (Status.FAILED, "resource_exhausted")
        assert (await gate.call("ping")).success
        await gate.aclose()  # a change of mode would be written by now
        assert gate.mode == "NORMAL"


async def test_an_ordinary_error_degrades_nothing(open_gate: Open) -> None:
    @toolgate.tool
    async def fail() -> None:
        raise OSError(errno.ENOENT, "no such file")

    @toolgate.tool
    async def refuse() -> None:
        raise toolgate.errors.ToolDeniedError("a guard refused")

    async with open_gate(tools=[fail, refuse]) as gate:
        assert (await gate.call("fail")).error_code == "execution_failed"
        assert (await gate.call("refuse")).error_code == "denied"
        assert gate.mode == "NORMAL"


@toolgate.tool
async def inner(value: int) -> int:
    """Double."""
    return value * 2


async def test_a_tool_calls_another_through_the_gate(open_gate: Open) -> None:
    @toolgate.tool
    async def outer(given: ToolInput, value: int) -> int:
        result = await given.call("inner", {"value": value})
        return int(result.unwrap())

    @toolgate.tool
    def outer_sync(given: ToolInput, value: int) -> int:
        return int(given.call("inner", {"value": value}).unwrap())

    async with open_gate(tools=[outer, outer_sync, inner]) as gate:
        context = Context(principal="agent:a", run_id="r1", roles=frozenset({"x"}))
        for name in ("outer", "outer_sync"):
            done = await gate.call(name, {"value": 4}, context=context, call_id=f"{name}-1")
            assert done.unwrap() == 8
        invoked = [event for event in await gate.events() if event.type == "tool.invoked"]
        parents = [event.data.get("parent_call_id") for event in invoked]
        assert parents == [None, "outer-1", None, "outer_sync-1"]
        nested = await gate.calls.get(str(invoked[1].call_id))
        assert (nested.context.principal, nested.context.run_id, nested.context.depth) == ("agent:a", "r1", 1)
        assert nested.context.roles == {"x"}


async def test_a_nested_call_answers_to_the_same_rules(open_gate: Open) -> None:
    @toolgate.tool(allowed_behaviors=("build",))
    async def guarded() -> None: ...

    @toolgate.tool
    async def outer(given: ToolInput) -> str:
        return str((await given.call("guarded")).status)

    async with open_gate(tools=[outer, guarded]) as gate:
        assert (await gate.call("outer")).unwrap() == "DENIED"
        assert (await gate.call("outer", context=Context(behavior="build"))).unwrap() == "COMPLETED"


async def test_calls_inside_calls_have_an_end(open_gate: Open) -> None:
    @toolgate.tool
    async def again(given: ToolInput) -> int:
        result = await given.call("again")
        return 1 + int(result.data or 0)

    async with open_gate(tools=[again]) as gate:
        assert (await gate.call("again")).unwrap() == 8


def test_outside_a_run_there_is_nobody_to_call() -> None:
    with pytest.raises(UsageError, match="while the gate runs"):
        ToolInput("a", "b", {}).call("c")
