"""The rules a tool's own definition makes: its behaviors, its modes, and that a person must say yes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from toolgate.kernel.call import Call
from toolgate.kernel.policy import Facts, Rule, Verdict, Word
from toolgate.kernel.tool import ToolDefinition


@dataclass(frozen=True, slots=True)
class BehaviorDemand:
    """Deny outside the tool's behaviors."""

    name: str = "behaviors"
    is_about_caller: ClassVar[bool] = True

    def __call__(self, call: Call, tool: ToolDefinition, _facts: Facts, /) -> Verdict | None:
        behavior = call.context.behavior
        if tool.is_behavior_allowed(behavior):
            return None
        allowed = ", ".join(tool.allowed_behaviors)
        reason = f"behavior '{behavior}' is not one of the allowed: {allowed}"
        return Verdict(Word.DENY, reason, self.name, "behavior_not_allowed")


@dataclass(frozen=True, slots=True)
class ModeDemand:
    """Deny in modes the tool does not list; LOCKDOWN must be listed by name."""

    name: str = "modes"
    is_static: ClassVar[bool] = True

    def __call__(self, _call: Call, tool: ToolDefinition, facts: Facts, /) -> Verdict | None:
        if tool.allows_mode(facts.mode):
            return None
        return Verdict(Word.DENY, f"Tool not allowed in {facts.mode} mode", self.name, "mode_not_allowed")


@dataclass(frozen=True, slots=True)
class ApprovalDemand:
    """Ask for every call of a tool that requires approval."""

    name: str = "requires_approval"
    is_static: ClassVar[bool] = True

    def __call__(self, _call: Call, _tool: ToolDefinition, _facts: Facts, /) -> Verdict | None:
        return Verdict(Word.ASK, "the tool requires approval", self.name, "requires_approval")


@dataclass(frozen=True, slots=True)
class RiskWaiver:
    """Allow what nobody else has a word on, whatever its risk: a host's own choice, where risk would ask."""

    name: str = "risk_waived"
    is_static: ClassVar[bool] = True

    def __call__(self, _call: Call, _tool: ToolDefinition, _facts: Facts, /) -> Verdict | None:
        return Verdict(Word.ALLOW, "the host does not ask for risk alone", self.name)


_BEHAVIOR, _MODE, _APPROVAL = BehaviorDemand(), ModeDemand(), ApprovalDemand()


def demands(tool: ToolDefinition, *, modes_settled: bool = False) -> tuple[Rule, ...]:
    """Return the rules this definition makes by itself; a policy that settles the modes speaks in its place there."""
    rules: list[Rule] = [] if modes_settled else [_MODE]
    if tool.allowed_behaviors:
        rules.append(_BEHAVIOR)
    if tool.requires_approval:
        rules.append(_APPROVAL)
    return tuple(rules)
