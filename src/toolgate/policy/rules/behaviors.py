"""In which behaviors of a run a tool may be called. They only restrict; the tool's own behaviors count as well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pydantic import Field, model_validator

from toolgate.kernel.call import Call
from toolgate.kernel.policy import Facts, Verdict, Word
from toolgate.kernel.tool import ToolDefinition
from toolgate.policy.values import Name, Share, Site, Spec, Surroundings


class Behaviors(Spec):
    allowed: list[Name] | None = Field(
        default=None, description="Behaviors in which calls may be made; all others are refused."
    )
    ask: list[Name] = Field(default=[], description="Behaviors in which a person is asked.")
    forbidden: list[Name] = Field(default=[], description="Behaviors in which calls are refused.")

    @model_validator(mode="after")
    def _apart(self) -> Behaviors:
        both = set(self.forbidden) & {*(self.allowed or ()), *self.ask}
        if both:
            raise ValueError(f"'{min(both)}' is both forbidden and not; keep one")
        return self


SPEC = Behaviors


@dataclass(frozen=True, slots=True)
class BehaviorsRule:
    """Deny or ask by the behavior of the run the call belongs to."""

    allowed: frozenset[str] | None
    ask: frozenset[str]
    forbidden: frozenset[str]
    site: Site
    name: str = "behaviors"
    is_about_caller: ClassVar[bool] = True

    def __call__(self, call: Call, _tool: ToolDefinition, _facts: Facts, /) -> Verdict | None:
        behavior = call.context.behavior
        if behavior in self.ask:
            return Verdict(Word.ASK, f"the policy asks in behavior '{behavior}'", self.name, "behavior_asks")
        if behavior in self.forbidden or (self.allowed is not None and behavior not in self.allowed):
            reason = f"behavior '{behavior}' is not allowed by the policy"
            return Verdict(Word.DENY, reason, self.name, "behavior_not_allowed")
        return None


def build(spec: Behaviors, site: Site, _surroundings: Surroundings) -> Share:
    allowed = None if spec.allowed is None else frozenset(spec.allowed)
    return Share(rules=[BehaviorsRule(allowed, frozenset(spec.ask), frozenset(spec.forbidden), site)])
