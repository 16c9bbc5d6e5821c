from __future__ import annotations

import asyncio
import functools
import logging
import threading
from typing import Any

import pytest
from tests.journeys.scene import Open, park

from toolgate import Gate, Principal, ToolDefinition, ToolInput, ToolOutput
from toolgate.kernel.approval import Approval, ApprovalStatus
from toolgate.kernel.call import Status
from toolgate.ports.channel import Answer, Decision
from toolgate.testing.patience import PATIENCE_S, until


async def write(_given: ToolInput) -> ToolOutput:
    return ToolOutput.ok("written")


TOOL = ToolDefinition(name="write", handler=write, requires_approval=True)


async def yes_later(_approval: Approval) -> bool:
    await asyncio.sleep(0)
    return True


async def word_later(word: str, _approval: Approval) -> str:
    return word


class Object:
    async def __call__(self, _approval: Approval) -> bool:
        return True


@pytest.mark.parametrize(
    "approver",
    [
        lambda _approval: True,
        lambda _approval: "approve",
        lambda _approval: Decision.APPROVE,
        lambda _approval: Answer(Decision.APPROVE, Principal(name="callback")),
        lambda approval: yes_later(approval),
        yes_later,
        functools.partial(word_later, "approve"),
        Object(),
    ],
    ids=["true", "word", "decision", "answer", "coroutine", "async", "partial", "object"],
)
async def test_a_yes_in_any_form_lets_the_call_run(open_gate: Open, approver: Any) -> None:
    async with open_gate(tools=[TOOL], approver=approver) as gate:
        result = await gate.call("write")
        assert (result.data, result.approved_by) == ("written", "callback")


@pytest.mark.parametrize(
    "approver",
    [
        lambda _approval: False,
        lambda _approval: "deny",
        lambda _approval: Answer(Decision.DENY, Principal(name="bob"), "not now"),
        functools.partial(word_later, "deny"),
    ],
    ids=["false", "word", "answer", "partial"],
)
async def test_a_no_in_any_form_stops_the_call(open_gate: Open, approver: Any) -> None:
    async with open_gate(tools=[TOOL], approver=approver) as gate:
        assert (await gate.call("write")).status is Status.REJECTED


def raising(_approval: Approval) -> bool:
    raise LookupError("no approver today")


async def raising_later(_approval: Approval) -> bool:
    raise LookupError("no approver today")


@pytest.mark.parametrize(
    "approver",
    [lambda _approval: 42, lambda _approval: "perhaps", raising, raising_later],
    ids=["number", "word", "raising", "raising later"],
)
async def test_a_broken_answer_leaves_the_call_parked(
    open_gate: Open, approver: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_gate(tools=[TOOL], approver=approver) as gate:
        approval = await park(gate, "write")
        await until(lambda: "stays parked" in caplog.text)
        assert (await gate.get(approval.call_id)).status is Status.AWAITING_APPROVAL
        await gate.decide(approval.id, "approve", by="ann")
        assert (await gate.wait(approval.call_id)).success


async def test_an_approver_that_says_nothing_leaves_it_to_others(open_gate: Open) -> None:
    asked: list[Approval] = []
    async with open_gate(tools=[TOOL], approver=asked.append) as gate:
        waiting = asyncio.ensure_future(gate.call("write"))
        await until(lambda: asked)
        await gate.decide(asked[0].id, "approve", by="ann")
        assert (await waiting).approved_by == "ann"


async def test_an_answer_that_comes_second_changes_nothing(open_gate: Open, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "toolgate.channels")
    let_answer = asyncio.Event()

    async def slow(_approval: Approval) -> bool:
        await let_answer.wait()
        return False

    async with open_gate(tools=[TOOL], approver=slow) as gate:
        approval = await park(gate, "write")
        await gate.decide(approval.id, "approve", by="ann")
        let_answer.set()
        await until(lambda: "came second" in caplog.text)
        assert (await gate.wait(approval.call_id)).success
        assert (await gate.approvals.get(approval.id)).status is ApprovalStatus.APPROVED


async def test_a_blocking_approver_does_not_hold_up_the_loop(open_gate: Open) -> None:
    answer = threading.Event()

    def blocking(_approval: Approval) -> bool:
        return answer.wait(PATIENCE_S)

    async with open_gate(tools=[TOOL], approver=blocking) as gate:
        waiting = asyncio.ensure_future(gate.call("write"))
        await until(gate.pending)
        answer.set()
        assert (await waiting).success


async def test_an_approver_may_be_a_channel_of_ones_own(open_gate: Open) -> None:
    class Phone:
        async def ask(self, approval: Approval) -> Answer:
            assert approval.tool_name == "write"
            return Answer(Decision.APPROVE, Principal(name="carol"), "called me")

    async with open_gate(tools=[TOOL], approver=Phone()) as gate:
        result = await gate.call("write")
        assert result.approved_by == "carol"
        assert (await gate.approvals.get(str(result.approval_id))).reason == "called me"


def test_a_question_outlives_the_loop_it_was_asked_on(open_gate: Open) -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    async def approver(_approval: Approval) -> bool:
        loops.append(asyncio.get_running_loop())
        if len(loops) == 1:
            await asyncio.Event().wait()
        return True

    async def begin(gate: Gate) -> str:
        approval = await park(gate, "write")
        await until(lambda: loops)
        return approval.call_id

    with open_gate(tools=[TOOL], approver=approver) as gate:
        call_id = asyncio.run(begin(gate))
        assert gate.sync.wait(call_id).data == "written"
        assert len(loops) == 2
