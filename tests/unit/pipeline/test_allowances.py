"""What a yes was excused from: it needs no reason then, and its event says what from."""

from __future__ import annotations

from typing import Any

import pytest

import toolgate
from toolgate import ApprovalTerms, Context, Policy
from toolgate.errors import DecisionConflictError, NotAllowedError, UsageError
from toolgate.gate import Gate
from toolgate.kernel.terms import ApprovalLevel

ANNS = Context(principal="agent:ann", user="ann")


@toolgate.tool(risk_level="high")
async def drop(name: str) -> str:
    """Drop a table."""
    return name


def gate(**terms: Any) -> Gate:
    policy = Policy(terms=ApprovalTerms(level=ApprovalLevel.FULL, **terms), revision="full")
    return toolgate.open("memory://", tools=[drop], policy=policy)


async def asked(gate: Gate) -> str:
    return str((await gate.call("drop", {"name": "a"}, context=ANNS, wait=False)).approval_id)


async def told(gate: Gate, event: str) -> dict[str, Any]:
    return dict(next(one.data for one in await gate.events() if one.type == event))


async def test_a_yes_that_is_excused_needs_no_reason_and_the_event_says_so() -> None:
    async with gate() as here:
        question = await asked(here)
        with pytest.raises(UsageError, match="needs a reason"):
            await here.decide(question, "approve", by="ann")
        await here.decide(question, "approve", by="ann", allowances=("host",))
        found = await told(here, "approval.decided")
    assert (found["allowances"], found["reason"]) == (["host"], None)


async def test_an_edit_and_a_vote_say_so_too() -> None:
    async with gate() as here:
        await here.approvals.edit(await asked(here), {"name": "b"}, by="ann", allowances=("host",))
        assert (await told(here, "approval.decided"))["allowances"] == ["host"]
    async with gate(quorum=2) as here:
        question = await asked(here)
        await here.decide(question, "approve", by="ann", allowances=("host",))
        assert (await told(here, "approval.voted"))["allowances"] == ["host"]
        await here.decide(question, "approve", by="bob")
        assert "allowances" not in await told(here, "approval.decided")


async def test_what_would_refuse_an_answer_is_told_without_deciding() -> None:
    async with gate() as here:
        question = await asked(here)
        await here.approvals.check(question, by="bob")
        with pytest.raises(DecisionConflictError, match="something else"):
            await here.approvals.check(question, by="bob", digest="0" * 64)
        with pytest.raises(NotAllowedError):
            await here.approvals.check(question, by=toolgate.Principal(name="agent:ann"))
        assert (await here.approvals.get(question)).is_pending
        await here.decide(question, "deny", by="bob")
        with pytest.raises(DecisionConflictError, match="already denied"):
            await here.approvals.check(question, by="bob")
