"""Questions by hand, whichever module asks them."""

from __future__ import annotations

import pytest

import toolgate
from toolgate import ApprovalStatus, Context, RiskLevel, Status
from toolgate.doors.places import close_anywhere, private_project
from toolgate.doors.questions import Questions
from toolgate.errors import GateClosedError, ToolDeniedError
from toolgate.testing.patience import until


async def test_a_question_is_asked_answered_and_runs_nothing() -> None:
    async with toolgate.open("memory://") as gate:
        questions = Questions(gate, "by-hand")
        where = Context(project="by-hand")
        asked = await questions.ask("pay", {"amount": 5}, context=where, timeout_s=60, risk=RiskLevel.HIGH)
        assert (asked.status, asked.risk, asked.arguments) == (ApprovalStatus.PENDING, "high", {"amount": 5})
        await gate.decide(asked.id, "approve", by="ann", reason="agreed")
        answered = await questions.answer(asked, None)
        assert (answered.status, answered.reason) == (ApprovalStatus.APPROVED, "agreed")
        assert (await gate.wait(asked.call_id, project="by-hand")).data is None


async def test_time_closes_only_a_question_that_was_asked_here() -> None:
    async with toolgate.open("memory://") as gate:
        here, there = Questions(gate, "here"), Questions(gate, "there")
        asked = await there.ask("pay", {}, context=Context(project="there"), timeout_s=60)
        assert (await here.answer(asked, 0.01)).is_pending
        assert (await there.answer(asked, 0.01)).status is ApprovalStatus.EXPIRED
        assert (await gate.get(asked.call_id, project="there")).status is Status.CANCELLED


async def test_what_cannot_be_asked_says_why() -> None:
    async with toolgate.open("memory://") as gate:
        await gate.set_mode("LOCKDOWN", by="root")
        with pytest.raises(ToolDeniedError, match="LOCKDOWN"):
            await Questions(gate, "here").ask("pay", {}, context=Context(project="here"), timeout_s=60)


async def test_a_gate_is_closed_inside_a_coroutine_without_waiting() -> None:
    gate = toolgate.open("memory://")
    close_anywhere(gate)
    await until(lambda: gate._parked.is_closed)
    with pytest.raises(GateClosedError):
        await gate.call("pay", {})


def test_a_gate_is_closed_at_once_in_plain_code() -> None:
    gate = toolgate.open("memory://")
    close_anywhere(gate)
    assert gate._parked.is_closed


def test_no_two_private_projects_are_the_same() -> None:
    assert private_project() != private_project()
