from __future__ import annotations

import pytest
from tests.journeys.scene import Open, names, park, saying

from toolgate import Gate, ToolDefinition, tool
from toolgate.errors import DecisionConflictError, ToolApprovalDeniedError, UsageError
from toolgate.kernel.call import Status

ran: list[str] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


@tool(requires_approval=True)
async def wipe() -> str:
    ran.append("wipe")
    return "wiped"


async def test_a_rejected_call_does_not_run(open_gate: Open) -> None:
    async with open_gate(tools=[wipe]) as gate:
        approval = await park(gate, "wipe")
        await gate.decide(approval.id, "deny", by="ann", reason="too early")
        result = await gate.wait(approval.call_id)
        assert result.status is Status.REJECTED
        assert result.error == "Approval was denied by ann: too early"
        assert ran == []
        with pytest.raises(ToolApprovalDeniedError, match="too early"):
            result.unwrap()


async def test_a_rejected_call_stays_rejected_when_the_policy_is_relaxed(open_gate: Open) -> None:
    async with open_gate(tools=[wipe]) as gate:
        approval = await park(gate, "wipe")
        await gate.decide(approval.id, "deny", by="ann")
        await gate.set_policy(saying("allow"), by="ann")
        gate.register(ToolDefinition(name="wipe", handler=wipe.handler))
        assert (await gate.wait(approval.call_id)).status is Status.REJECTED
        assert (await gate.call("wipe", call_id=approval.call_id)).status is Status.REJECTED
        assert ran == []


async def test_a_no_cannot_be_turned_into_a_yes(open_gate: Open) -> None:
    async with open_gate(tools=[wipe]) as gate:
        approval = await park(gate, "wipe")
        await gate.decide(approval.id, "deny", by="ann")
        with pytest.raises(DecisionConflictError, match="already denied by ann"):
            await gate.decide(approval.id, "approve", by="bob")
        assert (await gate.approvals.get(approval.id)).decided_by == "ann"


async def test_a_no_is_told_as_a_decision_and_a_denial(open_gate: Open) -> None:
    async with open_gate(tools=[wipe]) as gate:
        approval = await park(gate, "wipe")
        await gate.decide(approval.id, "deny", by="ann", reason="too early")
        events = await gate.events(call_id=approval.call_id)
        assert names(events) == ["tool.invoked", "approval.requested", "approval.decided", "tool.denied"]
        assert events[2].data["decided_by"] == "ann"
        assert events[2].data["reason"] == "too early"


async def test_a_tool_may_demand_a_reason_for_a_no(open_gate: Open) -> None:
    careful = ToolDefinition(name="careful", handler=wipe.handler, requires_approval=True, requires_reason=True)
    async with open_gate(tools=[careful]) as gate:
        approval = await park(gate, "careful")
        for reason in (None, "", "  "):
            with pytest.raises(UsageError, match="needs a reason"):
                await gate.decide(approval.id, "deny", by="ann", reason=reason)
        assert (await gate.decide(approval.id, "deny", by="ann", reason="no")).status is Status.REJECTED


async def test_a_rule_that_denies_is_told_with_its_name(open_gate: Open) -> None:
    async with open_gate(tools=[wipe], policy=saying("deny", "not on Fridays")) as gate:
        result = await gate.call("wipe")
        assert result.status is Status.DENIED
        assert result.error == "Tool `wipe` was denied: not on Fridays (rule `say`)."
        assert names(await gate.events(call_id=result.call_id)) == ["tool.invoked", "tool.denied"]
        assert ran == []


async def test_a_rule_that_breaks_denies(open_gate: Open) -> None:
    class Broken:
        name = "broken"

        def __call__(self, *_facts: object) -> None:
            raise ZeroDivisionError

    from toolgate import Policy

    async with open_gate(tools=[wipe], policy=Policy(rules=(Broken(),))) as gate:
        result = await gate.call("wipe")
        assert result.status is Status.DENIED
        assert "ZeroDivisionError" in str(result.error)


async def test_only_approve_and_deny_are_decisions(open_gate: Open) -> None:
    async with open_gate(tools=[wipe]) as gate:
        approval = await park(gate, "wipe")
        with pytest.raises(UsageError, match="'approve' or 'deny'"):
            await gate.decide(approval.id, "maybe", by="ann")
        assert (await gate.get(approval.call_id)).status is Status.AWAITING_APPROVAL
        assert isinstance(gate, Gate)
