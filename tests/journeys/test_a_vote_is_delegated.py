"""A vote lent to another person counts as its giver's, while its giver has it, and never twice."""

from __future__ import annotations

import shutil
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.journeys.scene import Open, park

import toolgate
from toolgate import (
    ApprovalQuery,
    Context,
    DelegationQuery,
    Gate,
    Policy,
    Principal,
    Remember,
    ToolDefinition,
    ToolOutput,
)
from toolgate.errors import (
    ConflictError,
    DecisionConflictError,
    InvalidIdError,
    NotAllowedError,
    NotFoundError,
    UsageError,
)
from toolgate.kernel.approval import Approval
from toolgate.kernel.call import Status
from toolgate.kernel.change import Change
from toolgate.kernel.context import PrincipalKind
from toolgate.kernel.delegation import MAX_DELEGATION_S, MAX_DELEGATIONS, Delegation
from toolgate.kernel.record import evolve
from toolgate.kernel.terms import ApprovalTerms

HOUR = 3600.0
ANN = Principal(name="ann", roles=frozenset({"lead"}))
ROOT = Principal(name="root", kind=PrincipalKind.ADMIN)
LATER = datetime(2999, 1, 1, tzinfo=UTC)


async def handler(_given: Any) -> ToolOutput:
    return ToolOutput.ok()


def options(**terms: Any) -> dict[str, Any]:
    """A gate with one tool that leads approve."""
    asked = {"approvers": (frozenset({"lead"}),), **terms}
    policy = Policy(terms=ApprovalTerms(**asked), revision="leads")
    return {"tools": [ToolDefinition("pay", {}, handler, risk_level="medium")], "policy": policy}


def people(gate: Gate, **roles: str | None) -> dict[str, Principal | None]:
    """Say who may decide now, as a server's accounts do; what is returned can be changed."""
    known: dict[str, Principal | None] = {
        name: Principal(name=name, roles=frozenset((role or "").split())) for name, role in roles.items()
    }

    async def who_decides(_project: str, name: str) -> Principal | None:
        return known.get(name)

    gate.host.check_givers(who_decides)
    return known


async def lent(gate: Gate, giver: str = "ann", to: str = "bob", **more: Any) -> Delegation:
    return await gate.delegations.give(to, by=giver, **{"seconds": HOUR, **more})


async def vote(gate: Gate, approval: Approval, by: str = "bob", giver: Any = "ann", **more: Any) -> Status:
    who = by if giver is not None else Principal(name=by, roles=frozenset({"lead"}))
    return (await gate.decide(approval.id, "approve", by=who, on_behalf_of=giver, **more)).status


async def told(gate: Gate, name: str) -> dict[str, Any]:
    return [event.data for event in await gate.events() if event.type == name][-1]


async def test_a_delegated_vote_counts_with_the_givers_roles_and_is_recorded_as_theirs(open_gate: Open) -> None:
    async with open_gate(**options()) as gate:
        people(gate, ann="lead", bob=None)
        given = await lent(gate, reason="away")
        approval = await park(gate, "pay")
        with pytest.raises(NotAllowedError, match="it takes one of lead"):
            await gate.decide(approval.id, "approve", by="bob")
        assert await gate.approvals.votes_held(approval.id, by="bob") == ("ann",)
        await vote(gate, approval)
        done = await gate.wait(approval.call_id)
        decided = await gate.approvals.get(approval.id)
        event = await told(gate, "approval.decided")
    assert (done.status, done.approved_by) == (Status.COMPLETED, "bob for ann")
    assert (decided.decided_by, [(note.by, note.on_behalf_of) for note in decided.votes]) == (
        "bob for ann",
        [("bob", "ann")],
    )
    assert (event["decided_by"], event["votes"], event["on_behalf_of"]) == ("bob for ann", ["bob for ann"], "ann")
    assert (given.giver, given.delegate, given.reason) == ("ann", "bob", "away")


async def test_the_host_says_who_people_are_where_there_are_no_accounts(open_gate: Open) -> None:
    async with open_gate(**options()) as gate:
        await lent(gate)
        approval = await park(gate, "pay")
        assert await gate.approvals.votes_held(approval.id, by="bob") == ()
        with pytest.raises(NotAllowedError, match="ann may not decide this"):
            await vote(gate, approval)
        await vote(gate, approval, giver=ANN)
        assert (await gate.wait(approval.call_id)).approved_by == "bob for ann"


async def test_a_delegated_no_ends_it_and_says_whose_it_was(open_gate: Open) -> None:
    async with open_gate(**options()) as gate:
        people(gate, ann="lead", bob=None)
        await lent(gate)
        approval = await park(gate, "pay")
        await gate.decide(approval.id, "deny", by="bob", on_behalf_of="ann", reason="no")
        done = await gate.wait(approval.call_id)
        event = await told(gate, "approval.decided")
    assert (done.status, done.error) == (Status.REJECTED, "Approval was denied by bob for ann: no")
    assert (event["decided_by"], event["on_behalf_of"]) == ("bob for ann", "ann")


async def test_giving_and_ending_are_events_with_a_mark(open_gate: Open) -> None:
    async with open_gate(**options()) as gate:
        given = await lent(gate, tools=["pay"], reason="away")
        ended = await gate.delegations.end(given.id, by="ann", reason="back")
        first, last = await told(gate, "delegation.given"), await told(gate, "delegation.ended")
        events = await gate.events(call_id=given.id)
    assert (first["giver"], first["delegate"], first["tools"], first["reason"]) == ("ann", "bob", ["pay"], "away")
    assert (last["delegation_id"], last["ended_by"], last["reason"]) == (given.id, "ann", "back")
    assert (first["mark"], last["mark"]) == (given.mark, ended.mark)
    assert [event.type for event in events] == ["delegation.given", "delegation.ended"]


@pytest.mark.parametrize("lost", ["ann", "bob"])
async def test_it_ends_at_once_with_the_right_of_either(open_gate: Open, lost: str) -> None:
    async with open_gate(**options()) as gate:
        known = people(gate, ann="lead", bob=None)
        await lent(gate)
        approval = await park(gate, "pay")
        known[lost] = None
        with pytest.raises(NotAllowedError, match=f"{lost} may not decide in this project"):
            await vote(gate, approval)
        (found,) = await gate.delegations.list(DelegationQuery(delegate="bob"))
        assert found.invalid_because == f"{lost} may not decide in this project any more"
        assert await gate.approvals.votes_held(approval.id, by="bob") == ()


async def test_a_role_the_giver_lost_is_lost_to_the_delegate(open_gate: Open) -> None:
    async with open_gate(**options()) as gate:
        known = people(gate, ann="lead", bob=None)
        await lent(gate)
        approval = await park(gate, "pay")
        known["ann"] = Principal(name="ann")
        with pytest.raises(NotAllowedError, match="ann may not decide this; it takes one of lead"):
            await vote(gate, approval)


@pytest.mark.parametrize(
    ("giver", "delegate", "why"),
    [
        ("ann", "ann", "to themselves"),
        ("ann", "agent:bot", "only people give and hold votes"),
        ("ann", "runner:box", "only people give and hold votes"),
        ("agent:bot", "bob", "only people give and hold votes"),
        ("ann", "stranger", "stranger may not decide in this project"),
        ("stranger", "bob", "stranger may not decide in this project"),
    ],
)
async def test_only_people_who_may_decide_give_and_hold_votes(
    open_gate: Open, giver: str, delegate: str, why: str
) -> None:
    async with open_gate(**options()) as gate:
        people(gate, ann="lead", bob=None)
        with pytest.raises(NotAllowedError, match=why):
            await lent(gate, giver, delegate)
        assert await gate.delegations.list(DelegationQuery()) == []


async def test_a_vote_that_was_lent_cannot_be_lent_again(open_gate: Open) -> None:
    async with open_gate(**options()) as gate:
        people(gate, ann="lead", bob=None, cid=None)
        await lent(gate, "ann", "bob")
        await lent(gate, "bob", "cid")
        approval = await park(gate, "pay")
        for giver, why in (("ann", "there is no delegation from ann to cid"), ("bob", "bob may not decide this")):
            with pytest.raises(NotAllowedError, match=why):
                await vote(gate, approval, "cid", giver)


@pytest.mark.parametrize("seconds", [0, -1, MAX_DELEGATION_S + 1, float("inf"), float("nan")])
async def test_a_vote_is_lent_for_a_limited_time(open_gate: Open, seconds: float) -> None:
    async with open_gate(**options()) as gate:
        with pytest.raises(UsageError, match="14 days at most"):
            await lent(gate, seconds=seconds)


async def test_it_ends_with_its_time(open_gate: Open) -> None:
    async with open_gate(**options()) as gate:
        people(gate, ann="lead", bob=None)
        given = await lent(gate)
        approval = await park(gate, "pay")
        now = gate._driver.now
        gate._driver.now = lambda: now() + timedelta(seconds=HOUR)
        with pytest.raises(NotAllowedError, match="there is no delegation from ann to bob that is live"):
            await vote(gate, approval)
        assert not given.is_live(gate._driver.now())


async def test_it_is_for_the_tools_it_names_and_for_its_project(open_gate: Open) -> None:
    async with open_gate(**options()) as gate:
        people(gate, ann="lead", bob=None)
        await lent(gate, tools=["read", "write"])
        await lent(gate, project="other")
        approval = await park(gate, "pay")
        with pytest.raises(NotAllowedError, match="it is for read, write alone"):
            await vote(gate, approval)
        await lent(gate, tools=["pay"])
        await vote(gate, approval)
        assert (await gate.wait(approval.call_id)).success


async def test_what_it_names_must_be_names_and_there_is_a_limit(open_gate: Open) -> None:
    async with open_gate(**options()) as gate:
        for tools in ("pay", ["t"] * 101):
            with pytest.raises(UsageError, match="a list of at most 100 names"):
                await lent(gate, tools=tools)
        with pytest.raises(InvalidIdError):
            await lent(gate, tools=["a/b"])
        for _ in range(MAX_DELEGATIONS):
            await lent(gate)
        with pytest.raises(ConflictError, match="end one first"):
            await lent(gate)


@pytest.mark.parametrize("user", ["ann", "bob"])
async def test_neither_giver_nor_delegate_decides_what_is_asked_for_them(open_gate: Open, user: str) -> None:
    async with open_gate(**options()) as gate:
        people(gate, ann="lead", bob="lead")
        await lent(gate)
        approval = await park(gate, "pay", context=Context(user=user))
        with pytest.raises(NotAllowedError, match=f"{user} is who this call is for, and no delegated vote decides it"):
            await vote(gate, approval)


@pytest.mark.parametrize("asker", ["ann", "bob"])
async def test_who_asked_gets_round_nothing_by_a_delegation(open_gate: Open, asker: str) -> None:
    async with open_gate(**options()) as gate:
        people(gate, ann="lead", bob="lead")
        await lent(gate)
        approval = await park(gate, "pay", context=Context(principal=asker))
        with pytest.raises(NotAllowedError, match=f"{asker} asked for this call"):
            await vote(gate, approval)


async def test_one_person_fills_no_quorum_by_holding_two_votes(open_gate: Open) -> None:
    async with open_gate(**options(quorum=2)) as gate:
        people(gate, ann="lead", bob="lead", cid="lead")
        await lent(gate, "ann", "bob")
        await lent(gate, "cid", "bob")
        approval = await park(gate, "pay")
        assert await vote(gate, approval, "bob", "ann") is Status.AWAITING_APPROVAL
        event = await told(gate, "approval.voted")
        assert (event["voted_by"], event["on_behalf_of"]) == ("bob for ann", "ann")
        for by, giver in (("bob", "cid"), ("bob", None), ("ann", None)):
            with pytest.raises(DecisionConflictError, match="has the answer of bob for ann already"):
                await vote(gate, approval, by, giver)
        await vote(gate, approval, "cid", None)
        assert (await gate.wait(approval.call_id)).approved_by == "bob for ann, cid"


async def test_who_voted_for_themselves_does_not_vote_for_another(open_gate: Open) -> None:
    async with open_gate(**options(quorum=2)) as gate:
        people(gate, ann="lead", bob="lead")
        await lent(gate)
        approval = await park(gate, "pay")
        await vote(gate, approval, "bob", None)
        with pytest.raises(DecisionConflictError, match="has the answer of bob already"):
            await vote(gate, approval, "bob", "ann")


async def test_a_delegated_yes_is_not_remembered(open_gate: Open) -> None:
    async with open_gate(**options()) as gate:
        people(gate, ann="lead", bob=None)
        await lent(gate)
        approval = await park(gate, "pay")
        with pytest.raises(UsageError, match="is not remembered"):
            await vote(gate, approval, remember=Remember())
        assert (await gate.approvals.get(approval.id)).is_pending


async def test_a_delegation_is_ended_by_its_giver_or_an_admin_alone(open_gate: Open) -> None:
    async with open_gate(**options()) as gate:
        people(gate, ann="lead", bob=None)
        given, other = await lent(gate), await lent(gate)
        for by in ("bob", "eve", "agent:ann"):
            with pytest.raises(NotAllowedError, match="may not end this delegation; ann may, and admins"):
                await gate.delegations.end(given.id, by=by)
        assert (await gate.delegations.end(given.id, by="ann")).ended_by == "ann"
        assert (await gate.delegations.end(other.id, by=ROOT)).ended_by == "root"
        with pytest.raises(DecisionConflictError, match="was ended by ann already"):
            await gate.delegations.end(given.id, by="ann")
        with pytest.raises(NotFoundError):
            await gate.delegations.end("none", by="ann")
        with pytest.raises(NotAllowedError, match="there is no delegation"):
            await vote(gate, await park(gate, "pay"))


async def forge(gate: Gate, delegation: Delegation) -> None:
    """What somebody does who can write to the database, and has no key."""
    writing = gate._driver.store.commit(Change(project="default", at=delegation.created_at, delegation=delegation))
    if writing is not None:
        await writing


FORGERIES: dict[str, dict[str, Any]] = {
    "another giver": {"giver": "root"},
    "another delegate": {"delegate": "eve"},
    "later": {"expires_at": LATER},
    "more tools": {"tools": ()},
    "other words": {"reason": "x"},
    "no mark": {"mark": None},
    "a mark of an unknown key": {"mark": "0000:00"},
}


@pytest.mark.parametrize("forged", FORGERIES.values(), ids=FORGERIES)
async def test_a_row_that_nobody_gave_decides_nothing(open_gate: Open, forged: dict[str, Any]) -> None:
    async with open_gate(**options()) as gate:
        people(gate, ann="lead", bob=None, root="lead", eve=None)
        given = await lent(gate, tools=["pay"])
        fake = evolve(given, id="01890000-0000-7000-8000-000000000001", **forged)
        await gate.delegations.end(given.id, by="ann")
        await forge(gate, fake)
        approval = await park(gate, "pay")
        with pytest.raises(NotAllowedError, match="does not carry the mark of this gate"):
            await vote(gate, approval, fake.delegate, fake.giver)
        assert await gate.approvals.votes_held(approval.id, by=fake.delegate) == ()
        assert (await gate.delegations.end(fake.id, by=ROOT)).mark is None


async def test_a_row_put_back_after_it_was_ended_decides_nothing(tmp_path: Path, empty_database: Path) -> None:
    path = tmp_path / "replayed.db"
    shutil.copy(empty_database, path)
    shutil.copy(f"{empty_database}.key", f"{path}.key")
    async with toolgate.open(f"sqlite:///{path}", **options()) as gate:
        people(gate, ann="lead", bob=None)
        given = await lent(gate)
        with sqlite3.connect(path) as rows:
            (before,) = rows.execute("SELECT * FROM delegations").fetchall()
        await gate.delegations.end(given.id, by="ann")
        with sqlite3.connect(path) as rows:
            rows.execute(f"REPLACE INTO delegations VALUES ({','.join('?' * len(before))})", before)
        approval = await park(gate, "pay")
        with pytest.raises(NotAllowedError, match="its events tell that it was ended"):
            await vote(gate, approval)
        (found,) = await gate.delegations.list(DelegationQuery())
        assert (found.mark, found.is_valid) == (given.mark, False)


async def test_a_vote_made_out_to_another_in_the_database_does_not_count(open_gate: Open) -> None:
    async with open_gate(**options(quorum=2)) as gate:
        people(gate, ann="lead", bob="lead", cid="lead")
        approval = await park(gate, "pay")
        await vote(gate, approval, "bob", None)
        (kept,) = await gate.approvals.list(ApprovalQuery(id=approval.id))
        call = await gate._driver.store.call("default", kept.call_id)
        assert call is not None
        fake = evolve(kept, votes=(kept.votes[0]._replace(by="eve", on_behalf_of="bob"),))
        change = Change(project="default", at=kept.created_at, call=call.stay(), expect=call.version, approvals=(fake,))
        writing = gate._driver.store.commit(change)
        if writing is not None:
            await writing
        with pytest.raises(DecisionConflictError, match="does not carry the mark"):
            await vote(gate, approval, "cid", None)


async def test_a_lent_vote_has_the_roles_of_who_lent_it(open_gate: Open) -> None:
    async with open_gate(**options(approvers=(), quorum=1, including=(frozenset({"lead"}),))) as gate:
        people(gate, ann="lead", bob=None)
        approval = await park(gate, "pay", {})
        assert (await gate.decide(approval.id, "approve", by="bob")).status is Status.AWAITING_APPROVAL
        other = await park(gate, "pay", {}, call_id="other")
        await lent(gate)
        assert await vote(gate, other) is not Status.AWAITING_APPROVAL
        [kept] = await gate.approvals.list(ApprovalQuery(id=other.id))
        assert (kept.votes[0].who, kept.votes[0].roles) == ("bob for ann", ("lead",))


@pytest.mark.parametrize("lost", [None, Principal(name="ann")], ids=["the right", "the role"])
@pytest.mark.parametrize("giver", [None, "ann"], ids=["own", "delegated"])
async def test_a_vote_counts_no_longer_than_its_givers_right(
    open_gate: Open, lost: Principal | None, giver: str | None
) -> None:
    async with open_gate(**options(quorum=2)) as gate:
        known = people(gate, ann="lead", bob=None, cid="lead", dan="lead")
        await lent(gate)
        approval = await park(gate, "pay")
        await vote(gate, approval, by="ann" if giver is None else "bob", giver=giver)
        known["ann"] = lost
        assert await vote(gate, approval, by="cid", giver=None) is Status.AWAITING_APPROVAL
        await vote(gate, approval, by="dan", giver=None)
        assert (await gate.wait(approval.call_id)).status is Status.COMPLETED


async def test_a_delegated_vote_counts_no_longer_than_its_holders_right(open_gate: Open) -> None:
    async with open_gate(**options(quorum=2)) as gate:
        known = people(gate, ann="lead", bob=None, cid="lead")
        await lent(gate)
        approval = await park(gate, "pay")
        await vote(gate, approval)
        known["bob"] = None
        assert await vote(gate, approval, by="cid", giver=None) is Status.AWAITING_APPROVAL
        known["bob"] = Principal(name="bob")
        assert [event.data["votes"] for event in await gate.events() if event.type == "approval.voted"] == [1, 2]


async def test_a_role_that_must_be_among_the_voters_is_looked_for_anew(open_gate: Open) -> None:
    async with open_gate(**options(approvers=(), quorum=2, including=(frozenset({"lead"}),))) as gate:
        known = people(gate, ann="lead", cid="staff", dan="lead")
        approval = await park(gate, "pay")
        await vote(gate, approval, by="ann", giver=None)
        known["ann"] = Principal(name="ann")
        await gate.decide(approval.id, "approve", by="cid")
        assert (await gate.get(approval.call_id)).status is Status.AWAITING_APPROVAL
        await vote(gate, approval, by="dan", giver=None)
        assert (await gate.wait(approval.call_id)).status is Status.COMPLETED
