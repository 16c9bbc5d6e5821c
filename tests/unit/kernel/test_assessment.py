"""The table from rules to approval level, row by row."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.kernel.samples import a_tool

from toolgate.kernel.assessment import LEVEL_TIMEOUT_S, ApprovalLevel, Assessment, assess, route
from toolgate.kernel.policy import SILENCE, Default, Judgement, Policy, Score, Verdict, Word
from toolgate.kernel.terms import ApprovalTerms
from toolgate.kernel.tool import RiskLevel, Thresholds

AUTO, QUICK, FULL = ApprovalLevel
ALLOW = Judgement(Word.ALLOW, (Verdict(Word.ALLOW, "listed", "categories"),))
ASK = Judgement(Word.ASK, (Verdict(Word.ASK, "risky", "approval"), Verdict(Word.ALLOW, "listed", "categories")))
BY_RISK = {"low": AUTO, "medium": QUICK, "high": FULL}
BY_CONFIDENCE = {0: FULL, 59: FULL, 60: QUICK, 84: QUICK, 85: AUTO, 100: AUTO, None: FULL}


def level(
    judgement: Judgement,
    *,
    risk: str = "low",
    confidence: int | None = None,
    thresholds: Thresholds | None = None,
    **policy: Any,
) -> ApprovalLevel:
    score = None if confidence is None else Score(confidence)
    return assess(a_tool(risk_level=risk), judgement, Policy(thresholds=thresholds, **policy), score).level


@pytest.mark.parametrize(("risk", "expected"), [("low", QUICK), ("medium", QUICK), ("high", FULL)])
@pytest.mark.parametrize("default", Default)
def test_ask_without_thresholds_is_by_risk_but_at_least_quick(
    risk: str, expected: ApprovalLevel, default: Default
) -> None:
    assert level(ASK, risk=risk, default=default) is expected


@pytest.mark.parametrize(("confidence", "chosen"), BY_CONFIDENCE.items())
@pytest.mark.parametrize("risk", RiskLevel)
def test_ask_with_thresholds_is_by_confidence_but_at_least_quick(
    risk: str, confidence: int | None, chosen: ApprovalLevel
) -> None:
    expected = QUICK if chosen is AUTO else chosen
    assert level(ASK, risk=risk, confidence=confidence, thresholds=Thresholds()) is expected


@pytest.mark.parametrize(("risk", "confidence"), list(itertools.product(RiskLevel, [None, 0, 100])))
@pytest.mark.parametrize("default", Default)
def test_an_explicit_allow_without_thresholds_is_auto(risk: str, confidence: int | None, default: Default) -> None:
    assert level(ALLOW, risk=risk, confidence=confidence, default=default) is AUTO


@pytest.mark.parametrize(("confidence", "expected"), BY_CONFIDENCE.items())
@pytest.mark.parametrize("risk", RiskLevel)
def test_an_explicit_allow_with_thresholds_not_met_asks_a_person(
    risk: str, confidence: int | None, expected: ApprovalLevel
) -> None:
    assert level(ALLOW, risk=risk, confidence=confidence, thresholds=Thresholds()) is expected


@pytest.mark.parametrize(("risk", "expected"), BY_RISK.items())
def test_silence_by_risk_is_by_risk(risk: str, expected: ApprovalLevel) -> None:
    assert level(SILENCE, risk=risk) is expected


@pytest.mark.parametrize(("confidence", "expected"), BY_CONFIDENCE.items())
@pytest.mark.parametrize("risk", RiskLevel)
def test_silence_by_risk_with_thresholds_is_by_confidence(
    risk: str, confidence: int | None, expected: ApprovalLevel
) -> None:
    assert level(SILENCE, risk=risk, confidence=confidence, thresholds=Thresholds()) is expected


@pytest.mark.parametrize(("risk", "expected"), [("low", QUICK), ("medium", QUICK), ("high", FULL)])
def test_silence_where_the_default_asks_is_at_least_quick(risk: str, expected: ApprovalLevel) -> None:
    assessment = assess(a_tool(risk_level=risk), SILENCE, Policy(default=Default.ASK), None)
    assert assessment.level is expected
    assert assessment.reasons == ("default: the policy asks where no rule speaks",)


@pytest.mark.parametrize("risk", RiskLevel)
@pytest.mark.parametrize("confidence", [None, 100])
def test_silence_where_the_default_denies_is_denied(risk: str, confidence: int | None) -> None:
    score = None if confidence is None else Score(confidence)
    assessment = assess(a_tool(risk_level=risk), SILENCE, Policy(default=Default.DENY), score)
    assert assessment.denied == "no rule of the policy allows it"


@pytest.mark.parametrize("judgement", [ALLOW, ASK])
@pytest.mark.parametrize("default", Default)
def test_the_default_denies_nothing_a_rule_spoke_about(judgement: Judgement, default: Default) -> None:
    assert assess(a_tool(), judgement, Policy(default=default), None).denied is None


@given(
    st.sampled_from([ALLOW, ASK, SILENCE]),
    st.sampled_from(RiskLevel),
    st.none() | st.integers(0, 100),
    st.none() | st.tuples(st.integers(0, 100), st.integers(0, 100)).map(sorted),
    st.sampled_from(Default),
)
def test_no_score_turns_an_ask_into_auto_or_a_denial_into_less(
    judgement: Judgement, risk: str, confidence: int | None, bounds: list[int] | None, default: Default
) -> None:
    thresholds = Thresholds(quick=bounds[0], auto=bounds[1]) if bounds else None
    score = None if confidence is None else Score(confidence)
    policy = Policy(thresholds=thresholds, default=default)
    assessment = assess(a_tool(risk_level=risk), judgement, policy, score)
    if judgement is ASK or (judgement is SILENCE and default is Default.ASK):
        assert assessment.level is not AUTO
    assert (assessment.denied is not None) == (judgement is SILENCE and default is Default.DENY)


def test_of_two_thresholds_the_stricter_count() -> None:
    tool = a_tool(thresholds=Thresholds(auto=99, quick=10))
    policy = Policy(thresholds=Thresholds(auto=90, quick=50))
    assert assess(tool, SILENCE, policy, Score(99)).level is AUTO
    assert assess(tool, SILENCE, policy, Score(98)).level is QUICK
    assert assess(tool, ALLOW, policy, Score(49)).level is FULL


@pytest.mark.parametrize(("judgement", "level"), [(ALLOW, AUTO), (ASK, FULL)])
def test_terms_raise_the_level_of_a_question_and_make_none(judgement: Judgement, level: ApprovalLevel) -> None:
    terms = ApprovalTerms(level=FULL, quorum=2)
    assessment = assess(a_tool(), judgement, Policy(terms=terms), None)
    assert (assessment.level, assessment.terms) == (level, terms)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, AUTO),
        ({"effects": "read"}, AUTO),
        ({"effects": "irreversible"}, QUICK),
        ({"effects": "irreversible", "risk_level": "low"}, AUTO),
    ],
)
def test_undeclared_risk_is_low_and_medium_for_irreversible_effects(
    options: dict[str, Any], expected: ApprovalLevel
) -> None:
    assert route(a_tool(**options).risk, None, None) is expected


def test_an_assessment_records_every_contributing_reason_risk_and_confidence() -> None:
    assert assess(a_tool(risk_level="high"), ASK, Policy(), Score(70, ("bulk -10",))) == Assessment(
        level=FULL,
        risk=RiskLevel.HIGH,
        confidence=70,
        reasons=("approval: risky", "categories: listed"),
        denied=None,
        factors=("bulk -10",),
    )


def test_levels_have_their_documented_times() -> None:
    assert LEVEL_TIMEOUT_S == {"auto": 0.0, "quick": 300.0, "full": 600.0}
