"""Who must say yes, and how fast: from the rules' word, risk and confidence to an approval level.

Policy outranks assessment: no score turns an ask or a deny into less. Assessment fills silence.
"""

from __future__ import annotations

from typing import NamedTuple

from toolgate.kernel.policy import Default, Judgement, Score, Stance, Word
from toolgate.kernel.terms import NO_TERMS, ApprovalTerms
from toolgate.kernel.terms import ApprovalLevel as ApprovalLevel  # where most code looks for it
from toolgate.kernel.tool import RiskLevel, Thresholds, ToolDefinition

LEVEL_TIMEOUT_S: dict[ApprovalLevel, float] = {
    ApprovalLevel.AUTO: 0.0,
    ApprovalLevel.QUICK: 300.0,
    ApprovalLevel.FULL: 600.0,
}

_BY_RISK = {
    RiskLevel.LOW: ApprovalLevel.AUTO,
    RiskLevel.MEDIUM: ApprovalLevel.QUICK,
    RiskLevel.HIGH: ApprovalLevel.FULL,
}


class Assessment(NamedTuple):
    """How a call is routed. `denied` is set where the policy's default refuses what no rule allowed.

    `terms` say how a question must be answered; they count where the level asks one.
    """

    level: ApprovalLevel
    risk: RiskLevel
    confidence: int | None
    reasons: tuple[str, ...]
    denied: str | None = None
    terms: ApprovalTerms = NO_TERMS
    factors: tuple[str, ...] = ()


def assess(tool: ToolDefinition, judgement: Judgement, stance: Stance, score: Score | None) -> Assessment:
    """Return the level the rules' word leads to; the judgement is not a denial."""
    thresholds = _strictest(tool.thresholds, stance.thresholds)
    reasons = tuple(f"{verdict.rule}: {verdict.reason}" for verdict in judgement.verdicts)
    confidence = score.value if score is not None else None
    raised = [verdict.risk for verdict in judgement.verdicts if verdict.risk is not None]
    risk = max((tool.risk, *raised), key=_severity) if raised else tool.risk
    denied = None
    if judgement.word is Word.ALLOW:
        level = ApprovalLevel.AUTO if thresholds is None else _by_confidence(thresholds, score)
    else:
        level = route(risk, thresholds, score)
        if judgement.word is None and stance.default is Default.DENY:
            denied = "no rule of the policy allows it"
        elif judgement.word is None and stance.default is Default.ASK:
            level, reasons = _at_least_quick(level), ("default: the policy asks where no rule speaks",)
        elif judgement.word is Word.ASK:
            level = _at_least_quick(level)
    terms = judgement.terms(stance.terms)
    if level is not ApprovalLevel.AUTO and terms.level is not None:
        level = max(level, terms.level, key=_rank)
    factors = () if score is None else score.factors
    return Assessment(level, risk, confidence, reasons, denied, terms, factors)


def _strictest(one: Thresholds | None, other: Thresholds | None) -> Thresholds | None:
    if one is None or other is None:
        return one or other
    return Thresholds(auto=max(one.auto, other.auto), quick=max(one.quick, other.quick))


def _rank(level: ApprovalLevel) -> int:
    return level.rank


def _severity(risk: RiskLevel) -> int:
    return risk.rank


def route(risk: RiskLevel, thresholds: Thresholds | None, score: Score | None) -> ApprovalLevel:
    """Let confidence choose where thresholds are set, risk otherwise."""
    return _BY_RISK[risk] if thresholds is None else _by_confidence(thresholds, score)


def _by_confidence(thresholds: Thresholds, score: Score | None) -> ApprovalLevel:
    if score is None:
        return ApprovalLevel.FULL
    if score.value >= thresholds.auto:
        return ApprovalLevel.AUTO
    return ApprovalLevel.QUICK if score.value >= thresholds.quick else ApprovalLevel.FULL


def _at_least_quick(level: ApprovalLevel) -> ApprovalLevel:
    return ApprovalLevel.QUICK if level is ApprovalLevel.AUTO else level
