"""What a policy settles about a tool besides yes and no: how an ask must be answered, what a sandbox may do.

Terms are data. They ride on the approval and on the job; who enforces them is the deciding and the runner.
Where several layers speak, `stricter` gives what satisfies all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class ApprovalLevel(StrEnum):
    """AUTO: nobody. QUICK: the person in the session. FULL: the review queue."""

    AUTO = "auto"
    QUICK = "quick"
    FULL = "full"

    @property
    def rank(self) -> int:
        return ("auto", "quick", "full").index(self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalTerms:
    """How a question must be answered.

    level: at least this level, whatever risk and confidence say.
    approvers: sets of roles; who approves must hold a role of every set.
    quorum: how many different people must approve; one "no" ends it.
    separation: neither the requester nor the person it acts for may approve.
    timeout_s: how long people may take.
    escalate_after_s, escalate_to: after this long, people with one of these roles are asked too, and may approve.
    """

    level: ApprovalLevel | None = None
    approvers: tuple[frozenset[str], ...] = ()
    quorum: int = 1
    separation: bool = False
    timeout_s: float | None = None
    escalate_after_s: float | None = None
    escalate_to: frozenset[str] = frozenset()

    def accepts(self, roles: Collection[str], *, escalated: bool = False) -> bool:
        """Whether somebody with these roles may approve; `escalated` says that the escalation has happened."""
        if escalated and not self.escalate_to.isdisjoint(roles):
            return True
        return all(not wanted.isdisjoint(roles) for wanted in self.approvers)

    def covers(self, other: ApprovalTerms) -> bool:
        """Whether an answer given under these terms satisfies those as well; levels are compared elsewhere."""
        is_enough = self.quorum >= other.quorum and self.separation >= other.separation
        return is_enough and set(self.approvers) >= set(other.approvers)

    def stricter(self, other: ApprovalTerms) -> ApprovalTerms:
        """Return terms that satisfy both."""
        sooner = _sooner(self, other)
        return ApprovalTerms(
            level=max((it for it in (self.level, other.level) if it is not None), key=_rank, default=None),
            approvers=self.approvers + tuple(it for it in other.approvers if it not in self.approvers),
            quorum=max(self.quorum, other.quorum),
            separation=self.separation or other.separation,
            timeout_s=least(self.timeout_s, other.timeout_s),
            escalate_after_s=sooner.escalate_after_s,
            escalate_to=sooner.escalate_to,
        )

    def as_json(self) -> dict[str, Any]:
        """Return the terms as JSON, for stores and events."""
        return {
            "level": self.level and self.level.value,
            "approvers": [sorted(roles) for roles in self.approvers],
            "quorum": self.quorum,
            "separation": self.separation,
            "timeout_s": self.timeout_s,
            "escalate_after_s": self.escalate_after_s,
            "escalate_to": sorted(self.escalate_to),
        }

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> ApprovalTerms:
        """Return the terms that `as_json` wrote."""
        kept = dict(data)
        kept["level"] = None if data["level"] is None else ApprovalLevel(data["level"])
        kept["approvers"] = tuple(frozenset(roles) for roles in data["approvers"])
        kept["escalate_to"] = frozenset(data["escalate_to"])
        return cls(**kept)


NO_TERMS = ApprovalTerms()


class SandboxBackend(StrEnum):
    """AUTO takes the best there is. NONE runs without a sandbox, and only where the policy says so."""

    AUTO = "auto"
    BUBBLEWRAP = "bubblewrap"
    LANDLOCK = "landlock"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxTerms:
    """What a sandboxed run may have. None leaves the runner's own limit."""

    backend: SandboxBackend = SandboxBackend.AUTO
    network: bool = False
    timeout_s: float | None = None
    memory_mb: int | None = None
    processes: int | None = None
    output_bytes: int | None = None

    def stricter(self, other: SandboxTerms) -> SandboxTerms:
        """Return terms that satisfy both."""
        return SandboxTerms(
            backend=_safer(self.backend, other.backend),
            network=self.network and other.network,
            timeout_s=least(self.timeout_s, other.timeout_s),
            memory_mb=least(self.memory_mb, other.memory_mb),
            processes=least(self.processes, other.processes),
            output_bytes=least(self.output_bytes, other.output_bytes),
        )


def _rank(level: ApprovalLevel) -> int:
    return level.rank


def least(one: Any, other: Any) -> Any:
    """The smaller of two limits; None is no limit."""
    return other if one is None else one if other is None else min(one, other)


def _sooner(one: ApprovalTerms, other: ApprovalTerms) -> ApprovalTerms:
    if one.escalate_after_s is None or other.escalate_after_s is None:
        return other if one.escalate_after_s is None else one
    return min(one, other, key=lambda terms: terms.escalate_after_s or 0.0)


_SAFETY = (SandboxBackend.NONE, SandboxBackend.LANDLOCK, SandboxBackend.AUTO, SandboxBackend.BUBBLEWRAP)


def _safer(one: SandboxBackend, other: SandboxBackend) -> SandboxBackend:
    return max(one, other, key=_SAFETY.index)
