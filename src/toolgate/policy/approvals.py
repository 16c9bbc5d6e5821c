"""How a file says who must approve: the same keys for every call of a tool and for calls with certain arguments."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from toolgate.kernel.terms import ApprovalLevel, ApprovalTerms
from toolgate.policy.values import Duration, Name, Positive, Spec


class Escalation(Spec):
    after: Duration = Field(description="How long nobody has answered.")
    to: list[Name] = Field(
        min_length=1,
        description="The roles asked then; they may approve from then on, in place of the `approvers` beside it.",
    )


class ApprovalSettings(Spec):
    level: Literal["quick", "full"] | None = Field(
        default=None, description="Ask before every call, at least at this level."
    )
    approvers: list[Name] = Field(
        default=[], description="Roles; who approves must hold one. Empty: anybody who may decide."
    )
    quorum: Positive = Field(default=1, description="How many different people must approve.")
    including: list[Name] = Field(
        default=[], description="Roles; at least one of the people who approve must hold one. It waits until one did."
    )
    separation: bool = Field(default=False, description="The requester, and the person it acts for, may not approve.")
    timeout: Duration | None = Field(default=None, description="How long people may take.")
    escalate: Escalation | None = Field(default=None, description="Whom to ask when nobody answers.")

    @model_validator(mode="after")
    def _possible(self) -> ApprovalSettings:
        if self.escalate is not None and self.timeout is not None and self.escalate.after >= self.timeout:
            raise ValueError("`escalate.after` must come before `timeout`")
        return self

    def terms(self) -> ApprovalTerms:
        """Return these settings as the terms questions are asked under."""
        escalate = self.escalate
        return ApprovalTerms(
            level=None if self.level is None else ApprovalLevel(self.level),
            approvers=(frozenset(self.approvers),) if self.approvers else (),
            quorum=self.quorum,
            separation=self.separation,
            timeout_s=self.timeout,
            escalate_after_s=None if escalate is None else escalate.after,
            escalate_to=frozenset() if escalate is None else frozenset(escalate.to),
            including=(frozenset(self.including),) if self.including else (),
        )
