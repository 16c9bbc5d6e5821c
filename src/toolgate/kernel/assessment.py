"""Who must say yes, and how fast: from the rules' word, risk and confidence to an approval level.

Policy outranks assessment: no score turns an ask or a deny into less. Assessment fills silence.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from toolgate.kernel.policy import Default, Judgement, Policy, Score, Word
from toolgate.kernel.tool import RiskLevel, Thresholds, ToolDefinition


class ApprovalLevel(StrEnum):
    """AUTO: nobody. QUICK: the person in the session. FULL: the review queue."""

    AUTO = "auto"
    QUICK = "quick"
    FULL = "full"


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
    """How a call is routed. `denied` is set where the policy's default refuses what no rule allowed."""

    level: ApprovalLevel
    risk: RiskLevel
    confidence: int | None
    reasons: tuple[str, ...]
    denied: str | None = None


def assess(tool: ToolDefinition, judgement: Judgement, policy: Policy, score: Score | None) -> Assessment:
    """Return the level the rules' word leads to; the judgement is not a denial."""
    thresholds = tool.thresholds or policy.thresholds
    reasons = tuple(f"{verdict.rule}: {verdict.reason}" for verdict in judgement.verdicts)
    confidence = score.value if score is not None else None
    if judgement.word is Word.ALLOW:
        level = ApprovalLevel.AUTO if thresholds is None else _by_confidence(thresholds, score)
        return Assessment(level, tool.risk, confidence, reasons)
    level = route(tool, thresholds, score)
    if judgement.word is None and policy.default is Default.DENY:
        return Assessment(level, tool.risk, confidence, reasons, "no rule of the policy allows it")
    if judgement.word is None and policy.default is Default.BY_RISK:
        return Assessment(level, tool.risk, confidence, reasons)
    if judgement.word is None:
        reasons = ("default: the policy asks where no rule speaks",)
    return Assessment(_at_least_quick(level), tool.risk, confidence, reasons)


def route(tool: ToolDefinition, thresholds: Thresholds | None, score: Score | None) -> ApprovalLevel:
    """Let confidence choose where thresholds are set, risk otherwise."""
    return _BY_RISK[tool.risk] if thresholds is None else _by_confidence(thresholds, score)


def _by_confidence(thresholds: Thresholds, score: Score | None) -> ApprovalLevel:
    if score is None:
        return ApprovalLevel.FULL
    if score.value >= thresholds.auto:
        return ApprovalLevel.AUTO
    return ApprovalLevel.QUICK if score.value >= thresholds.quick else ApprovalLevel.FULL


def _at_least_quick(level: ApprovalLevel) -> ApprovalLevel:
    return ApprovalLevel.QUICK if level is ApprovalLevel.AUTO else level
