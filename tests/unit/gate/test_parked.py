"""Who runs an approved call, and how often that is tried; what is known of a question here, and what is stored."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import toolgate
from toolgate import Gate, ToolDefinition, ToolInput, ToolOutput
from toolgate.errors import DecisionConflictError
from toolgate.kernel.call import Call, Status
from toolgate.kernel.output import Result


async def pay(given: ToolInput) -> ToolOutput:
    return ToolOutput.ok(given.payload)


PAY = ToolDefinition("pay", {}, pay, requires_approval=True)


def opened(database: Path) -> Gate:
    return toolgate.open(f"sqlite:///{database}", tools=[PAY])


def counted(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The calls that are tried to be run, in order."""
    tried: list[str] = []
    resume = gate._pipeline.resume

    async def noted(call: Call, *given: Any) -> Result:
        tried.append(call.id)
        return await resume(call, *given)

    monkeypatch.setattr(gate._pipeline, "resume", noted)
    return tried


async def test_a_wait_may_end_before_its_call() -> None:
    tool = toolgate.ToolDefinition("ask", {}, lambda _given: toolgate.ToolOutput.ok(1), requires_approval=True)
    async with toolgate.open("memory://", tools=[tool]) as gate:
        waiting = await gate.call("ask", wait=0.01)
        assert waiting.status is Status.AWAITING_APPROVAL
        with pytest.raises(TimeoutError):
            await gate.wait(waiting.call_id, 0.01)
        await gate.decide(str(waiting.approval_id), "approve", by="ann")
        assert (await gate.wait(waiting.call_id, 60)).data == 1
        assert (await gate.call("ask", call_id=waiting.call_id, wait=60)).data == 1


async def test_one_attempt_is_made_where_somebody_begins_to_wait_just_after_the_approval(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(database) as gate:
        tried = counted(gate, monkeypatch)
        asked = await gate.call("pay", {"sum": 1}, wait=False)
        await gate.decide(str(asked.approval_id), "approve", by="ann")
        results = await asyncio.gather(*(gate.wait(asked.call_id) for _ in range(3)))
        assert [result.data for result in results] == [{"sum": 1}] * 3
        assert len({id(result.data) for result in results}) == 3  # nobody is given what another one may change
        assert tried == [asked.call_id]


async def test_a_call_left_to_a_loop_that_stopped_is_run_by_who_waits_for_it(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(database) as gate:
        stopped = asyncio.new_event_loop()
        monkeypatch.setattr(gate._parked, "_dispatch", lambda key: gate._parked._resuming.setdefault(key, False))
        asked = await gate.call("pay", {"sum": 1}, wait=False)
        gate._parked._minded["default", asked.call_id] = stopped
        await gate.decide(str(asked.approval_id), "approve", by="ann")
        assert (await gate.wait(asked.call_id)).status is Status.COMPLETED
        stopped.close()


async def test_a_yes_to_what_was_rejected_elsewhere_is_refused_although_it_is_not_known_here_yet(
    database: Path,
) -> None:
    async with opened(database) as here, opened(database) as there:
        asked = await here.call("pay", {"sum": 1}, wait=False)
        await there.decide(str(asked.approval_id), "reject", by="bob")
        with pytest.raises(DecisionConflictError):
            await here.decide(str(asked.approval_id), "approve", by="ann")
        assert (await here.wait(asked.call_id)).status is Status.REJECTED


async def test_a_yes_to_a_question_that_was_changed_elsewhere_keeps_the_change(database: Path) -> None:
    async with opened(database) as here, opened(database) as there:
        asked = await here.call("pay", {"sum": 1}, wait=False)
        await there.approvals.comment(str(asked.approval_id), "looks right", by="bob")
        await here.decide(str(asked.approval_id), "approve", by="ann")
        assert (await here.wait(asked.call_id)).status is Status.COMPLETED
        [comment] = (await here.approvals.get(str(asked.approval_id))).comments
        assert comment.text == "looks right"


async def test_a_refusal_rests_on_what_is_stored_and_not_on_what_is_known(database: Path) -> None:
    async with opened(database) as here, opened(database) as there:
        asked = await here.call("pay", {"sum": 1}, approval_timeout_s=60, wait=False)
        await there.approvals.extend(str(asked.approval_id), seconds=3600, by="bob")
        now = here._driver.now
        here._driver.now = lambda: now() + timedelta(minutes=10)  # too late for the question as it was asked
        await here.decide(str(asked.approval_id), "approve", by="ann")
        assert (await here.get(asked.call_id)).status in (Status.APPROVED, Status.EXECUTING, Status.COMPLETED)
