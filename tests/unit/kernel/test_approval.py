"""What an approval is bound to, and which answers it takes."""

from __future__ import annotations

import dataclasses
import hashlib
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.kernel.samples import NOW, a_call, an_approval

from toolgate.errors import DecisionConflictError, ToolInputError
from toolgate.kernel.approval import ApprovalStatus, digest_of
from toolgate.kernel.call import Call, Status
from toolgate.kernel.context import Context
from toolgate.kernel.record import evolve
from toolgate.kernel.text.canonical import canonical

LATER = NOW + timedelta(seconds=1)
ANSWERS = [ApprovalStatus.APPROVED, ApprovalStatus.DENIED]

# What the digest covers, each with another value than the sample's.
COVERED: dict[str, Any] = {
    "project": "q",
    "tool_name": "delete",
    "definition_hash": "other",
    "arguments": b'{"a":2}',
    "preconditions": b"null",
    "undo_of": "c0",
    "forced": True,
    "effect_key": "pay:p1",
    "repeat_of": "c0",
}
NOT_COVERED: dict[str, Any] = {
    "id": "c2",
    "created_at": LATER,
    "shown": {"a": "***"},
    "status": Status.APPROVED,
    "version": 7,
    "has_effects": False,
    "idempotent": True,
    "placement": "sandbox",
    "policy_revision": "r2",
    "reasons": ("because",),
    "facts": {"paths": []},
    "risk": "high",
    "timed_out": True,
    "confidence": 3,
    "factors": ("70: base",),
    "claim": "trust me",
    "level": "full",
    "approval_timeout_s": 5.0,
    "message": "Really?",
    "approval_id": "a9",
    "approved_by": "ann",
    "approved_at": LATER,
    "preview": "diff",
    "approved_for_s": 60.0,
    "first_asked": "h",
    "hides": True,
    "effect_per_s": 60.0,
    "effect_from": "c0",
    "held_key": "pay:p1",
    "ask_key": "*ask:1",
    "doubt_key": "*doubt:1",
    "doubt_seen": "c0",
    "is_named": True,
    "distinct": True,
    "repeat_seen": 3,
    "settled_by": "ann",
    "spent": (("budget:pay", 1, 0.0),),
    "owner": "boot",
    "attempt": 2,
    "fence": "f",
    "runner": "runner:r",
    "recalled": "not needed any more",
    "due_at": LATER,
    "started_at": LATER,
    "completed_at": LATER,
    "duration_ms": 1.0,
    "result": b"1",
    "shown_result": 1,
    "artifacts": (1,),
    "error": "no",
    "error_code": "x",
    "rule": "r",
    "reason": "why",
}
SAMPLE = a_call(arguments=b'{"a":1}', definition_hash="h", context=Context(principal="agent:a", user="ann"))


def test_every_field_of_a_call_is_known_to_be_covered_or_not() -> None:
    assert set(COVERED) | set(NOT_COVERED) | {"context"} == {field.name for field in dataclasses.fields(Call)}


@pytest.mark.parametrize("name", COVERED)
def test_the_digest_changes_with_what_it_covers(name: str) -> None:
    assert digest_of(evolve(SAMPLE, **{name: COVERED[name]}), nonce="n") != digest_of(SAMPLE, nonce="n")


@pytest.mark.parametrize("name", NOT_COVERED)
def test_the_digest_does_not_change_with_how_a_call_fares(name: str) -> None:
    assert digest_of(evolve(SAMPLE, **{name: NOT_COVERED[name]}), nonce="n") == digest_of(SAMPLE, nonce="n")


def test_the_digest_covers_who_asks_for_whom_and_the_nonce() -> None:
    others = [
        digest_of(SAMPLE, nonce="m"),
        digest_of(evolve(SAMPLE, context=evolve(SAMPLE.context, principal="agent:b")), nonce="n"),
        digest_of(evolve(SAMPLE, context=evolve(SAMPLE.context, user="bob")), nonce="n"),
        digest_of(evolve(SAMPLE, context=evolve(SAMPLE.context, user=None)), nonce="n"),
    ]
    assert len({digest_of(SAMPLE, nonce="n"), *others}) == 5


@given(
    st.fixed_dictionaries(
        {
            "run_id": st.none() | st.text(),
            "request_id": st.none() | st.text(),
            "session_id": st.none() | st.text(),
            "behavior": st.none() | st.text(),
            "roles": st.frozensets(st.text()),
            "host": st.integers(),
        }
    )
)
def test_the_digest_does_not_change_with_where_a_call_comes_from(fields: dict[str, Any]) -> None:
    assert digest_of(evolve(SAMPLE, context=evolve(SAMPLE.context, **fields)), nonce="n") == digest_of(
        SAMPLE, nonce="n"
    )


covered = st.fixed_dictionaries(
    {
        "project": st.sampled_from("pq"),
        "tool_name": st.sampled_from("pq"),
        "definition_hash": st.sampled_from("pq"),
        "arguments": st.sampled_from([b"{}", b'{"p":"q"}', b"null"]),
        "preconditions": st.sampled_from([None, b"{}", b"null"]),
        "undo_of": st.sampled_from([None, "p", "null"]),
    }
)


@given(covered, covered)
def test_two_calls_have_one_digest_exactly_when_everything_covered_is_equal(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    same = digest_of(a_call(**one), nonce="n") == digest_of(a_call(**other), nonce="n")
    assert same == (one == other)


def test_the_digest_is_stable_between_processes() -> None:
    assert digest_of(SAMPLE, nonce="n") == "8567a9cd375b1cca1507bbf20ac33bd84a4fff46eea55edd3ee521592a6ff356"


@pytest.mark.parametrize("status", ANSWERS)
def test_a_pending_approval_takes_an_answer(status: ApprovalStatus) -> None:
    closed = an_approval().close(status, at=LATER, by="ann", reason="fine")
    assert closed == an_approval(status=status, decided_by="ann", decided_at=LATER, reason="fine")
    assert not closed.is_pending


@pytest.mark.parametrize("first", [*ANSWERS, ApprovalStatus.EXPIRED])
@pytest.mark.parametrize("second", [*ANSWERS, ApprovalStatus.EXPIRED])
def test_the_first_answer_is_final(first: ApprovalStatus, second: ApprovalStatus) -> None:
    closed = an_approval().close(first, at=NOW, by="ann")
    with pytest.raises(DecisionConflictError, match=f"already {first} by ann; the first answer is final"):
        closed.close(second, at=NOW, by="bob")


def test_a_second_answer_after_nobody_decided_names_nobody() -> None:
    closed = an_approval().close(ApprovalStatus.EXPIRED, at=NOW)
    with pytest.raises(DecisionConflictError, match="already expired; the first"):
        closed.close(ApprovalStatus.APPROVED, at=NOW, by="bob")


@pytest.mark.parametrize("status", ANSWERS)
@pytest.mark.parametrize("late_s", [0, 1, 3600])
def test_an_answer_at_or_after_expiry_is_refused(status: ApprovalStatus, late_s: int) -> None:
    approval = an_approval()
    with pytest.raises(DecisionConflictError, match="expired at 2026-03-04T12:05:00"):
        approval.close(status, at=approval.expires_at + timedelta(seconds=late_s), by="ann")
    assert approval.is_pending


@pytest.mark.parametrize("at", [NOW, NOW + timedelta(seconds=300), NOW + timedelta(days=1)])
def test_expiry_can_be_recorded_at_any_time(at: datetime) -> None:
    closed = an_approval().close(ApprovalStatus.EXPIRED, at=at, reason="superseded")
    assert (closed.status, closed.decided_by, closed.reason) == (ApprovalStatus.EXPIRED, None, "superseded")


def test_the_last_moment_before_expiry_counts() -> None:
    approval = an_approval()
    last = approval.expires_at - timedelta(microseconds=1)
    assert approval.close(ApprovalStatus.APPROVED, at=last, by="ann").status is ApprovalStatus.APPROVED


def test_a_digest_of_what_is_no_text_is_refused_as_arguments_are() -> None:
    with pytest.raises(ToolInputError, match="surrogate"):
        digest_of(a_call(tool_name="\ud800"), nonce="n")


def test_a_digest_is_that_of_the_canonical_form() -> None:
    call = a_call(arguments='{"a":"ä\\n \u2028"}'.encode(), tool_name="wörk", context=Context(user="ann\x07"))
    content = {
        "arguments": call.arguments.decode(),
        "definition": call.definition_hash,
        "forced": False,
        "nonce": "n",
        "preconditions": None,
        "project": call.project,
        "requester": call.context.principal,
        "tool": call.tool_name,
        "undo_of": None,
        "user": call.context.user,
    }
    assert digest_of(call, nonce="n") == hashlib.sha256(canonical(content)).hexdigest()
