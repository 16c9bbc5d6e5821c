"""What is known about a tool under a policy before any call: its rules, and how silence is routed.

Most calls meet no rule that has an opinion; what then happens is worked out once per tool and policy.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from toolgate.kernel.assessment import ApprovalLevel, Assessment, assess
from toolgate.kernel.call import Call
from toolgate.kernel.context import Mode
from toolgate.kernel.demands import ModeDemand, demands
from toolgate.kernel.policy import SILENCE, Policy, Rule
from toolgate.kernel.tool import RiskLevel, ToolDefinition

UNREMARKABLE = Assessment(ApprovalLevel.AUTO, RiskLevel.LOW, None, ())
"""The assessment every call is born with."""


class Route(NamedTuple):
    """`free_modes` are the modes in which no rule has a say and silence lets an unremarkable call run.

    `born` are the fields that all calls of this tool begin with; a new call takes a copy.
    """

    tool: ToolDefinition
    policy: Policy
    rules: tuple[Rule, ...]
    free_modes: frozenset[Mode]
    born: dict[str, Any]


def lay_out(tool: ToolDefinition, policy: Policy) -> Route:
    """Work out the rules over a tool and the modes in which it is left to its risk alone."""
    own = demands(tool)
    scored = tool.thresholds is not None or policy.thresholds is not None
    only_modes = all(isinstance(rule, ModeDemand) for rule in own)
    is_free = only_modes and not policy.rules and not scored and assess(tool, SILENCE, policy, None) == UNREMARKABLE
    free_modes = frozenset(mode for mode in Mode if is_free and tool.allows_mode(mode))
    return Route(tool, policy, own + policy.rules, free_modes, _born(tool, policy))


def _born(tool: ToolDefinition, policy: Policy) -> dict[str, Any]:
    fields = {
        "tool_name": tool.name,
        "definition_hash": tool.hash,
        "has_effects": tool.has_effects,
        "idempotent": tool.idempotent,
        "placement": tool.runs_in.value,
        "policy_revision": policy.revision,
    }
    return {name: value for name, value in fields.items() if value != getattr(Call, name, None)}
