"""How a person is asked: level, who may answer, how many, by when, and what happens when nobody does.

A `level` here asks before every call. Without it, the other settings hold where something else asks. An item under
`arguments` has the same keys under its own `approval`, for the calls it holds for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from toolgate.kernel.call import Call
from toolgate.kernel.policy import Facts, Verdict, Word
from toolgate.kernel.terms import ApprovalLevel
from toolgate.kernel.tool import ToolDefinition
from toolgate.policy.approvals import ApprovalSettings
from toolgate.policy.values import Share, Site, Surroundings

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
    terms = spec.terms()
    return Share(rules=[] if terms.level is None else [ApprovalRule(terms.level, site)], terms=terms)
