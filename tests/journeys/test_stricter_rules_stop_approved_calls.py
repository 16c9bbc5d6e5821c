"""What was approved is judged again before it runs: by the mode, the policy, the definition and the world."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.journeys.scene import Open, names, park, saying

from toolgate import Policy, ToolDefinition, ToolInput, ToolOutput
from toolgate.errors import DecisionConflictError
from toolgate.kernel.approval import ApprovalStatus
from toolgate.kernel.call import Status
from toolgate.kernel.tool import Prepared
from toolgate.testing.patience import until


class PausingTool:
    """A tool whose second `prepare`, the one before dispatch, waits until the test lets it go on."""

    def __init__(self) -> None:
        self.let_go = asyncio.Event()
        self.prepared = 0
        self.world = "as it was"
        self.ran: list[Any] = []

    async def prepare(self, _given: ToolInput) -> Prepared:
        self.prepared += 1
        if self.prepared == 2:
            await self.let_go.wait()
        return Prepared(preconditions=self.world, preview={"world": self.world})

    async def write(self, given: ToolInput) -> ToolOutput:
        self.ran.append(given.payload)
        return ToolOutput.ok("written")

    def tool(self, **options: Any) -> ToolDefinition:
        return ToolDefinition(name="write", handler=self.write, requires_approval=True, prepare=self.prepare, **options)

    async def at_the_door(self) -> None:
        """Wait until the approved call is about to run."""
        await until(lambda: self.prepared == 2)


@pytest.fixture
def pausing() -> PausingTool:
    return PausingTool()


async def test_approval_given_before_lockdown_does_not_run(open_gate: Open, pausing: PausingTool) -> None:
    async with open_gate(tools=[pausing.tool()]) as gate:
        approval = await park(gate, "write")
        await gate.decide(approval.id, "approve", by="ann")
        await pausing.at_the_door()
        await gate.set_mode("LOCKDOWN", by="ann", reason="incident")
        pausing.let_go.set()
        result = await gate.wait(approval.call_id)
        assert result.status is Status.DENIED
        assert "LOCKDOWN" in str(result.error)
        assert pausing.ran == []


async def test_nothing_can_be_decided_in_lockdown(open_gate: Open, pausing: PausingTool) -> None:
    async with open_gate(tools=[pausing.tool()]) as gate:
        approval = await park(gate, "write")
        await gate.set_mode("LOCKDOWN", by="ann")
        for decision in ("approve", "deny"):
            with pytest.raises(DecisionConflictError, match="LOCKDOWN"):
                await gate.decide(approval.id, decision, by="ann")
        await gate.set_mode("NORMAL", by="ann")
        assert (await gate.decide(approval.id, "deny", by="ann")).status is Status.REJECTED


async def test_a_stricter_policy_stops_an_approved_call(open_gate: Open, pausing: PausingTool) -> None:
    async with open_gate(tools=[pausing.tool()]) as gate:
        approval = await park(gate, "write")
        await gate.decide(approval.id, "approve", by="ann")
        await pausing.at_the_door()
        await gate.set_policy(saying("deny"), by="ann")
        pausing.let_go.set()
        result = await gate.wait(approval.call_id)
        assert result.status is Status.DENIED
        assert pausing.ran == []
        assert names(await gate.events(call_id=approval.call_id))[-1] == "tool.denied"


async def test_a_looser_policy_lets_an_approved_call_run(open_gate: Open, pausing: PausingTool) -> None:
    async with open_gate(tools=[pausing.tool()]) as gate:
        approval = await park(gate, "write")
        await gate.set_policy(saying("allow"), by="ann")
        pausing.let_go.set()
        await gate.decide(approval.id, "approve", by="ann")
        assert (await gate.wait(approval.call_id)).data == "written"


async def test_a_policy_that_asks_for_more_asks_again(open_gate: Open, pausing: PausingTool) -> None:
    async with open_gate(tools=[pausing.tool(risk_level="high")], policy=saying("allow")) as gate:
        approval = await park(gate, "write")
        assert approval.level == "full"
        quick = ToolDefinition(name="quick", handler=pausing.write, requires_approval=True)
        gate.register(quick)
        second = await park(gate, "quick")
        assert second.level == "quick"
        await gate.set_policy(Policy(thresholds=gate_thresholds()), by="ann")
        await gate.decide(second.id, "approve", by="ann")
        await until(lambda: _asks(gate, second.call_id))
        third = next(one for one in await gate.pending() if one.call_id == second.call_id)
        assert (third.level, third.id == second.id) == ("full", False)
        await gate.decide(third.id, "approve", by="ann")
        assert (await gate.wait(second.call_id)).success


def gate_thresholds() -> Any:
    from toolgate.kernel.tool import Thresholds

    return Thresholds(auto=90, quick=80)


async def _asks(gate: Any, call_id: str) -> bool:
    return any(approval.call_id == call_id for approval in await gate.pending())


async def test_a_changed_precondition_asks_again(open_gate: Open, pausing: PausingTool) -> None:
    async with open_gate(tools=[pausing.tool()]) as gate:
        first = await park(gate, "write")
        await gate.decide(first.id, "approve", by="ann")
        await pausing.at_the_door()
        pausing.world = "changed"
        pausing.let_go.set()
        await until(lambda: _asks(gate, first.call_id))
        second = (await gate.pending())[0]
        assert second.preview == {"world": "changed"}
        assert second.digest != first.digest
        assert pausing.ran == []
        await gate.decide(second.id, "approve", by="bob")
        result = await gate.wait(first.call_id)
        assert (result.data, result.approved_by, pausing.ran) == ("written", "bob", [{}])


async def test_a_changed_definition_asks_again(open_gate: Open, pausing: PausingTool) -> None:
    async with open_gate(tools=[pausing.tool(version="1")]) as gate:
        first = await park(gate, "write")
        gate.register(pausing.tool(version="2"))
        pausing.let_go.set()
        await gate.decide(first.id, "approve", by="ann")
        await until(lambda: _asks(gate, first.call_id))
        second = (await gate.pending())[0]
        assert second.definition_hash != first.definition_hash
        assert (await gate.approvals.get(first.id)).status is ApprovalStatus.APPROVED
        await gate.decide(second.id, "approve", by="ann")
        assert (await gate.wait(first.call_id)).data == "written"
        assert len(pausing.ran) == 1


async def test_a_definition_that_no_longer_takes_the_arguments_fails_it(open_gate: Open, pausing: PausingTool) -> None:
    async with open_gate(tools=[pausing.tool()]) as gate:
        approval = await park(gate, "write", {"path": "/a"})
        gate.register(pausing.tool(input_schema={"type": "object", "properties": {"path": {"type": "integer"}}}))
        pausing.let_go.set()
        await gate.decide(approval.id, "approve", by="ann")
        result = await gate.wait(approval.call_id)
        assert (result.status, result.error_code) == (Status.FAILED, "invalid_arguments")
        assert pausing.ran == []


async def test_a_preparation_that_fails_before_dispatch_fails_the_call(open_gate: Open, pausing: PausingTool) -> None:
    async with open_gate(tools=[pausing.tool()]) as gate:
        approval = await park(gate, "write")
        pausing.world = object()  # type: ignore[assignment]  # has no JSON form
        pausing.let_go.set()
        await gate.decide(approval.id, "approve", by="ann")
        result = await gate.wait(approval.call_id)
        assert (result.status, result.error_code) == (Status.FAILED, "prepare_failed")


async def test_an_approved_call_whose_tool_is_gone_stays_approved(open_gate: Open, pausing: PausingTool) -> None:
    async with open_gate(tools=[pausing.tool()]) as gate:
        approval = await park(gate, "write")
        gate.registry.discard("write")
        await gate.decide(approval.id, "approve", by="ann")
        waiting = asyncio.ensure_future(gate.wait(approval.call_id))
        await asyncio.wait({waiting}, timeout=0.01)
        assert (await gate.get(approval.call_id)).status is Status.APPROVED
        gate.register(pausing.tool())
        pausing.let_go.set()
        waiting.cancel()
        assert (await gate.wait(approval.call_id)).data == "written"
