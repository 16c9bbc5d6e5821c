"""A remembered yes covers exactly what it says."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from toolgate.errors import DecisionConflictError, UsageError
from toolgate.kernel.context import Context
from toolgate.kernel.grant import MAX_USES, Grant, Remember, make_pattern
from toolgate.kernel.record import evolve
from toolgate.kernel.terms import NO_TERMS, ApprovalLevel, ApprovalTerms
from toolgate.testing.clock import NOON
from toolgate.testing.conformance.rows import a_call
from toolgate.testing.conformance.store_grants import a_grant

ARGUMENTS: dict[str, Any] = {"path": "notes/a.md", "size": 10, "mode": "w"}
CALL = a_call(definition_hash="h")
QUICK = ApprovalLevel.QUICK


def grant_for(pattern: dict[str, Any] | None, **fields: Any) -> Grant:
    kept, shown = make_pattern(ARGUMENTS, ARGUMENTS, pattern, nonce="n")
    return a_grant(pattern=kept, shown=shown, **fields)


def covers(grant: Grant, arguments: dict[str, Any]) -> bool:
    return grant.covers(CALL, arguments, QUICK, NO_TERMS)


def test_the_narrowest_pattern_is_the_very_same_arguments() -> None:
    grant = grant_for(None)
    assert covers(grant, dict(ARGUMENTS))
    for changed in ({"size": 11}, {"path": "notes/b.md"}, {"more": 1}):
        assert not covers(grant, {**ARGUMENTS, **changed})
    assert not covers(grant, {"path": "notes/a.md"})


def test_what_must_be_answered_in_person_is_covered_by_no_grant() -> None:
    in_person = ApprovalTerms(in_person=True)
    remembered = grant_for(None, terms=in_person)
    assert covers(remembered, dict(ARGUMENTS))
    assert not remembered.covers(CALL, dict(ARGUMENTS), QUICK, in_person)


def test_exact_values_are_kept_as_digests_only() -> None:
    kept, shown = make_pattern({"key": "hunter2"}, {"key": "***"}, None, nonce="n")
    assert "hunter2" not in str(kept) + str(shown)
    assert make_pattern({"key": "hunter2"}, {"key": "***"}, None, nonce="m")[0] != kept


@pytest.mark.parametrize(
    ("pattern", "arguments", "fits"),
    [
        ({"path": {"like": "notes/*.md"}}, {"path": "notes/b.md"}, True),
        ({"path": {"like": "notes/*.md"}}, {"path": "notes/sub/b.md"}, False),
        ({"path": {"like": "notes/*"}}, {"path": "notes/.."}, False),
        ({"path": {"like": "*/*"}}, {"path": "../x"}, False),
        ({"path": {"like": "notes/*.md"}}, {"path": 7}, False),
        ({"size": {"at_most": 100}}, {"size": 100}, True),
        ({"size": {"at_most": 100}}, {"size": 101}, False),
        ({"size": {"at_most": 100}}, {"size": "1"}, False),
        ({"size": {"at_most": 100}}, {"size": True}, False),
        ({"size": {"at_most": 100}}, {"size": 0}, True),
        ({"size": {"at_most": 100}}, {"size": -1}, False),
        ({"size": {"at_most": 100}}, {"size": -0.5}, False),
        ({"size": {"at_least": 10, "at_most": 100}}, {"size": 10}, True),
        ({"size": {"at_least": 10, "at_most": 100}}, {"size": 9.5}, False),
        ({"size": {"at_least": -5, "at_most": 100}}, {"size": -5}, True),
        ({"size": {"at_least": -5, "at_most": 100}}, {"size": -6}, False),
        ({"size": {"at_most": 2**63}}, {"size": 10**400}, False),
        ({"mode": "any"}, {"mode": ["x"]}, True),
        ({"mode": {"is": "w"}}, {"mode": "w"}, True),
        ({"mode": {"is": "w"}}, {"mode": "a"}, False),
    ],
)
def test_a_wider_pattern_covers_what_it_says(pattern: dict[str, Any], arguments: dict[str, Any], fits: bool) -> None:
    assert covers(grant_for(pattern), {**ARGUMENTS, **arguments}) is fits


def test_an_argument_that_may_be_anything_may_be_missing() -> None:
    assert covers(grant_for({"mode": "any"}), {"path": "notes/a.md", "size": 10})
    assert not covers(grant_for({"size": {"at_most": 20}}), {"path": "notes/a.md", "mode": "w"})


@pytest.mark.parametrize(
    "pattern",
    [{"path": 7}, {"path": {"matches": "x"}}, {"path": {}}, {"path": {"like": 3}}, {"path": {"like": ""}},
     {"size": {"at_most": "x"}}, {"size": {"at_most": True}}, {"path": {"is": 1, "like": "x"}},
     {"size": {"at_least": False, "at_most": 20}}, {"size": {"at_least": None, "at_most": 20}},
     {"size": {"at_most": float("inf")}}, {"size": {"at_most": float("nan")}}, {"size": {"at_most": 10**400}},
     {"size": {"is": 10, "at_most": 20}}],
)  # fmt: skip
def test_a_pattern_that_is_not_understood_is_refused(pattern: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="pattern"):
        grant_for(pattern)


def test_a_lower_end_alone_is_refused() -> None:
    with pytest.raises(UsageError, match="no upper end; write `at_most` beside"):
        grant_for({"size": {"at_least": 0}})


@pytest.mark.parametrize(
    ("value", "wanted", "shown"),
    [
        (10, {"at_most": 100}, {"at_least": 0, "at_most": 100}),
        (-7.5, {"at_most": 100}, {"at_least": -7.5, "at_most": 100}),
        (-7, {"at_most": -5}, {"at_least": -7, "at_most": -5}),
        (10, {"at_most": 100, "at_least": 1}, {"at_least": 1, "at_most": 100}),
    ],
)
def test_people_are_shown_both_ends_of_a_bound(value: float, wanted: dict[str, Any], shown: dict[str, Any]) -> None:
    kept, told = make_pattern({"size": value}, {"size": value}, {"size": wanted}, nonce="n")
    assert (kept["size"], told["size"]) == (shown, shown)


@pytest.mark.parametrize(
    "pattern",
    [{"path": {"like": "other/*"}}, {"size": {"at_most": 5}}, {"new": {"is": 1}}, {"path": {"at_most": 5}},
     {"size": {"at_least": 11, "at_most": 20}}, {"size": {"at_least": 20, "at_most": 5}}, {"new": {"at_most": 5}}],
)  # fmt: skip
def test_a_pattern_must_fit_what_is_approved(pattern: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="does not fit"):
        grant_for(pattern)


@pytest.mark.parametrize(
    "other",
    [
        {"project": "other"}, {"tool_name": "delete"}, {"definition_hash": "i"},
        {"context": Context(principal="agent:b")}, {"context": Context(user="ann")},
    ],
)  # fmt: skip
def test_a_grant_is_for_one_tool_as_defined_and_one_requester(other: dict[str, Any]) -> None:
    assert not grant_for(None).covers(evolve(CALL, **other), ARGUMENTS, QUICK, NO_TERMS)


def test_a_grant_is_no_stronger_than_the_answer_it_remembers() -> None:
    grant = grant_for(None)
    assert not grant.covers(CALL, ARGUMENTS, ApprovalLevel.FULL, NO_TERMS)
    assert not grant.covers(CALL, ARGUMENTS, QUICK, ApprovalTerms(quorum=2))
    full = grant_for(None, level="full", terms=ApprovalTerms(separation=True))
    assert full.covers(CALL, ARGUMENTS, ApprovalLevel.FULL, ApprovalTerms(separation=True))


def test_a_grant_ends_with_its_time_its_uses_or_its_revocation() -> None:
    grant = a_grant(max_uses=2)
    assert grant.is_live(NOON)
    assert not grant.is_live(NOON + timedelta(hours=1))
    assert not grant.use("c1", NOON).use("c2", NOON).is_live(NOON)
    revoked = grant.revoke(by="ann", reason="why", now=NOON)
    assert not revoked.is_live(NOON)
    with pytest.raises(DecisionConflictError):
        revoked.revoke(by="bob", reason=None, now=NOON)
    assert (grant.name, grant.uses_left) == ("grant:g1", 2)


@pytest.mark.parametrize(("uses", "seconds"), [(0, 1.0), (MAX_USES + 1, 1.0), (1, 0.0), (1, float("inf"))])
def test_a_yes_is_remembered_within_bounds(uses: int, seconds: float) -> None:
    with pytest.raises(UsageError):
        Remember(uses=uses, seconds=seconds)
    assert Remember(seconds=60).duration == timedelta(minutes=1)
