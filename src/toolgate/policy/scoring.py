"""A policy file's own way to score how routine a call looks, from 0 to 100. Without one, the kernel's score counts.

A tool begins with its base score, and roles of the caller, which come from the host's context, add to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from toolgate.kernel.call import Call
from toolgate.kernel.policy import Score
from toolgate.kernel.tool import ToolDefinition
from toolgate.policy.values import Name, Spec

DEFAULT_BASE = 70
Points = Annotated[int, Field(ge=-100, le=100)]
Percent = Annotated[int, Field(ge=0, le=100)]


class Scoring(Spec):
    default: Percent = Field(default=DEFAULT_BASE, description="Where a tool without a score of its own begins.")
    tools: dict[Name, Percent] = Field(default={}, description="Where a tool begins.")
    roles: dict[Name, Points] = Field(default={}, description="What a role of the caller adds.")


@dataclass(frozen=True, slots=True)
class Scorer:
    """`(call, tool) -> Score`: the lowest that any layer gives."""

    layers: tuple[Scoring, ...]

    def __call__(self, call: Call, tool: ToolDefinition, /) -> Score:
        return min((_score(layer, call, tool) for layer in self.layers), key=lambda score: score.value)


def _score(scoring: Scoring, call: Call, tool: ToolDefinition) -> Score:
    base = scoring.tools.get(tool.name, scoring.default)
    added = {role: scoring.roles[role] for role in sorted(call.context.roles) if role in scoring.roles}
    factors = (f"base {base}", *(f"role {role} {points:+d}" for role, points in added.items()))
    return Score(min(100, max(0, base + sum(added.values()))), factors)
