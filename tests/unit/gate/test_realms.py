"""Projects with tools, policy, sink and approvers of their own on one gate; undo data brought in; watching answers."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

import toolgate
from toolgate.adapters.channels.callback import CallbackChannel
from toolgate.errors import GateClosedError, NotFoundError
from toolgate.kernel.call import Status
from toolgate.kernel.context import PRIVATE, Context
from toolgate.kernel.demands import RiskWaiver
from toolgate.kernel.policy import Default, Policy
from toolgate.kernel.record import evolve
from toolgate.kernel.registry import ToolRegistry
from toolgate.kernel.undo import UndoMetadata
from toolgate.testing.patience import until


@toolgate.tool
async def greet() -> str:
    return "hello"


def other() -> toolgate.ToolDefinition:
    @toolgate.tool(name="greet")
    async def greet_too() -> str:
        return "hullo"

    return greet_too


MINE = Context(project="mine")


async def test_a_project_goes_by_its_own_tools_and_policy() -> None:
    async with toolgate.open(tools=[greet]) as gate:
        realm = gate.host.attach(
            "mine", ToolRegistry([other()]), adjust=lambda policy: evolve(policy, default=Default.DENY)
        )
        assert (await gate.call("greet")).data == "hello"
        assert (await gate.call("greet", context=MINE)).status is Status.DENIED
        await gate.set_policy(Policy(revision="two"), by="ann")
        assert (await gate.call("greet", context=MINE)).status is Status.DENIED
        realm = gate.host.attach("mine", ToolRegistry([other()]))
        assert (await gate.call("greet", context=MINE)).data == "hullo"
        del realm
        gc.collect()
        assert (await gate.call("greet", context=MINE)).data == "hello"


async def test_a_private_project_whose_owner_is_gone_has_no_tools() -> None:
    async with toolgate.open(tools=[greet]) as gate:
        result = await gate.call("greet", context=Context(project=f"{PRIVATE}x"))
        assert result.error_code == "tool_not_found"


async def test_a_project_asks_its_own_approvers_too() -> None:
    @toolgate.tool(requires_approval=True)
    async def ask() -> str:
        return "done"

    async with toolgate.open() as gate:
        realm = gate.host.attach(
            "mine", ToolRegistry([ask]), channels=[CallbackChannel(lambda _approval: True, by="bob")]
        )
        assert (await gate.call("ask", context=MINE)).approved_by == "bob"
        assert realm.channels


async def test_everything_so_far_is_heard() -> None:
    told: list[str] = []

    class Sink:
        async def emit(self, *, type: str, data: dict[str, Any]) -> None:
            told.append(type)

    async with toolgate.open() as gate:
        assert await gate.host.sink_heard()
        realm = gate.host.attach("mine", ToolRegistry([greet]), sink=Sink())
        assert await gate.host.sink_heard()
        await gate.call("greet", context=MINE)
        assert await gate.host.sink_heard(project="mine")
        assert told == ["tool.invoked", "tool.started", "tool.completed"]
        assert realm.relay is not None


async def test_a_call_made_elsewhere_is_brought_in_and_undone_once() -> None:
    undone: list[Any] = []
    assert greet.function is not None
    tool = toolgate.tool(undoable=True, undo_handler=lambda undo: undone.append(undo.undo_data))(greet.function)
    async with toolgate.open(tools=[tool]) as gate:
        metadata = UndoMetadata("a", "greet", {"before": 1})
        await gate.host.adopt(metadata)
        await gate.host.adopt(UndoMetadata("a", "greet", {"before": 2}))
        kept = await gate.host.undo_data("a")
        assert kept is not None
        assert kept.undo_data == {"before": 1}
        assert (await gate.undo("a")).success
        assert not (await gate.undo("a")).success
        assert undone == [{"before": 1}]
        assert await gate.host.undo_data("a") is None
        assert [event.type for event in await gate.events()] == [
            "tool.adopted",
            "tool.undo_started",
            "tool.undone",
            "tool.undo_failed",
        ]
        await gate.host.adopt(UndoMetadata("b", "a tool nobody has", {}))
        assert not (await gate.undo("b")).success


async def test_an_answer_is_awaited_without_running_anything() -> None:
    @toolgate.tool(requires_approval=True)
    async def ask() -> str:
        return "done"

    async with toolgate.open(tools=[ask]) as gate:
        asked = await gate.call("ask", wait=False)
        assert asked.approval_id is not None
        watching = asyncio.ensure_future(gate.approvals.answer(asked.approval_id))
        await asyncio.sleep(0)
        await gate.approvals.extend(asked.approval_id, 60, by="ann")
        await asyncio.sleep(0)
        await gate.decide(asked.approval_id, "approve", by="ann")
        assert (await watching).decided_by == "ann"
        assert (await gate.wait(asked.call_id)).data == "done"
        assert (await gate.approvals.answer(asked.approval_id)).decided_by == "ann"
        with pytest.raises(NotFoundError):
            await gate.approvals.answer("nobody asked this")


async def test_a_closing_gate_lets_those_who_watch_go() -> None:
    @toolgate.tool(requires_approval=True)
    async def ask() -> str:
        return "done"

    gate = toolgate.open(tools=[ask])
    asked = await gate.call("ask", wait=False)
    watching = asyncio.ensure_future(gate.approvals.answer(asked.approval_id or ""))
    await asyncio.sleep(0)
    await gate.aclose()
    with pytest.raises(GateClosedError):
        await watching


async def test_a_waiver_lets_risk_run_and_nothing_else() -> None:
    @toolgate.tool(risk_level="high")
    async def risky() -> str:
        return "done"

    @toolgate.tool(risk_level="high", requires_approval=True)
    async def careful() -> str:
        return "done"

    policy = Policy(rules=(RiskWaiver(),), revision="waived")
    async with toolgate.open(tools=[risky, careful], policy=policy) as gate:
        assert (await gate.call("risky")).success
        assert (await gate.call("careful", wait=False)).status is Status.AWAITING_APPROVAL


async def test_what_arguments_hide_is_in_no_event_and_no_question() -> None:
    async def look(given: toolgate.ToolInput) -> Any:
        from toolgate.kernel.tool import Prepared

        return Prepared(preview={"will use": given.payload["password"]})

    @toolgate.tool(prepare=look, requires_approval=True)
    async def login(password: str, run: toolgate.ToolInput) -> dict[str, str]:
        await run.progress(0.5, f"trying {password}", {"with": password})
        return {"used": password}

    async with toolgate.open(tools=[login], approver=lambda _approval: True) as gate:
        result = await gate.call("login", {"password": "hunter22"}, message="Log in with hunter22?")
        assert result.data == {"used": "hunter22"}
        events = await gate.events()
        approvals = await gate.approvals.list(toolgate_query())
        assert "hunter22" not in repr([event.body for event in events]) + repr(approvals)
        assert [event.data["message"] for event in events if event.type == "tool.progress"] == ["trying ***"]


def toolgate_query() -> Any:
    from toolgate.ports.store import ApprovalQuery

    return ApprovalQuery()


async def test_sinks_of_realms_that_are_gone_are_let_go_of() -> None:
    class Sink:
        async def emit(self, *, type: str, data: dict[str, Any]) -> None: ...

    async with toolgate.open() as gate:
        kept = gate.host.attach("kept", ToolRegistry([greet]), sink=Sink())
        gone = gate.host.attach("mine", ToolRegistry([greet]), sink=Sink())
        await gate.call("greet", context=MINE)
        relay = gone.relay
        del gone
        gc.collect()
        gate._driver.enough_minders = 2
        another = gate.host.attach("other", ToolRegistry([greet]), sink=Sink())
        await until(lambda: relay is not None and relay.is_closed)
        assert [minder.relay for minder in gate._driver.minders] == [kept.relay, another.relay]


async def test_a_named_sink_goes_on_where_the_one_before_it_stopped() -> None:
    told: list[int] = []

    class Sink:
        def __init__(self, *, is_up: bool) -> None:
            self.is_up = is_up

        async def emit(self, *, type: str, data: dict[str, Any]) -> None:
            if not self.is_up:
                raise OSError("down")
            told.append(data["seq"])

    async with toolgate.open() as gate:
        realm = gate.host.attach("mine", ToolRegistry([greet]), sink=Sink(is_up=False), sink_name="audit")
        await gate.call("greet", context=MINE)
        realm = gate.host.attach("mine", ToolRegistry([greet]), sink=Sink(is_up=True), sink_name="audit")
        assert await gate.host.sink_heard(project="mine", timeout_s=60)
        assert told == [1, 2, 3]
        assert realm.relay is not None
