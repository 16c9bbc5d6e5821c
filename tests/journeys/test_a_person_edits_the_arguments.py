"""Approve with other arguments: checked anew, bound anew, told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.journeys.scene import Open, names, park

from toolgate import Context, Policy, ToolDefinition, ToolInput, ToolOutput
from toolgate.errors import DecisionConflictError, ToolDeniedError, ToolInputError, UsageError
from toolgate.kernel.call import Call, Status
from toolgate.kernel.grant import Remember
from toolgate.kernel.policy import Facts, Verdict, Word
from toolgate.kernel.terms import ApprovalTerms
from toolgate.kernel.tool import Prepared
from toolgate.testing.patience import until

RAN: list[Any] = []
SCHEMA = {
    "type": "object",
    "properties": {"to": {"type": "string"}, "amount": {"type": "integer"}, "password": {"type": "string"}},
    "required": ["to"],
    "additionalProperties": False,
}


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


async def handler(given: ToolInput) -> ToolOutput:
    RAN.append(given.payload)
    return ToolOutput.ok()


def tool(**options: Any) -> ToolDefinition:
    return ToolDefinition("pay", SCHEMA, handler, risk_level="medium", **options)


def deny_eve(call: Call, _tool: ToolDefinition, _facts: Facts) -> Verdict | None:
    return Verdict(Word.DENY, "not to eve", "people") if b"eve" in call.arguments else None


deny_eve.name = "people"  # type: ignore[attr-defined]  # rules have names


async def test_the_edited_arguments_run_and_the_difference_is_kept(open_gate: Open) -> None:
    given: dict[str, object] = {"to": "bob", "amount": 900, "password": "correct-horse-9"}
    async with open_gate(tools=[tool()]) as gate:
        first = await park(gate, "pay", given)
        edited = {**first.arguments, "amount": 90}
        assert edited["password"] != "correct-horse-9"
        result = await gate.approvals.edit(first.id, edited, by="ann", reason="too much", digest=first.digest)
        assert result.approval_id != first.id
        assert (await gate.wait(first.call_id)).success
        assert RAN == [{"to": "bob", "amount": 90, "password": "correct-horse-9"}]
        second = await gate.approvals.get(str(result.approval_id))
        assert (second.status, second.edited_from, second.decided_by) == ("approved", first.id, "ann")
        assert second.difference == {"amount": {"before": 900, "after": 90}}
        assert (await gate.approvals.get(first.id)).status == "expired"
        told = names(await gate.events(call_id=first.call_id))
        assert told[1:5] == ["approval.requested", "approval.edited", "approval.requested", "approval.decided"]
        assert "correct-horse" not in str([event.data for event in await gate.events()])


@pytest.mark.parametrize("arguments", [{"to": 5}, {}, {"to": "x", "extra": 1}, "{", {"to": "bob", "password": "a***"}])
async def test_arguments_that_do_not_fit_leave_the_question_open(open_gate: Open, arguments: Any) -> None:
    async with open_gate(tools=[tool()]) as gate:
        approval = await park(gate, "pay", {"to": "bob"})
        with pytest.raises((ToolInputError, UsageError)):
            await gate.approvals.edit(approval.id, arguments, by="ann")
        assert (await gate.approvals.get(approval.id)).is_pending
        assert RAN == []


async def test_arguments_a_rule_denies_cannot_be_edited_in(open_gate: Open) -> None:
    async with open_gate(tools=[tool()], policy=Policy(rules=(deny_eve,), revision="eve")) as gate:  # type: ignore[arg-type]  # a function with a name is a rule
        approval = await park(gate, "pay", {"to": "bob"})
        with pytest.raises(ToolDeniedError, match="not to eve"):
            await gate.approvals.edit(approval.id, {"to": "eve"}, by="ann")
        assert (await gate.approvals.get(approval.id)).is_pending


async def test_an_edit_counts_as_one_vote_on_what_it_asks(open_gate: Open) -> None:
    policy = Policy(terms=ApprovalTerms(quorum=2), revision="two")
    async with open_gate(tools=[tool()], policy=policy) as gate:
        approval = await park(gate, "pay", {"to": "bob", "amount": 5})
        await gate.decide(approval.id, "approve", by="cid")
        result = await gate.approvals.edit(approval.id, {"to": "bob", "amount": 4}, by="ann")
        assert (result.status, RAN) == (Status.AWAITING_APPROVAL, [])
        with pytest.raises(DecisionConflictError):
            await gate.decide(approval.id, "approve", by="dia")
        await gate.decide(str(result.approval_id), "approve", by="bob")
        assert (await gate.wait(approval.call_id)).success
        assert RAN == [{"to": "bob", "amount": 4}]


async def test_an_edit_is_prepared_anew(open_gate: Open) -> None:
    async def prepare(given: ToolInput) -> Prepared:
        return Prepared(preview=f"to {given.payload['to']}", preconditions=given.payload["to"])

    async with open_gate(tools=[tool(prepare=prepare)]) as gate:
        approval = await park(gate, "pay", {"to": "bob"})
        result = await gate.approvals.edit(approval.id, {"to": "cid"}, by="ann")
        assert (await gate.approvals.get(str(result.approval_id))).preview == "to cid"
        assert (await gate.wait(approval.call_id)).success
        assert RAN == [{"to": "cid"}]


async def test_racing_edits_and_decisions_have_one_winner(open_gate: Open) -> None:
    async with open_gate(tools=[tool()]) as gate:
        approval = await park(gate, "pay", {"to": "bob", "amount": 0})
        tries = [
            gate.approvals.edit(approval.id, {"to": "bob", "amount": number}, by="ann")
            if number % 3
            else gate.decide(approval.id, "approve" if number % 2 else "deny", by="bob")
            for number in range(30)
        ]
        outcomes = await asyncio.gather(*tries, return_exceptions=True)
        assert sum(not isinstance(outcome, BaseException) for outcome in outcomes) == 1
        await gate.wait(approval.call_id)
        assert len(RAN) <= 1


async def test_an_undo_cannot_be_edited(open_gate: Open) -> None:
    undoable = ToolDefinition("put", {}, handler, undoable=True, undo_handler=lambda _undo: None)
    async with open_gate(tools=[undoable], policy=Policy(undo_asks=True, revision="asks")) as gate:
        done = await gate.call("put")
        undoing = asyncio.ensure_future(gate.undo(done.call_id))
        await until(gate.pending)
        (approval,) = await gate.pending()
        with pytest.raises(UsageError, match="undo"):
            await gate.approvals.edit(approval.id, {}, by="ann")
        await gate.decide(approval.id, "deny", by="ann")
        await undoing


async def test_a_process_without_the_tool_checks_the_schema_and_leaves_the_rest_to_its_holder(open_gate: Open) -> None:
    held = tool()
    async with open_gate(tools=[held]) as gate:
        approval = await park(gate, "pay", {"to": "bob"}, context=Context(principal="agent:x"))
        gate.registry.discard("pay")
        with pytest.raises(ToolInputError, match="schema"):
            await gate.approvals.edit(approval.id, {"to": 7}, by="ann")
        result = await gate.approvals.edit(approval.id, {"to": "cid"}, by="ann")
        assert result.status is Status.APPROVED
        fresh = await gate.approvals.get(str(result.approval_id))
        assert (fresh.message, fresh.input_schema) == (approval.message, approval.input_schema)
        gate.register(held)
        assert (await gate.wait(approval.call_id)).success
        assert RAN == [{"to": "cid"}]


async def test_an_edit_that_must_be_looked_at_is_asked_anew_and_not_answered(open_gate: Open) -> None:
    asked: list[str] = []
    async with open_gate(tools=[tool()], approver=lambda approval: asked.append(approval.id)) as gate:
        first = await park(gate, "pay", {"to": "bob", "amount": 900})
        with pytest.raises(UsageError, match="not approved yet"):
            await gate.approvals.edit(
                first.id, {"to": "bob", "amount": 90}, by="ann", look=lambda _new: True, remember=Remember()
            )
        result = await gate.approvals.edit(first.id, {"to": "bob", "amount": 90}, by="ann", look=lambda _new: True)
        assert result.status is Status.AWAITING_APPROVAL
        second = await gate.approvals.get(str(result.approval_id))
        assert (second.status, second.edited_from, second.votes) == ("pending", first.id, ())
        assert (await gate.approvals.get(first.id)).status == "expired"
        assert RAN == []
        with pytest.raises(DecisionConflictError):
            await gate.decide(first.id, "approve", by="ann")
        await gate.decide(second.id, "approve", by="ann")
        assert (await gate.wait(first.call_id)).success
        assert RAN == [{"to": "bob", "amount": 90}]
        await until(lambda: asked == [first.id, second.id])
