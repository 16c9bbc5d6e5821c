"""In which of the operator's modes a tool runs, asks or is refused.

A mode in `allowed` is an explicit permission; one in `ask` asks. With `allowed`, every mode in neither list is
refused; without it, the tool's own modes count. `forbidden` always wins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pydantic import Field, model_validator

from toolgate.kernel.call import Call
from toolgate.kernel.policy import Facts, Verdict, Word
from toolgate.kernel.tool import ToolDefinition
from toolgate.policy.values import ModeName, Share, Site, Spec, Surroundings

ALIASES = {
    "allowed_in_modes": "allowed",
    "requires_approval_in_modes": "ask",
    "forbidden_in_modes": "forbidden",
}


class Modes(Spec):
    allowed: list[ModeName] | None = Field(default=None, description="Modes in which calls are allowed.")
    ask: list[ModeName] = Field(default=[], description="Modes in which a person is asked.")
    forbidden: list[ModeName] = Field(default=[], description="Modes in which calls are refused.")

    @model_validator(mode="after")
    def _apart(self) -> Modes:
        seen: dict[str, str] = {}
        for name, modes in (("allowed", self.allowed or []), ("ask", self.ask), ("forbidden", self.forbidden)):
            for mode in modes:
                if seen.setdefault(mode, name) != name:
                    raise ValueError(f"{mode} is both in `{seen[mode]}` and in `{name}`; keep one")
        return self


SPEC = Modes


@dataclass(frozen=True, slots=True)
class ModesRule:
    """Deny, ask or allow by the mode alone."""

    allowed: frozenset[str] | None
    ask: frozenset[str]
    forbidden: frozenset[str]
    site: Site
    name: str = "modes"
    is_static: ClassVar[bool] = True

    def __call__(self, _call: Call, tool: ToolDefinition, facts: Facts, /) -> Verdict | None:
        mode = facts.mode
        if mode in self.ask:
            return Verdict(Word.ASK, f"the policy asks in {mode} mode", self.name, "mode_asks")
        if mode not in self.forbidden:
            if self.allowed is None and tool.allows_mode(mode):
                return None
            if self.allowed is not None and mode in self.allowed:
                return Verdict(Word.ALLOW, f"allowed in {mode} mode", self.name)
        return Verdict(Word.DENY, f"Tool not allowed in {mode} mode", self.name, "mode_not_allowed")


def build(spec: Modes, site: Site, _surroundings: Surroundings) -> Share:
    allowed = None if spec.allowed is None else frozenset(spec.allowed)
    rule = ModesRule(allowed, frozenset(spec.ask), frozenset(spec.forbidden), site)
    return Share(rules=[rule], settles_modes=True)
