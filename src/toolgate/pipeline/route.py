"""What is known about a tool under a policy before any call: its rules, and how silence is routed.

Most calls meet no rule that has an opinion; what then happens is worked out once per tool and policy.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any, NamedTuple

from toolgate.kernel.assessment import ApprovalLevel, Assessment, assess
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Durability
from toolgate.kernel.context import Mode
from toolgate.kernel.demands import ModeDemand, demands
from toolgate.kernel.policy import SILENCE, Policy, Rule
from toolgate.kernel.tool import Placement, RiskLevel, ToolDefinition
from toolgate.pipeline.execute import BY_POLICY, durability_of

UNREMARKABLE = Assessment(ApprovalLevel.AUTO, RiskLevel.LOW, None, ())
"""The assessment every call is born with."""


class Route(NamedTuple):
    """`free_modes` are the modes in which no rule has a say and silence lets an unremarkable call run at once.

    `born` are the fields that all calls of this tool begin with, and `claimed` those of a call that begins
    EXECUTING, whose claim must be as safe as `durability`; a new call takes a copy.
    """

    tool: ToolDefinition
    policy: Policy
    rules: tuple[Rule, ...]
    free_modes: frozenset[Mode]
    born: dict[str, Any]
    claimed: dict[str, Any]
    durability: Durability


def lay_out(tool: ToolDefinition, policy: Policy, *, owner: str, placements: Container[str]) -> Route:
    """Work out the rules over a tool and the modes in which its calls run at once, claimed by `owner`."""
    own = demands(tool)
    scored = tool.thresholds is not None or policy.thresholds is not None
    only_modes = all(isinstance(rule, ModeDemand) for rule in own)
    is_simple = tool.prepare is None and tool.rate_limit_per_hour is None
    runs_here = tool.runs_in is Placement.INLINE and tool.runs_in.value in placements
    is_silent = only_modes and not policy.rules and not scored
    is_free = is_silent and is_simple and runs_here and assess(tool, SILENCE, policy, None) == UNREMARKABLE
    born = _born(tool, policy)
    return Route(
        tool=tool,
        policy=policy,
        rules=own + policy.rules,
        free_modes=frozenset(mode for mode in Mode if is_free and tool.allows_mode(mode)),
        born=born,
        claimed=born
        | {"status": Status.EXECUTING, "version": 1, "owner": owner, "attempt": 1, "approved_by": BY_POLICY},
        durability=durability_of(tool),
    )


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
