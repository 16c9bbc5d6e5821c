"""Terms of several layers become terms that satisfy all of them."""

from __future__ import annotations

import pytest

from toolgate.kernel.terms import (
    NO_TERMS,
    ApprovalLevel,
    ApprovalTerms,
    SandboxBackend,
    SandboxTerms,
)

LEADS = ApprovalTerms(approvers=(frozenset({"lead"}),), quorum=2, timeout_s=60.0)
SECURITY = ApprovalTerms(
    level=ApprovalLevel.FULL,
    approvers=(frozenset({"security", "admin"}),),
    separation=True,
    timeout_s=30.0,
    escalate_after_s=10.0,
    escalate_to=frozenset({"admin"}),
)


def test_both_layers_terms_must_be_met() -> None:
    both = LEADS.stricter(SECURITY)
    assert both == ApprovalTerms(
        level=ApprovalLevel.FULL,
        approvers=(frozenset({"lead"}), frozenset({"security", "admin"})),
        quorum=2,
        separation=True,
        timeout_s=30.0,
        escalate_after_s=10.0,
        escalate_to=frozenset({"admin"}),
        firm=(frozenset({"lead"}),),
    )
    assert SECURITY.stricter(NO_TERMS) == SECURITY
    assert NO_TERMS.stricter(SECURITY) == SECURITY
    assert SECURITY.stricter(SECURITY) == SECURITY


def test_the_earlier_escalation_counts() -> None:
    later = ApprovalTerms(escalate_after_s=20.0, escalate_to=frozenset({"owner"}))
    assert later.stricter(SECURITY).escalate_to == {"admin"}


@pytest.mark.parametrize(
    ("roles", "escalated", "accepted"),
    [
        ({"lead"}, False, False),
        ({"lead", "security"}, False, True),
        ({"admin"}, False, False),
        ({"admin"}, True, False),  # nobody who asks for leads said that an escalation opens it to others
        ({"admin", "lead"}, True, True),
        (set(), True, False),
    ],
)
def test_who_approves_holds_a_role_of_every_set(roles: set[str], escalated: bool, accepted: bool) -> None:
    assert LEADS.stricter(SECURITY).accepts(roles, escalated=escalated) is accepted


def test_anybody_may_approve_where_no_role_is_named() -> None:
    assert NO_TERMS.accepts(())


def test_an_answer_covers_terms_that_demand_no_more() -> None:
    assert LEADS.covers(NO_TERMS)
    assert LEADS.covers(LEADS)
    assert not LEADS.covers(SECURITY)
    assert not NO_TERMS.covers(LEADS)
    assert not ApprovalTerms(quorum=3).covers(ApprovalTerms(separation=True))


@pytest.mark.parametrize("terms", [NO_TERMS, LEADS, SECURITY])
def test_terms_survive_being_json(terms: ApprovalTerms) -> None:
    assert ApprovalTerms.of_json(terms.as_json()) == terms


def test_the_safer_sandbox_counts() -> None:
    loose = SandboxTerms(backend=SandboxBackend.NONE, network=True, memory_mb=500)
    tight = SandboxTerms(backend=SandboxBackend.BUBBLEWRAP, network=True, processes=3, memory_mb=900)
    assert loose.stricter(tight) == SandboxTerms(
        backend=SandboxBackend.BUBBLEWRAP, network=True, memory_mb=500, processes=3
    )
    assert loose.stricter(SandboxTerms()).network is False
