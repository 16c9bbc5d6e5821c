from __future__ import annotations

import asyncio

import pytest
from tests.journeys.scene import Open, names, park, saying

from toolgate import ToolDefinition, ToolInput, ToolOutput
from toolgate.errors import DecisionConflictError, ToolApprovalTimeoutError, UsageError
from toolgate.kernel.approval import ApprovalStatus
from toolgate.kernel.call import Status
from toolgate.testing.patience import until

SHORT_S = 0.05
ran: list[str] = []


async def write(_given: ToolInput) -> ToolOutput:
    ran.append("write")
    return ToolOutput.ok()


TOOL = ToolDefinition(name="write", handler=write, requires_approval=True)


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


async def test_a_call_nobody_decides_times_out_and_is_not_denied(open_gate: Open) -> None:
    async with open_gate(tools=[TOOL]) as gate:
        result = await gate.call("write", approval_timeout_s=SHORT_S)
        assert (result.status, result.error_code) == (Status.TIMEOUT, "approval_timeout")
        with pytest.raises(ToolApprovalTimeoutError):
            result.unwrap()
        approval = await gate.approvals.get(str(result.approval_id))
        assert (approval.status, approval.reason) == (ApprovalStatus.EXPIRED, "timeout")
        assert ran == []


async def test_people_are_warned_before_an_approval_expires(open_gate: Open) -> None:
    async with open_gate(tools=[TOOL]) as gate:
        # Long enough that even a busy machine sweeps once between the warning and the end.
        result = await gate.call("write", approval_timeout_s=3.0)
        assert names(await gate.events(call_id=result.call_id)) == [
            "tool.invoked",
            "approval.requested",
            "approval.expiring",
            "approval.expired",
            "tool.denied",
        ]


async def test_a_yes_that_comes_too_late_is_refused(open_gate: Open) -> None:
    async with open_gate(tools=[TOOL]) as gate:
        result = await gate.call("write", approval_timeout_s=SHORT_S)
        with pytest.raises(DecisionConflictError, match="already expired"):
            await gate.decide(str(result.approval_id), "approve", by="ann")
        with pytest.raises(DecisionConflictError):
            await gate.approvals.extend(str(result.approval_id), 60, by="ann")
        assert ran == []


async def test_an_extended_approval_can_still_be_decided(open_gate: Open) -> None:
    async with open_gate(tools=[TOOL]) as gate:
        approval = await park(gate, "write", approval_timeout_s=1)
        longer = await gate.approvals.extend(approval.id, 60, by="ann")
        assert longer.expires_at > approval.expires_at
        assert names(await gate.events(call_id=approval.call_id))[-1] == "approval.extended"
        await gate.decide(approval.id, "approve", by="ann")
        assert (await gate.wait(approval.call_id)).success


async def test_an_approval_can_be_extended_to_less(open_gate: Open) -> None:
    async with open_gate(tools=[TOOL]) as gate:
        approval = await park(gate, "write")
        await gate.approvals.extend(approval.id, SHORT_S, by="ann")
        assert (await gate.wait(approval.call_id)).status is Status.TIMEOUT


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan")])
async def test_an_approval_is_extended_by_a_real_span_only(open_gate: Open, seconds: float) -> None:
    async with open_gate(tools=[TOOL]) as gate:
        approval = await park(gate, "write")
        with pytest.raises(UsageError):
            await gate.approvals.extend(approval.id, seconds, by="ann")


async def test_the_tool_and_the_policy_may_set_the_time(open_gate: Open) -> None:
    quick = ToolDefinition(name="quick", handler=write, requires_approval=True, approval_timeout_seconds=SHORT_S)
    async with open_gate(tools=[quick, TOOL], policy=saying("ask", approval_timeout_s=SHORT_S)) as gate:
        assert (await gate.call("quick")).status is Status.TIMEOUT
        assert (await gate.call("write")).status is Status.TIMEOUT


async def test_many_approvals_expire_at_once(open_gate: Open) -> None:
    async with open_gate(tools=[TOOL]) as gate:
        calls = [gate.call("write", approval_timeout_s=SHORT_S) for _ in range(150)]
        results = await asyncio.gather(*calls)
        assert {result.status for result in results} == {Status.TIMEOUT}
        assert await gate.pending() == []


async def test_an_approval_expires_although_nobody_waits(open_gate: Open) -> None:
    async with open_gate(tools=[TOOL]) as gate:
        approval = await park(gate, "write", approval_timeout_s=SHORT_S)

        async def is_closed() -> bool:
            return (await gate.get(approval.call_id)).status is Status.TIMEOUT

        await until(is_closed)
