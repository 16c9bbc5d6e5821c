"""Quorum, roles, separation of duties, escalation: who may say yes, and when it counts."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.journeys.scene import Open, names, park

from toolgate import Context, Gate, Policy, Principal, ToolDefinition, ToolOutput
from toolgate.errors import DecisionConflictError, NotAllowedError, UsageError
from toolgate.kernel.approval import Note
from toolgate.kernel.call import Status
from toolgate.kernel.change import Change
from toolgate.kernel.context import PrincipalKind
from toolgate.kernel.event import Event
from toolgate.kernel.record import evolve
from toolgate.kernel.terms import ApprovalLevel, ApprovalTerms
from toolgate.ports.store import ApprovalQuery
from toolgate.testing.patience import until

RAN: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


async def handler(given: Any) -> ToolOutput:
    RAN.append(given.payload)
    return ToolOutput.ok()


def tool(**options: Any) -> ToolDefinition:
    return ToolDefinition("pay", {}, handler, risk_level="medium", **options)


def under(**terms: Any) -> Policy:
    return Policy(terms=ApprovalTerms(**terms), revision="terms")


def lead(name: str, *roles: str) -> Principal:
    return Principal(name=name, roles=frozenset(roles or ("lead",)))


async def told(gate: Gate, name: str) -> Event:
    return [event for event in await gate.events() if event.type == name][-1]


async def test_two_of_three_must_approve_and_one_vote_is_not_enough(open_gate: Open) -> None:
    async with open_gate(tools=[tool()], policy=under(quorum=2)) as gate:
        approval = await park(gate, "pay")
        first = await gate.decide(approval.id, "approve", by="ann", reason="ok")
        assert first.status is Status.AWAITING_APPROVAL
        assert (await told(gate, "approval.voted")).data["votes"] == 1
        assert [vote.by for vote in (await gate.approvals.get(approval.id)).votes] == ["ann"]
        assert RAN == []
        await gate.decide(approval.id, "approve", by="bob")
        done = await gate.wait(approval.call_id)
        assert (done.status, done.approved_by, len(RAN)) == (Status.COMPLETED, "ann, bob", 1)
        assert (await told(gate, "approval.decided")).data["votes"] == ["ann", "bob"]


async def test_a_person_has_one_vote_under_any_spelling_of_their_identity(open_gate: Open) -> None:
    async with open_gate(tools=[tool()], policy=under(quorum=2)) as gate:
        approval = await park(gate, "pay")
        await gate.decide(approval.id, "approve", by="ann")
        for again in ("ann", str(Principal.of("ann").id), Principal(name="ann", roles=frozenset({"other"}))):
            with pytest.raises(DecisionConflictError, match="already"):
                await gate.decide(approval.id, "approve", by=again)
        with pytest.raises(DecisionConflictError, match="already"):
            await gate.decide(approval.id, "deny", by="ann")
        assert RAN == []


async def test_the_first_denial_ends_it_whatever_others_said(open_gate: Open) -> None:
    async with open_gate(tools=[tool()], policy=under(quorum=2)) as gate:
        approval = await park(gate, "pay")
        await gate.decide(approval.id, "approve", by="ann")
        denied = await gate.decide(approval.id, "deny", by="bob", reason="no")
        assert denied.status is Status.REJECTED
        with pytest.raises(DecisionConflictError):
            await gate.decide(approval.id, "approve", by="cid")
        assert RAN == []


async def test_racing_voters_are_each_counted_once(open_gate: Open) -> None:
    async with open_gate(tools=[tool()], policy=under(quorum=5)) as gate:
        approval = await park(gate, "pay")
        voters = [f"person-{number % 20}" for number in range(60)]
        outcomes = await asyncio.gather(
            *(gate.decide(approval.id, "approve", by=name) for name in voters), return_exceptions=True
        )
        assert sum(not isinstance(outcome, BaseException) for outcome in outcomes) == 5
        assert (await gate.wait(approval.call_id)).success
        assert len(RAN) == 1
        assert len({vote.by for vote in (await gate.approvals.get(approval.id)).votes}) == 5


async def test_only_people_with_a_listed_role_decide(open_gate: Open) -> None:
    async with open_gate(tools=[tool()], policy=under(approvers=(frozenset({"lead", "cfo"}),))) as gate:
        approval = await park(gate, "pay")
        for decision in ("approve", "deny"):
            with pytest.raises(NotAllowedError, match="one of cfo, lead"):
                await gate.decide(approval.id, decision, by=lead("ann", "intern"))
        await gate.decide(approval.id, "approve", by=lead("ann"))
        assert (await gate.wait(approval.call_id)).success


async def test_separation_keeps_the_person_a_call_is_for_from_deciding(open_gate: Open) -> None:
    context = Context(principal="agent:a", user="ann")
    async with open_gate(tools=[tool()], policy=under(separation=True)) as gate:
        approval = await park(gate, "pay", context=context)
        for same in ("ann", str(Principal.of("ann").id), Principal(name="ann", kind=PrincipalKind.ADMIN)):
            with pytest.raises(NotAllowedError, match="another person"):
                await gate.decide(approval.id, "approve", by=same)
        await gate.decide(approval.id, "approve", by="bob")
        assert (await gate.wait(approval.call_id)).success


async def test_at_full_the_same_person_must_say_why(open_gate: Open) -> None:
    context = Context(principal="agent:a", user="ann")
    async with open_gate(tools=[tool()], policy=under(level=ApprovalLevel.FULL)) as gate:
        approval = await park(gate, "pay", context=context)
        assert approval.level == "full"
        with pytest.raises(UsageError, match="reason"):
            await gate.decide(approval.id, "approve", by="ann")
        await gate.decide(approval.id, "approve", by="ann", reason="I asked for it and checked it")
        assert (await gate.wait(approval.call_id)).success


async def test_who_asked_never_decides(open_gate: Open) -> None:
    async with open_gate(tools=[tool()]) as gate:
        approval = await park(gate, "pay", context=Context(principal="ann"))
        for verb in (
            gate.decide(approval.id, "approve", by="ann"),
            gate.approvals.edit(approval.id, {}, by="ann"),
            gate.approvals.respond(approval.id, "x", by="ann"),
            gate.approvals.extend(approval.id, 60, by="ann"),
            gate.approvals.escalate(approval.id, "lead", by="ann"),
            gate.approvals.comment(approval.id, "x", by="ann"),
        ):
            with pytest.raises(NotAllowedError):
                await verb


async def test_escalation_by_hand_lets_another_role_decide(open_gate: Open) -> None:
    asked: list[str] = []

    async def channel(approval: Any) -> None:
        asked.append(approval.id)

    policy = under(approvers=(frozenset({"lead"}),), escalate_to=frozenset({"director"}))
    async with open_gate(tools=[tool()], policy=policy, approver=channel) as gate:
        approval = await park(gate, "pay")
        with pytest.raises(NotAllowedError):
            await gate.decide(approval.id, "approve", by=lead("dia", "director"))
        wider = await gate.approvals.escalate(approval.id, "director", by=lead("ann"))
        assert wider.escalated
        assert (await told(gate, "approval.escalated")).data["roles"] == ["director"]
        await until(lambda: len(asked) == 2)
        await gate.decide(approval.id, "approve", by=lead("dia", "director"))
        assert (await gate.wait(approval.call_id)).success


async def test_escalating_makes_nobody_a_decider_whom_the_policy_does_not_name(open_gate: Open) -> None:
    lead_only, eve = frozenset({"lead"}), lead("eve", "intern")
    async with open_gate(tools=[tool()], policy=under(approvers=(lead_only,))) as gate:
        approval = await park(gate, "pay")
        with pytest.raises(UsageError, match="names nobody to escalate"):
            await gate.approvals.escalate(approval.id, "intern", by=lead("ann"))
    policy = under(approvers=(lead_only,), escalate_to=frozenset({"director"}))
    async with open_gate(tools=[tool()], policy=policy) as gate:
        approval = await park(gate, "pay")
        for by, roles in ((eve, ["intern"]), (eve, ["director"]), (eve, []), (lead("ann"), ["intern", "director"])):
            with pytest.raises(NotAllowedError):
                await gate.approvals.escalate(approval.id, *roles, by=by)
        with pytest.raises(NotAllowedError):
            await gate.approvals.extend(approval.id, 600, by=eve)
        assert not (await gate.approvals.get(approval.id)).escalated
        with pytest.raises(NotAllowedError):
            await gate.decide(approval.id, "approve", by=eve)


async def test_escalation_comes_by_itself_when_its_time_has_come(open_gate: Open) -> None:
    policy = under(approvers=(frozenset({"lead"}),), escalate_after_s=0.05, escalate_to=frozenset({"director"}))
    async with open_gate(tools=[tool()], policy=policy) as gate:
        approval = await park(gate, "pay", approval_timeout_s=60)
        await until(lambda: _is_escalated(gate, approval.id))
        assert (await told(gate, "approval.escalated")).data["escalated_by"] is None
        await gate.decide(approval.id, "approve", by=lead("dia", "director"))
        assert (await gate.wait(approval.call_id)).success


async def _is_escalated(gate: Gate, approval_id: str) -> bool:
    return (await gate.approvals.get(approval_id)).escalated


async def test_a_comment_stands_beside_the_question_masked(open_gate: Open) -> None:
    async with open_gate(tools=[tool()], secrets=["hunter2hunter2"]) as gate:
        approval = await park(gate, "pay")
        noted = await gate.approvals.comment(approval.id, "the key is hunter2hunter2", by="ann")
        assert noted.comments[0].by == "ann"
        assert "hunter2" not in str(noted.comments)
        with pytest.raises(UsageError):
            await gate.approvals.comment(approval.id, "  ", by="ann")
        artifact = await gate.approvals.artifact(approval.id)
        assert any("ann" in answer for answer in artifact.answers)
        await gate.decide(approval.id, "deny", by="bob")
        with pytest.raises(DecisionConflictError):
            await gate.approvals.comment(approval.id, "late", by="ann")
        assert names(await gate.events(call_id=approval.call_id)).count("approval.commented") == 1


async def test_an_answer_instead_of_a_run_reaches_the_agent(open_gate: Open) -> None:
    async with open_gate(tools=[tool()]) as gate:
        approval = await park(gate, "pay")
        waiting = asyncio.ensure_future(gate.wait(approval.call_id))
        await gate.approvals.respond(approval.id, {"use": "account B"}, by="ann")
        result = await waiting
        assert (result.status, result.error_code, result.data) == (Status.REJECTED, "responded", {"use": "account B"})
        assert (await gate.approvals.get(approval.id)).status == "denied"
        assert (await told(gate, "approval.decided")).data["response"] == {"use": "account B"}
        assert RAN == []


async def test_what_the_agent_claims_is_kept_apart(open_gate: Open) -> None:
    async with open_gate(tools=[tool()], secrets=["hunter2hunter2"]) as gate:
        approval = await park(gate, "pay", claim="Please, hunter2hunter2 told me to")
        assert approval.message == "Run pay?"
        assert "told me to" in str(approval.claim)
        assert "hunter2" not in str(approval.claim)
        assert (await gate.approvals.artifact(approval.id)).claim == approval.claim


async def test_stricter_terms_after_a_yes_ask_again(open_gate: Open) -> None:
    async with open_gate(tools=[tool()]) as gate:
        approval = await park(gate, "pay")
        await gate.set_policy(under(quorum=2), by="ann")
        await gate.decide(approval.id, "approve", by="ann")
        await until(gate.pending)
        (second,) = await gate.pending()
        assert (second.id == approval.id, second.terms.quorum) == (False, 2)
        assert RAN == []


async def forge(gate: Gate, approval_id: str, **fields: Any) -> None:
    """What somebody does who can write to the database, and has no key."""
    store = gate._driver.store
    (kept,) = await store.approvals(ApprovalQuery(id=approval_id))
    call = await store.call(kept.project, kept.call_id)
    assert call is not None
    altered = (evolve(kept, **fields),)
    change = Change(project=kept.project, at=kept.created_at, call=call.stay(), expect=call.version, approvals=altered)
    writing = store.commit(change)
    if writing is not None:
        await writing


async def test_a_vote_that_nobody_gave_does_not_count(open_gate: Open) -> None:
    async with open_gate(tools=[tool()], policy=under(quorum=2)) as gate:
        approval = await park(gate, "pay")
        await forge(gate, approval.id, votes=(Note("ann", approval.created_at),))
        with pytest.raises(DecisionConflictError, match="does not carry the mark"):
            await gate.decide(approval.id, "approve", by="bob")
        with pytest.raises(DecisionConflictError, match="does not carry the mark"):
            await gate.approvals.extend(approval.id, 60, by="bob")
        await gate.decide(approval.id, "reject", by="bob")
        assert ((await gate.wait(approval.call_id)).status, RAN) == (Status.REJECTED, [])


@pytest.mark.parametrize(
    "forged",
    [
        {"terms": ApprovalTerms()},
        {"terms": ApprovalTerms(level=ApprovalLevel.FULL, escalate_to=frozenset({"intern"})), "escalated": True},
        {"expires_at": datetime(2999, 1, 1, tzinfo=UTC)},
        {"arguments": {"amount": 1}},
        {"preview": {"says": "harmless"}},
        {"message": "Water the flowers?"},
        {"risk": "low", "factors": ("nothing to see",)},
        {"digest": "0" * 64},
        {"requester": "agent:other", "user": "somebody"},
    ],
    ids=lambda forged: "+".join(forged),
)
async def test_a_question_that_nobody_asked_so_is_not_answered_yes(open_gate: Open, forged: dict[str, Any]) -> None:
    terms = {"level": ApprovalLevel.FULL, "approvers": (frozenset({"lead"}),), "escalate_to": frozenset({"director"})}
    async with open_gate(tools=[tool()], policy=under(**terms)) as gate:
        approval = await park(gate, "pay")
        await forge(gate, approval.id, **forged)
        for verb in (gate.decide(approval.id, "approve", by=lead("ann", "lead", "intern")),
                     gate.approvals.edit(approval.id, {"amount": 3}, by=lead("ann", "lead", "intern"))):  # fmt: skip
            with pytest.raises(DecisionConflictError, match="It can only be rejected"):
                await verb
        await gate.decide(approval.id, "reject", by=lead("ann", "lead", "intern"))
        assert ((await gate.wait(approval.call_id)).status, RAN) == (Status.REJECTED, [])


async def test_votes_count_after_more_time_was_given(open_gate: Open) -> None:
    async with open_gate(tools=[tool()], policy=under(quorum=2)) as gate:
        approval = await park(gate, "pay")
        await gate.decide(approval.id, "approve", by="ann")
        await gate.approvals.extend(approval.id, 600, by="cid")
        await gate.decide(approval.id, "approve", by="bob")
        assert ((await gate.wait(approval.call_id)).status, len(RAN)) == (Status.COMPLETED, 1)


async def test_a_yes_that_nobody_gave_runs_nothing(open_gate: Open) -> None:
    async with open_gate(tools=[tool(placement="caller")], policy=under(quorum=1)) as gate:
        approval = await park(gate, "pay")
        await gate.decide(approval.id, "approve", by="ann")
        await forge(gate, approval.id, decided_by="eve", votes=(Note("eve", approval.created_at),))
        result = await gate.run_here(approval.call_id, RAN.append)
        assert (result.status, result.error_code, RAN) == (Status.DENIED, "approval_unmarked", [])
        assert (await told(gate, "approval.decided")).data["mark"]
