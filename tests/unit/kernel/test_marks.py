"""A mark holds for exactly the decision it was put on, under the key it was put with."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.unit.kernel.samples import NOW, an_approval

from toolgate.kernel.approval import Approval, ApprovalStatus, Note
from toolgate.kernel.marks import Marks
from toolgate.kernel.record import evolve
from toolgate.kernel.terms import ApprovalTerms
from toolgate.testing.conformance.store_delegations import a_delegation
from toolgate.testing.conformance.store_grants import a_grant


def decided() -> Approval:
    voted = an_approval(votes=(Note("ann", NOW), Note("bob", NOW)), terms=ApprovalTerms(quorum=2))
    return voted.close(ApprovalStatus.APPROVED, at=NOW, by="bob", reason="fine")


def test_a_mark_holds_for_what_it_was_put_on() -> None:
    marks = Marks.fresh()
    assert marks.hold(marks.put(decided()))
    assert not marks.hold(decided())


FORGED: dict[str, dict[str, Any]] = {
    "another approval": {"id": "a2"},
    "another verdict": {"status": ApprovalStatus.DENIED},
    "another project": {"project": "q"},
    "another call": {"call_id": "c2"},
    "other arguments": {"digest": "e"},
    "another approver": {"decided_by": "eve"},
    "another voter": {"votes": (Note("eve", NOW), Note("bob", NOW))},
    "a vote less": {"votes": (Note("bob", NOW),), "terms": ApprovalTerms(quorum=1)},
    "a lower quorum": {"terms": ApprovalTerms(quorum=1)},
    "the voters in another order": {"votes": (Note("bob", NOW), Note("ann", NOW))},
    "a later end": {"expires_at": NOW + timedelta(days=9)},
    "an earlier answer": {"decided_at": NOW - timedelta(days=9)},
    "no mark": {"mark": None},
    "a mark of nothing": {"mark": ""},
    "an unknown key": {"mark": "deadbeef:" + "0" * 64},
    "half a mark": {"mark": "process:"},
    "a mark no key makes": {"mark": "process:\u00e9"},
    "a number for a mark": {"mark": 1},
    "a list for a mark": {"mark": ["process:"]},
    "other roles": {"terms": ApprovalTerms(quorum=2, approvers=(frozenset({"intern"}),))},
    "another separation": {"terms": ApprovalTerms(quorum=2, separation=True)},
    "another level": {"level": "full"},
}


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
def test_a_mark_does_not_hold_for_anything_else(change: dict[str, Any]) -> None:
    marks = Marks.fresh()
    assert not marks.hold(evolve(marks.put(decided()), **change))


FORGED_GRANTS: dict[str, dict[str, Any]] = {
    "another grant": {"id": "g2"},
    "another project": {"project": "q"},
    "another tool": {"tool_name": "drop"},
    "another definition": {"definition_hash": "i"},
    "another requester": {"requester": "agent:eve"},
    "another user": {"user": "eve"},
    "a wider pattern": {"pattern": {"path": "any", "text": "any"}},
    "shown otherwise": {"shown": {}},
    "another salt": {"nonce": "m"},
    "another level": {"level": "full"},
    "other terms": {"terms": ApprovalTerms(approvers=(frozenset({"lead"}),))},
    "escalated": {"escalated": True},
    "another question": {"approval_id": "a2"},
    "another call": {"call_id": "c9"},
    "another giver": {"granted_by": "eve"},
    "another beginning": {"created_at": NOW - timedelta(days=9)},
    "a later end": {"expires_at": NOW + timedelta(days=9)},
    "more uses": {"max_uses": 4},
    "fewer used": {"used": ()},
    "not revoked": {"revoked_at": None},
    "revoked by another": {"revoked_by": "eve"},
    "another version": {"version": 1},
    "no mark": {"mark": None},
}


@pytest.mark.parametrize("change", FORGED_GRANTS.values(), ids=FORGED_GRANTS)
def test_the_mark_of_a_grant_does_not_hold_for_anything_else(change: dict[str, Any]) -> None:
    marks = Marks.fresh()
    grant = marks.put(a_grant().use("c1", NOW).revoke(by="ann", reason=None, now=NOW))
    assert marks.hold(grant)
    assert not marks.hold(evolve(grant, **change))


def test_using_and_revoking_a_grant_take_its_mark() -> None:
    grant = Marks.fresh().put(a_grant())
    assert grant.use("c1", NOW).mark is None
    assert grant.revoke(by="ann", reason=None, now=NOW).mark is None


FORGED_DELEGATIONS: dict[str, dict[str, Any]] = {
    "another id": {"id": "d2"},
    "another project": {"project": "q"},
    "another giver": {"giver": "eve"},
    "another delegate": {"delegate": "eve"},
    "another beginning": {"created_at": NOW - timedelta(days=9)},
    "a later end": {"expires_at": NOW + timedelta(days=9)},
    "other tools": {"tools": ()},
    "other words": {"reason": "none"},
    "not ended": {"ended_at": None},
    "ended by another": {"ended_by": "eve"},
    "another version": {"version": 1},
    "no mark": {"mark": None},
}


@pytest.mark.parametrize("change", FORGED_DELEGATIONS.values(), ids=FORGED_DELEGATIONS)
def test_the_mark_of_a_delegation_does_not_hold_for_anything_else(change: dict[str, Any]) -> None:
    marks = Marks.fresh()
    given = a_delegation(tools=("pay",), reason="away")
    ended = marks.put(given.end(by="ann", now=NOW))
    assert marks.hold(ended)
    assert not marks.hold(evolve(ended, **change))
    assert given.end(by="ann", now=NOW).mark is None


@pytest.mark.parametrize(("was", "becomes"), [(None, "ann"), ("ann", None), ("ann", "eve")])
def test_a_mark_says_whose_vote_it_was(was: str | None, becomes: str | None) -> None:
    marks = Marks.fresh()
    marked = marks.put(an_approval(votes=(Note("bob", NOW, None, was),)))
    assert marks.hold(marked)
    assert not marks.hold(evolve(marked, votes=(Note("bob", NOW, None, becomes),)))


def test_what_a_yes_does_not_stand_for_may_change() -> None:
    marks = Marks.fresh()
    marked = marks.put(decided())
    assert marks.hold(evolve(marked, comments=(Note("cid", NOW, "hm"),), reason="no words", warn_at=None))


def test_a_mark_of_another_key_does_not_hold() -> None:
    assert not Marks.fresh().hold(Marks.fresh().put(decided()))
