"""What is known about a tool under a policy before any call: its rules, and how silence is routed.

Most calls meet no rule that has an opinion; what then happens is worked out once per tool and policy.
"""

from __future__ import annotations

from typing import NamedTuple

from toolgate.kernel.assessment import Assessment, assess
from toolgate.kernel.context import Mode
from toolgate.kernel.demands import ModeDemand, demands
from toolgate.kernel.policy import SILENCE, Policy, Rule
from toolgate.kernel.tool import ToolDefinition


class Route(NamedTuple):
    """`quiet_modes` are the modes in which no rule has a say, and `silent` is what then follows."""

    tool: ToolDefinition
    policy: Policy
    rules: tuple[Rule, ...]
    quiet_modes: frozenset[Mode]
    silent: Assessment


def lay_out(tool: ToolDefinition, policy: Policy) -> Route:
    """Work out the rules over a tool and the modes in which it is left to its risk alone."""
    own = demands(tool)
    scored = tool.thresholds is not None or policy.thresholds is not None
    only_modes = all(isinstance(rule, ModeDemand) for rule in own)
    quiet = frozenset(mode for mode in Mode if tool.allows_mode(mode))
    return Route(
        tool,
        policy,
        own + policy.rules,
        quiet if only_modes and not policy.rules and not scored else frozenset(),
        assess(tool, SILENCE, policy, None),
    )
