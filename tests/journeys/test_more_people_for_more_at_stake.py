"""Above 50 one person, above 1,000 two, one of them a lead: whatever an agent or a colleague tries."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.journeys.scene import Open, park

import toolgate
from toolgate import Context, Gate, Principal, ToolDefinition, ToolInput, ToolOutput
from toolgate.errors import DecisionConflictError, NotAllowedError, UsageError
from toolgate.kernel.approval import Approval, Note
from toolgate.kernel.call import Status
from toolgate.kernel.change import Change
from toolgate.kernel.grant import Remember
from toolgate.kernel.record import evolve
from toolgate.policy.loader import read_policy
from toolgate.testing.patience import until

RAN: list[Any] = []
POLICY = """
tools:
  pay:
    decision: allow
    undo: {ask: true}
    arguments:
      - {field: amount, above: 50, then: ask}
      - field: amount
        above: 1000
        then: ask
        approval: {level: full, quorum: 2, including: [lead], timeout: 2m}
"""
ANN, BOB, LEA = (
    Principal(name="ann"),
    Principal(name="bob"),
    Principal(name="lea", roles=frozenset({"lead", "staff"})),
)


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


async def handler(given: ToolInput) -> ToolOutput:
    RAN.append(given.payload["amount"])
    return ToolOutput.ok(undo_metadata={"amount": given.payload["amount"]})


async def take_back(_kept: Any) -> None:
    RAN.append("taken back")


def tool() -> ToolDefinition:
    return ToolDefinition("pay", {"type": "object"}, handler, undoable=True, undo_handler=take_back)


@pytest_asyncio.fixture
async def gate(open_gate: Open) -> AsyncIterator[Gate]:
    async with open_gate(tools=[tool()], policy=read_policy(POLICY)) as opened:
        yield opened


def takes(approval: Approval) -> tuple[str, int, tuple[frozenset[str], ...]]:
    return approval.level, approval.terms.quorum, approval.terms.including


FEW = ("quick", 1, ())
MANY = ("full", 2, (frozenset({"lead"}),))


async def test_the_amount_says_how_many_must_approve(gate: Gate) -> None:
    assert (await gate.call("pay", {"amount": 50})).status is Status.COMPLETED
    assert takes(await park(gate, "pay", {"amount": 51})) == FEW
    asked = await park(gate, "pay", {"amount": 1001})
    assert takes(asked) == MANY
    assert (asked.expires_at - asked.created_at).total_seconds() == 120
    assert "arguments: argument 'amount' above 1000.0" in asked.reasons


async def test_two_people_without_a_lead_are_not_enough_and_the_lead_may_come_third(gate: Gate) -> None:
    asked = await park(gate, "pay", {"amount": 2000})
    for one in (ANN, BOB):
        assert (await gate.decide(asked.id, "approve", by=one)).status is Status.AWAITING_APPROVAL
    waiting = await gate.approvals.get(asked.id)
    assert (waiting.lacks, waiting.is_enough(waiting.votes)) == ((frozenset({"lead"}),), False)
    with pytest.raises(DecisionConflictError, match="already"):
        await gate.decide(asked.id, "approve", by=Principal(name="ann", roles=frozenset({"lead"})))
    assert RAN == []
    await gate.decide(asked.id, "approve", by=LEA)
    done = await gate.wait(asked.call_id)
    assert (done.approved_by, RAN) == ("ann, bob, lea", [2000])


async def test_a_lead_alone_is_not_enough(gate: Gate) -> None:
    asked = await park(gate, "pay", {"amount": 2000})
    assert (await gate.decide(asked.id, "approve", by=LEA)).status is Status.AWAITING_APPROVAL
    assert (await gate.approvals.get(asked.id)).votes[0].roles == ("lead",)
    await gate.decide(asked.id, "approve", by=ANN)
    assert (await gate.wait(asked.call_id)).approved_by == "lea, ann"


@pytest.mark.parametrize("amount", ["2000", None, [2000], True, {"value": 2000}])
async def test_what_cannot_be_compared_runs_for_nobody(gate: Gate, amount: Any) -> None:
    denied = await gate.call("pay", {"amount": amount})
    assert (denied.status, RAN) == (Status.DENIED, [])
    assert "argument 'amount' is not of a type that the policy can compare" in (denied.error or "")


async def test_an_amount_that_is_left_out_is_the_largest(gate: Gate) -> None:
    assert takes(await park(gate, "pay", {"sum": 2000})) == MANY


async def test_an_edit_that_raises_the_amount_takes_as_many_as_if_it_had_been_asked_so(gate: Gate) -> None:
    asked = await park(gate, "pay", {"amount": 60})
    edited = await gate.approvals.edit(asked.id, {"amount": 2000}, by=ANN)
    assert edited.status is Status.AWAITING_APPROVAL
    assert edited.approval_id is not None
    again = await gate.approvals.get(edited.approval_id)
    assert (takes(again), [vote.by for vote in again.votes]) == (MANY, ["ann"])
    await gate.decide(again.id, "approve", by=BOB)
    assert RAN == []
    await gate.decide(again.id, "approve", by=LEA)
    await gate.wait(asked.call_id)
    assert RAN == [2000]


async def test_an_edit_counts_as_the_leads_vote_where_a_lead_makes_it(gate: Gate) -> None:
    asked = await park(gate, "pay", {"amount": 5000})
    edited = await gate.approvals.edit(asked.id, {"amount": 2000}, by=LEA)
    assert edited.approval_id is not None
    await gate.decide(edited.approval_id, "approve", by=BOB)
    assert (await gate.wait(asked.call_id)).approved_by == "lea, bob"


async def test_a_remembered_yes_does_not_cover_what_takes_more(gate: Gate) -> None:
    asked = await park(gate, "pay", {"amount": 60})
    bounds = Remember(pattern={"amount": {"at_most": 9000}})
    await gate.decide(asked.id, "approve", by=ANN, remember=bounds)
    await gate.wait(asked.call_id)
    assert (await gate.call("pay", {"amount": 900})).status is Status.COMPLETED
    assert takes(await park(gate, "pay", {"amount": 2000})) == MANY
    assert RAN == [60, 900]


async def test_an_undo_that_is_asked_about_takes_as_many(gate: Gate) -> None:
    asked = await park(gate, "pay", {"amount": 2000})
    for one in (ANN, LEA):
        await gate.decide(asked.id, "approve", by=one)
    await gate.wait(asked.call_id)
    taking_back = asyncio.create_task(gate.undo(asked.call_id))
    await until(gate.pending)
    (about,) = await gate.pending()
    assert takes(about) == MANY
    await gate.decide(about.id, "deny", by=ANN)
    assert (await taking_back).status is Status.REJECTED


async def test_a_vote_whose_role_was_written_into_the_row_counts_for_nothing(open_gate: Open) -> None:
    async with open_gate(tools=[tool()], policy=read_policy(POLICY)) as gate:
        asked = await park(gate, "pay", {"amount": 2000})
        await gate.decide(asked.id, "approve", by=ANN)
        row, call = await gate.approvals.get(asked.id), await gate.calls.get(asked.call_id)
        forged = evolve(row, votes=(Note("ann", row.votes[0].at, None, roles=("lead",)),))
        change = Change(project=call.project, at=call.created_at, call=call.stay(), expect=call.version)
        writing = gate._driver.store.commit(evolve(change, approvals=(forged,)))
        if writing is not None:
            await writing
        with pytest.raises(DecisionConflictError, match="mark"):
            await gate.decide(asked.id, "approve", by=BOB)
        assert RAN == []


async def test_an_edit_where_the_tool_is_not_is_judged_where_it_runs(tmp_path: Path) -> None:
    url, policy = f"sqlite:///{tmp_path}/toolgate.db", read_policy(POLICY)
    async with toolgate.open(url, tools=[tool()], policy=policy) as runs, toolgate.open(url) as decides:
        asked = await park(runs, "pay", {"amount": 60})
        await decides.approvals.edit(asked.id, {"amount": 2000}, by=ANN)

        async def is_asked_anew() -> bool:
            return [takes(one) for one in await runs.pending()] == [MANY]

        await until(is_asked_anew)
        assert RAN == []


async def test_one_persons_yes_is_remembered_only_where_they_may_decide_alone(open_gate: Open) -> None:
    text = "tools: {pay: {arguments: [{field: amount, above: 5, then: ask, approval: {including: [lead]}}]}}"
    async with open_gate(tools=[tool()], policy=read_policy(text)) as gate:
        asked = await park(gate, "pay", {"amount": 60})
        with pytest.raises(UsageError, match="alone"):
            await gate.decide(asked.id, "approve", by=ANN, remember=Remember())
        assert (await gate.approvals.get(asked.id)).votes == ()
        await gate.decide(asked.id, "approve", by=LEA, remember=Remember())
        await gate.wait(asked.call_id)
        assert (await gate.call("pay", {"amount": 60})).status is Status.COMPLETED


async def test_a_condition_can_name_who_decides(open_gate: Open) -> None:
    text = """
    tools:
      pay:
        arguments:
          - {field: amount, above: 5, then: ask, approval: {approvers: [finance], separation: true}}
    """
    async with open_gate(tools=[tool()], policy=read_policy(text)) as gate:
        fred = Principal(name="fred", roles=frozenset({"finance"}))
        asked = await park(gate, "pay", {"amount": 60}, context=Context(principal="agent:a", user="fred"))
        for one in (ANN, fred):
            with pytest.raises(NotAllowedError):
                await gate.decide(asked.id, "approve", by=one)
        await gate.decide(asked.id, "approve", by=Principal(name="fay", roles=frozenset({"finance"})))
        assert (await gate.wait(asked.call_id)).status is Status.COMPLETED
