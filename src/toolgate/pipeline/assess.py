"""How risky and how routine is this call, and who must therefore say yes."""

from __future__ import annotations

from toolgate.kernel.assessment import ApprovalLevel, Assessment
from toolgate.kernel.assessment import assess as route_by
from toolgate.kernel.call import Call
from toolgate.kernel.policy import Judgement, Policy, Score
from toolgate.kernel.tool import RiskLevel, ToolDefinition

_FREE_UNDO = Assessment(ApprovalLevel.AUTO, RiskLevel.LOW, None, ("undo: no rule denies it",))


def assess(call: Call, tool: ToolDefinition, judgement: Judgement, policy: Policy) -> Assessment:
    """Return the assessment of a call that no rule denies. A score that fails counts as no confidence."""
    if call.undo_of is not None and not policy.undo_asks:
        return _FREE_UNDO
    score = None
    if tool.thresholds is not None or policy.thresholds is not None:
        score = _score(call, tool, policy)
    return route_by(tool, judgement, policy, score)


def _score(call: Call, tool: ToolDefinition, policy: Policy) -> Score | None:
    if policy.score is None:
        return None
    try:
        return policy.score(call, tool)
    except Exception as error:  # noqa: BLE001  # fail closed: whatever broke the score, somebody is asked
        return Score(0, (f"scoring failed with {type(error).__name__}",))
