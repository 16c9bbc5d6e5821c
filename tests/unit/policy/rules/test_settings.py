"""What a policy settles besides yes and no: approval, confidence, undo, placement, sandbox; strictest wins."""

from __future__ import annotations

import pytest
from tests.unit.kernel.samples import a_tool
from tests.unit.policy.asking import ask, policy, problems, word

from toolgate.kernel.policy import Stance
from toolgate.kernel.terms import ApprovalLevel, ApprovalTerms, SandboxBackend, SandboxTerms
from toolgate.kernel.tool import Placement, Thresholds


def stance(text: str) -> Stance:
    return policy(text).stance(a_tool("act", category="all"))


def test_a_level_asks_and_the_other_terms_ride_along() -> None:
    text = """
        tools:
          act:
            approval: {level: full, approvers: [lead, admin], quorum: 2, separation: true, timeout: 10m,
                       escalate: {after: 5m, to: [owner]}}
    """
    ruling = ask(text)
    assert ruling.assessment is not None
    assert ruling.assessment.level is ApprovalLevel.FULL
    assert ruling.assessment.terms == ApprovalTerms(
        level=ApprovalLevel.FULL,
        approvers=(frozenset({"lead", "admin"}),),
        quorum=2,
        separation=True,
        timeout_s=600.0,
        escalate_after_s=300.0,
        escalate_to=frozenset({"owner"}),
    )


def test_terms_without_a_level_ask_nothing() -> None:
    assert word("tools: {act: {approval: {quorum: 2}}}") == "allow"


def test_an_escalation_comes_before_the_end() -> None:
    text = "tools: {act: {approval: {timeout: 60, escalate: {after: 1m, to: [a]}}}}"
    assert "must come before" in problems(text)[0]


@pytest.mark.parametrize(("roles", "expected"), [((), "ask"), (("trusted",), "allow"), (("suspect",), "ask")])
def test_confidence_is_scored_by_tool_and_role(roles: tuple[str, ...], expected: str) -> None:
    text = """
        scoring: {default: 50, tools: {act: 70}, roles: {trusted: 20, suspect: -60}}
        tools: {act: {confidence: {auto: 85, quick: 60}}}
    """
    assert word(text, roles=frozenset(roles)) == expected


def test_without_scoring_a_tool_begins_at_seventy() -> None:
    ruling = ask("tools: {act: {confidence: {}}}")
    assert ruling.assessment is not None
    assert (ruling.assessment.confidence, ruling.assessment.level) == (70, ApprovalLevel.QUICK)


def test_thresholds_are_ordered() -> None:
    assert "must not be above" in problems("tools: {act: {confidence: {auto: 10}}}")[0]


def test_the_strictest_of_several_entries_counts() -> None:
    found = stance(
        """
        tools:
          act:
            undo: {ttl: 2h, unchecked: deny}
            placement: worker
            sandbox: {memory_mb: 100, network: true}
            confidence: {auto: 90, quick: 10}
            approval: {timeout: 60}
            rates: [{limit: 10, window: 1h}]
        categories:
          all:
            undo: {ttl: 1h, ask: true, unchecked: allow}
            placement: sandbox
            sandbox: {backend: bubblewrap, timeout: 5s, processes: 3, output_bytes: 10}
            confidence: {auto: 80, quick: 50}
            approval: {timeout: 30}
        """
    )
    assert (found.undo_ttl_s, found.undo_asks, found.refuses_unchecked_undo) == (3600.0, True, True)
    assert found.placement is Placement.SANDBOX
    assert found.sandbox == SandboxTerms(
        backend=SandboxBackend.BUBBLEWRAP, timeout_s=5.0, memory_mb=100, processes=3, output_bytes=10
    )
    assert found.thresholds == Thresholds(auto=90, quick=50)
    assert found.terms.timeout_s == 30.0
    assert len(found.meters) == 1


def test_silence_settles_nothing() -> None:
    found = stance("")
    assert (found.rules, found.meters, found.inspectors, found.sandbox, found.placement) == ((), (), (), None, None)
    assert not found.modes_settled
