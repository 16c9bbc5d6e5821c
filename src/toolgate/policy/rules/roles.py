"""Which roles of the caller may use a tool. Roles come from the host's context, never from arguments.

They only restrict: `allowed` refuses callers that hold none of its roles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pydantic import Field, model_validator

from toolgate.kernel.call import Call
from toolgate.kernel.policy import Facts, Verdict, Word
from toolgate.kernel.tool import ToolDefinition
from toolgate.policy.values import Name, Share, Site, Spec, Surroundings


class Roles(Spec):
    allowed: list[Name] | None = Field(default=None, description="The caller must hold one of these roles.")
    ask: list[Name] = Field(default=[], description="A person is asked where the caller holds one of these roles.")
    forbidden: list[Name] = Field(default=[], description="Callers with one of these roles are refused.")

    @model_validator(mode="after")
    def _apart(self) -> Roles:
        both = set(self.forbidden) & {*(self.allowed or ()), *self.ask}
        if both:
            raise ValueError(f"'{min(both)}' is both forbidden and not; keep one")
        return self


SPEC = Roles


@dataclass(frozen=True, slots=True)
class RolesRule:
    """Deny or ask by the roles of whoever calls."""

    allowed: frozenset[str] | None
    ask: frozenset[str]
    forbidden: frozenset[str]
    site: Site
    name: str = "roles"
    is_about_caller: ClassVar[bool] = True

    def __call__(self, call: Call, _tool: ToolDefinition, _facts: Facts, /) -> Verdict | None:
        roles = call.context.roles
        refused = self.forbidden & roles
        if refused:
            return Verdict(Word.DENY, f"role '{min(refused)}' is forbidden", self.name, "role_not_allowed")
        if self.allowed is not None and self.allowed.isdisjoint(roles):
            wanted = ", ".join(sorted(self.allowed))
            return Verdict(Word.DENY, f"the caller has none of the roles: {wanted}", self.name, "role_not_allowed")
        asked = self.ask & roles
        if asked:
            return Verdict(Word.ASK, f"the policy asks for role '{min(asked)}'", self.name, "role_asks")
        return None


def build(spec: Roles, site: Site, _surroundings: Surroundings) -> Share:
    allowed = None if spec.allowed is None else frozenset(spec.allowed)
    return Share(rules=[RolesRule(allowed, frozenset(spec.ask), frozenset(spec.forbidden), site)])
