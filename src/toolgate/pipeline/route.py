"""What is known about a tool under a policy before any call: its rules, and what they say where a mode decides all.

Many calls meet only rules that look at the tool and the mode; what then happens is worked out once per tool,
policy and mode.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from toolgate.kernel.assessment import ApprovalLevel, Assessment
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Durability
from toolgate.kernel.context import DEFAULT_CONTEXT, Mode
from toolgate.kernel.policy import Facts, Policy, Rule, Stance
from toolgate.kernel.ruling import rule_on, rules_over
from toolgate.kernel.terms import SandboxBackend
from toolgate.kernel.tool import Placement, RiskLevel, ToolDefinition
from toolgate.pipeline.execute import BY_POLICY, durability_of

UNREMARKABLE = Assessment(ApprovalLevel.AUTO, RiskLevel.LOW, None, ())
"""The assessment every call is born with."""


class Route(NamedTuple):
    """`free` are the modes in which a call runs at once whatever its arguments, each with the fields of a call
    that begins EXECUTING in it; its claim must be as safe as `durability`. `born` are the fields that all calls
    of this tool begin with, and `quick` those that one adds which runs at once after its rules were asked; None
    where more than rules stands in between. A new call takes a copy.
    """

    tool: ToolDefinition
    policy: Policy
    stance: Stance
    rules: tuple[Rule, ...]
    free: Mapping[Mode, dict[str, Any]]
    born: dict[str, Any]
    quick: dict[str, Any] | None
    durability: Durability


def lay_out(
    tool: ToolDefinition,
    policy: Policy,
    *,
    owner: str,
    placements: Container[str],
    mask: Callable[[str], str] = str,
) -> Route:
    """Work out the rules over a tool and the modes in which its calls run at once, claimed by `owner`."""
    stance = policy.stance(tool)
    rules = rules_over(tool, stance)
    placement = placement_of(tool, stance)
    born = _born(tool, policy, placement)
    claimed = {"status": Status.EXECUTING, "version": 1, "owner": owner, "attempt": 1, "approved_by": BY_POLICY}
    free: dict[Mode, dict[str, Any]] = {}
    is_simple = tool.prepare is None and tool.rate_limit_per_hour is None and not stance.meters
    is_quick = is_simple and placement is Placement.INLINE and placement.value in placements
    if is_quick and _is_settled(tool, stance, rules):
        for mode in Mode:
            assessment = _in_mode(mode, tool, stance, rules)
            if assessment is not None:
                free[mode] = born | claimed | assessed(assessment, mask)
    return Route(tool, policy, stance, rules, free, born, claimed if is_quick else None, durability_of(tool))


def _is_settled(tool: ToolDefinition, stance: Stance, rules: tuple[Rule, ...]) -> bool:
    """Whether nothing about a call but the mode can change what happens to it."""
    is_scored = tool.thresholds is not None or stance.thresholds is not None
    return not is_scored and all(getattr(rule, "is_static", False) for rule in rules)


def _in_mode(mode: Mode, tool: ToolDefinition, stance: Stance, rules: tuple[Rule, ...]) -> Assessment | None:
    """Return the assessment of every call in this mode, if it is one that lets them run at once."""
    now = datetime.now(UTC)
    any_call = Call(id="", project="", tool_name=tool.name, context=DEFAULT_CONTEXT, created_at=now)
    assessment = rule_on(any_call, tool, stance, rules, Facts(mode, now)).assessment
    return assessment if assessment is not None and assessment.level is ApprovalLevel.AUTO else None


def assessed(assessment: Assessment, mask: Callable[[str], str]) -> dict[str, Any]:
    """Return the fields in which an assessment differs from the one every call is born with."""
    if assessment == UNREMARKABLE:
        return {}
    return {
        "level": assessment.level.value,
        "risk": assessment.risk.value,
        "confidence": assessment.confidence,
        "factors": tuple(map(mask, assessment.factors)),
        "reasons": tuple(map(mask, assessment.reasons)),
    }


def placement_of(tool: ToolDefinition, stance: Stance) -> Placement:
    """Where calls of this tool run; one that needs a sandbox runs inline only where the policy names none."""
    wanted = stance.placement or tool.runs_in
    unboxed = stance.sandbox is not None and stance.sandbox.backend is SandboxBackend.NONE
    if wanted is Placement.INLINE and tool.requires_sandbox and not unboxed:
        return Placement.SANDBOX
    return wanted


def _born(tool: ToolDefinition, policy: Policy, placement: Placement) -> dict[str, Any]:
    fields = {
        "tool_name": tool.name,
        "definition_hash": tool.hash,
        "has_effects": tool.has_effects,
        "idempotent": tool.idempotent,
        "placement": placement.value,
        "policy_revision": policy.revision,
    }
    return {name: value for name, value in fields.items() if value != getattr(Call, name, None)}
