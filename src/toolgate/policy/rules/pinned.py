"""Which definition of a tool the policy speaks of: its version, or the hash of all that an approver relies on.

A tool that is not the pinned one is refused, whatever else is said of it. A hash may be given by its first
digits, at least twelve; `ToolDefinition.hash` has all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from toolgate.kernel.call import Call
from toolgate.kernel.policy import Facts, Verdict, Word
from toolgate.kernel.tool import ToolDefinition
from toolgate.policy.values import Name, Share, Site, Spec, Surroundings


class Pinned(Spec):
    version: Name | None = Field(default=None, description="The `version` its definition must have.")
    hash: Annotated[str, Field(pattern="^[0-9a-f]{12,64}$")] | None = Field(
        default=None, description="What its definition's hash must begin with."
    )

    @model_validator(mode="after")
    def _something(self) -> Pinned:
        if self.version is None and self.hash is None:
            raise ValueError("pin a `version`, a `hash` or both")
        return self


SPEC = Pinned


@dataclass(frozen=True, slots=True)
class PinnedRule:
    """Deny a definition that is not the pinned one."""

    version: str | None
    hash: str
    site: Site
    name: str = "pinned"
    is_static: ClassVar[bool] = True

    def __call__(self, _call: Call, tool: ToolDefinition, _facts: Facts, /) -> Verdict | None:
        if self.version is not None and tool.version != self.version:
            reason = f"its version is {tool.version}, and the policy is for version {self.version}"
            return Verdict(Word.DENY, reason, self.name, "not_pinned")
        if not tool.hash.startswith(self.hash):
            reason = f"its definition has the hash {tool.hash[:12]}, and the policy is for {self.hash[:12]}"
            return Verdict(Word.DENY, reason, self.name, "not_pinned")
        return None


def build(spec: Pinned, site: Site, _surroundings: Surroundings) -> Share:
    return Share(rules=[PinnedRule(spec.version, spec.hash or "", site)])
