"""How a person is asked: level, who may answer, how many, by when, and what happens when nobody does.

A `level` here asks before every call. Without it, the other settings hold where something else asks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from toolgate.kernel.call import Call
from toolgate.kernel.policy import Facts, Verdict, Word
from toolgate.kernel.terms import ApprovalLevel, ApprovalTerms
from toolgate.kernel.tool import ToolDefinition
from toolgate.policy.values import Duration, Name, Positive, Share, Site, Spec, Surroundings


class Escalation(Spec):
    after: Duration = Field(description="How long nobody has answered.")
    to: list[Name] = Field(min_length=1, description="The roles asked then; they may approve from then on.")


class ApprovalSettings(Spec):
    level: Literal["quick", "full"] | None = Field(
        default=None, description="Ask before every call, at least at this level."
    )
    approvers: list[Name] = Field(
        default=[], description="Roles; who approves must hold one. Empty: anybody who may decide."
    )
    quorum: Positive = Field(default=1, description="How many different people must approve.")
    separation: bool = Field(default=False, description="The requester, and the person it acts for, may not approve.")
    timeout: Duration | None = Field(default=None, description="How long people may take.")
    escalate: Escalation | None = Field(default=None, description="Whom to ask when nobody answers.")

    @model_validator(mode="after")
    def _possible(self) -> ApprovalSettings:
        if self.escalate is not None and self.timeout is not None and self.escalate.after >= self.timeout:
            raise ValueError("`escalate.after` must come before `timeout`")
        return self


SPEC = ApprovalSettings


@dataclass(frozen=True, slots=True)
class ApprovalRule:
    """Ask before every call."""

    level: ApprovalLevel
    site: Site
    name: str = "approval"
    is_static: ClassVar[bool] = True

    def __call__(self, _call: Call, _tool: ToolDefinition, _facts: Facts, /) -> Verdict | None:
        return Verdict(Word.ASK, f"the policy asks for {self.level} approval", self.name, "approval_required")


def build(spec: ApprovalSettings, site: Site, _surroundings: Surroundings) -> Share:
    level = None if spec.level is None else ApprovalLevel(spec.level)
    escalate = spec.escalate
    terms = ApprovalTerms(
        level=level,
        approvers=(frozenset(spec.approvers),) if spec.approvers else (),
        quorum=spec.quorum,
        separation=spec.separation,
        timeout_s=spec.timeout,
        escalate_after_s=None if escalate is None else escalate.after,
        escalate_to=frozenset() if escalate is None else frozenset(escalate.to),
    )
    return Share(rules=[] if level is None else [ApprovalRule(level, site)], terms=terms)
