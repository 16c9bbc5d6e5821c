"""Rows are compared with what is left of their events, and with nothing that was removed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.unit.kernel.samples import NOW, a_call, an_approval

from toolgate.kernel.approval import Approval, ApprovalStatus, Note
from toolgate.kernel.call import Call, Status
from toolgate.kernel.comparing import History, compare_approval, compare_call, compare_delegation, compare_grant
from toolgate.kernel.event import seal
from toolgate.testing.conformance.store_delegations import a_delegation
from toolgate.testing.conformance.store_grants import a_grant

LATER = NOW + timedelta(seconds=1)


def history(*told: tuple[str, dict[str, Any]], is_cut: bool = False) -> History:
    events = [seal((name, "c1", data, None), "p", seq, LATER, b"") for seq, (name, data) in enumerate(told, 1)]
    return History(events, is_cut=is_cut)


def asked(approval: Approval) -> tuple[str, dict[str, Any]]:
    return "approval.requested", {
        "request_id": approval.id,
        "digest": approval.digest,
        "expires_at": approval.expires_at,
    }


STARTED = ("tool.started", {"approved_by": "ann", "approval_id": None})
BEGUN: dict[str, Any] = {"started_at": LATER, "approved_by": "ann"}


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (a_call(status=Status.PENDING, undo_of="c0"), history()),
        (a_call(status=Status.COMPLETED), history(is_cut=True)),
        (a_call(status=Status.EXECUTING, **BEGUN), history(STARTED)),
        (a_call(status=Status.APPROVED, approval_id="a1"), history(("approval.extended", {}), is_cut=True)),
        (a_call(status=Status.APPROVED), history(("tool.invoked", {}))),
        (
            a_call(status=Status.APPROVED, approval_id="a1"),
            history(("approval.decided", {"request_id": "a1", "decision": "approved"})),
        ),
        (a_call(status=Status.EXECUTING, started_at=NOW), history(("tool.dispatched", {}), STARTED, is_cut=True)),
        (
            a_call(status=Status.FAILED, completed_at=LATER, **BEGUN),
            history(STARTED, ("tool.failed", {}), ("tool.settled", {"outcome": "FAILED"})),
        ),
        (a_call(shown={"a": 1}), history(("tool.invoked", {"payload_summary": {"truncated": True}}))),
        (a_call(shown={"a": 1}), history(("tool.invoked", {"payload_summary": {"a": 1}}))),
    ],
)
def test_what_its_events_tell_is_no_difference(call: Call, told: History) -> None:
    found = list(compare_call(call, told))
    assert [what for what in found if not what.startswith(("started_at", "approved_by"))] == []


@pytest.mark.parametrize(
    ("call", "told", "what"),
    [
        (a_call(status=Status.COMPLETED, undo_of="c0"), history(), "no event tells of it"),
        (a_call(status=Status.PENDING, **BEGUN), history(STARTED), "its events say that it was started"),
        (
            a_call(status=Status.COMPLETED, completed_at=LATER),
            history(("tool.settled", {"outcome": "FAILED"})),
            "status is COMPLETED, its events say FAILED",
        ),
        (a_call(approval_id="a2", **BEGUN), history(STARTED), "approval_id is a2, its events say empty"),
    ],
)
def test_what_its_events_do_not_tell_is_a_difference(call: Call, told: History, what: str) -> None:
    assert any(what in found for found in compare_call(call, told))


def test_votes_are_those_the_events_tell_of() -> None:
    approval = an_approval(votes=(Note("ann", NOW),))
    voted = ("approval.voted", {"request_id": approval.id, "voted_by": "ann"})
    assert list(compare_approval(approval, history(asked(approval), voted))) == []
    assert list(compare_approval(approval, history(asked(approval)))) == ["votes is ann, its events say nobody"]
    assert list(compare_approval(approval, history(asked(approval), is_cut=True))) == []


def test_an_approval_whose_question_was_removed_is_compared_with_its_answer() -> None:
    approval = an_approval()
    decided = ("approval.decided", {"request_id": approval.id, "decision": "denied", "decided_by": "ann", "votes": []})
    assert list(compare_approval(approval, history(is_cut=True))) == []
    assert next(compare_approval(approval, history(decided, is_cut=True))) == (
        "status is pending, its events say denied"
    )
    assert list(compare_approval(approval, history())) == ["no event tells that it was asked"]


def test_an_approval_that_closed_without_an_answer_has_expired() -> None:
    closed = an_approval().close(ApprovalStatus.EXPIRED, at=LATER)
    told = history(asked(closed), ("approval.expired", {"request_id": closed.id}))
    assert list(compare_approval(closed, told)) == []


def test_a_grant_is_compared_with_how_it_was_given_and_taken_back() -> None:
    grant = a_grant()
    facts: dict[str, Any] = {"grant_id": grant.id, "granted_by": grant.granted_by, "approval_id": grant.approval_id}
    facts |= {"requester": grant.requester, "uses": grant.max_uses, "expires_at": grant.expires_at}
    given = ("grant.created", facts)
    taken = ("grant.revoked", {"grant_id": grant.id, "revoked_by": "ann"})
    revoked = grant.revoke(by="ann", reason=None, now=LATER)
    assert list(compare_grant(grant, history(given))) == []
    assert list(compare_grant(grant, history(is_cut=True))) == []
    assert list(compare_grant(revoked, history(given, taken))) == []
    assert next(compare_grant(grant, history(given, taken))) == "revoked_by is empty, its events say ann"
    assert "no event tells that it was revoked" in next(compare_grant(revoked, history(given)))


def test_a_delegation_whose_events_were_removed_is_compared_with_what_is_left() -> None:
    over = a_delegation().end(by="ann", now=LATER)
    assert [*compare_delegation(over, history(is_cut=True))] == []
    ended = history(("delegation.ended", {"ended_by": "eve"}), is_cut=True)
    assert [*compare_delegation(over, ended)] == ["ended_by is ann, its events say eve"]
    assert [*compare_delegation(a_delegation(), history())] == ["no event tells that it was given"]
