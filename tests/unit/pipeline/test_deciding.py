"""People's verbs when somebody else moves the row between reading and writing, and escalation by time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.pipeline.rig import Rig

from toolgate.errors import NotAllowedError, UsageError
from toolgate.kernel.approval import Approval
from toolgate.kernel.call import Status
from toolgate.kernel.change import Change
from toolgate.kernel.context import DEFAULT_CONTEXT, Principal
from toolgate.kernel.grant import Remember
from toolgate.kernel.output import ToolOutput
from toolgate.kernel.policy import Policy
from toolgate.kernel.record import evolve
from toolgate.kernel.terms import ApprovalTerms
from toolgate.kernel.tool import ToolDefinition
from toolgate.pipeline.people.deciding import Said
from toolgate.ports.store import ApprovalQuery, GrantQuery

ANN, BOB = Principal(name="ann"), Principal(name="bob")
TERMS = ApprovalTerms(approvers=(frozenset({"lead"}),), escalate_after_s=30.0, escalate_to=frozenset({"director"}))


async def nothing(_given: Any) -> ToolOutput:
    return ToolOutput.ok()


def asking() -> ToolDefinition:
    return ToolDefinition("ask", {}, nothing, requires_approval=True)


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    rig = Rig(asking())
    yield rig
    await rig.close()


async def parked(rig: Rig, **arguments: object) -> str:
    return str((await rig.pipeline.run("ask", arguments, DEFAULT_CONTEXT)).approval_id)


def once(rig: Rig, meanwhile: Any) -> None:
    async def before(_change: Change) -> None:
        rig.store.before = None
        await meanwhile()

    rig.store.before = before


def said(approval_id: str, by: Principal = ANN) -> Said:
    return Said(approval_id=approval_id, by=by)


async def test_every_verb_is_tried_again_when_the_row_changed_meanwhile() -> None:
    rig = Rig(asking(), policy=Policy(terms=ApprovalTerms(escalate_to=frozenset({"lead"})), revision="terms"))
    verbs: list[Any] = [
        lambda id: rig.deciding.respond(said(id), {"use": "another"}),
        lambda id: rig.deciding.edit(said(id), {"a": 2}),
        lambda id: rig.deciding.comment(said(id), text="hm"),
        lambda id: rig.deciding.escalate(said(id), roles=frozenset({"lead"})),
    ]
    for verb in verbs:
        approval_id = await parked(rig, a=1)
        once(rig, lambda id=approval_id: rig.extend(id, seconds=900, by=BOB))
        await verb(approval_id)
        (approval,) = await rig.store.approvals(ApprovalQuery(id=approval_id))
        assert approval.comments or approval.escalated or not approval.is_pending


async def test_a_grant_used_while_it_is_revoked_is_revoked_all_the_same(rig: Rig) -> None:
    await rig.decide(await parked(rig), approve_it=True, by=ANN, remember=Remember())
    (grant,) = await rig.store.grants(GrantQuery())
    once(rig, lambda: rig.pipeline.run("ask", {}, DEFAULT_CONTEXT))
    revoked = await rig.deciding.revoke(grant.id, by=BOB, reason=None, project=None)
    assert (len(revoked.used), revoked.revoked_by) == (1, "bob")


async def test_a_grant_revoked_right_before_the_claim_lets_nothing_run(rig: Rig) -> None:
    await rig.decide(await parked(rig), approve_it=True, by=ANN, remember=Remember())
    (grant,) = await rig.store.grants(GrantQuery())
    once(rig, lambda: rig.deciding.revoke(grant.id, by=BOB, reason=None, project=None))
    assert (await rig.pipeline.run("ask", {}, DEFAULT_CONTEXT)).status is Status.AWAITING_APPROVAL


async def test_time_escalates_then_warns_then_expires_and_the_channels_hear_of_it() -> None:
    rig = Rig(asking(), policy=Policy(terms=TERMS, revision="terms"))
    told: list[Approval] = []
    rig.driver.on_asked = told.append
    approval_id = await parked(rig)
    call_id = told[0].call_id
    rig.clock.advance(31)
    await rig.sweeper.sweep()
    assert [approval.escalated for approval in told] == [False, True]
    (approval,) = await rig.store.approvals(ApprovalQuery(id=approval_id))
    director = Principal(name="dia", roles=frozenset({"director"}))
    rig.clock.advance(220)
    await rig.sweeper.sweep()
    assert (await rig.decide(approval.id, approve_it=True, by=director)).status is Status.APPROVED
    assert await rig.names(call_id) == [
        "tool.invoked", "approval.requested", "approval.escalated", "approval.expiring", "approval.decided",
    ]  # fmt: skip
    await rig.close()


async def test_without_channels_time_escalates_all_the_same() -> None:
    rig = Rig(asking(), policy=Policy(terms=TERMS, revision="terms"))
    approval_id = await parked(rig)
    rig.clock.advance(31)
    await rig.sweeper.sweep()
    (approval,) = await rig.store.approvals(ApprovalQuery(id=approval_id))
    assert approval.escalated
    await rig.close()


async def test_time_escalates_no_question_that_nobody_asked_so() -> None:
    rig = Rig(asking(), policy=Policy(terms=TERMS, revision="terms"))
    approval_id = await parked(rig)
    (approval,) = await rig.store.approvals(ApprovalQuery(id=approval_id))
    call = await rig.driver.read(approval.project, approval.call_id)
    forged = evolve(approval, terms=replace(TERMS, escalate_to=frozenset({"intern"})))
    change = Change(
        project=call.project, at=call.created_at, call=call.stay(), expect=call.version, approvals=(forged,)
    )
    await rig.driver.commit(change)
    rig.clock.advance(31)
    await rig.sweeper.sweep()
    (kept,) = await rig.store.approvals(ApprovalQuery(id=approval_id))
    assert (kept.escalated, kept.escalate_at) == (False, None)
    await rig.close()


async def test_what_a_grant_would_have_covered_is_foreseen(rig: Rig) -> None:
    assert (await rig.deciding.foresee(said(await parked(rig, b=1)), Remember())).since is None
    for number in (1, 2, 3, 50):
        await rig.deciding.decide(said(await parked(rig, a=number)), approve_it=True)
    question = said(await parked(rig, a=4))
    narrow = await rig.deciding.foresee(question, Remember())
    assert (narrow.matched, narrow.looked_at, narrow.pattern) == (0, 5, {"a": {"is": 4}})
    wide = await rig.deciding.foresee(question, Remember(pattern={"a": {"at_most": 10}}))
    assert (wide.matched, wide.asked, len(wide.examples)) == (3, 3, 3)
    assert wide.since is not None
    assert await rig.store.grants(GrantQuery()) == []
    with pytest.raises(UsageError, match="does not fit"):
        await rig.deciding.foresee(question, Remember(pattern={"a": {"at_most": 1}}))
    with pytest.raises(NotAllowedError):
        await rig.deciding.foresee(said(question.approval_id, Principal.of("agent:x")), Remember())
