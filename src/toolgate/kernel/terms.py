"""What a policy settles about a tool besides yes and no: how an ask must be answered, what a sandbox may do.

Terms are data. They ride on the approval and on the job; who enforces them is the deciding and the runner.
Where several layers speak, `stricter` gives what satisfies all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
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
    including: sets of roles; of each, at least one of the people who approve must hold a role.
    separation: neither the requester nor the person it acts for may approve.
    timeout_s: how long people may take.
    escalate_after_s, escalate_to: after this long, people with one of these roles are asked too, and may approve.
    firm: those of `approvers` that the escalation opens to nobody: who demanded them did not say so.
    in_person: somebody answers this very question; no remembered yes does.
    """

    level: ApprovalLevel | None = None
    approvers: tuple[frozenset[str], ...] = ()
    quorum: int = 1
    separation: bool = False
    timeout_s: float | None = None
    escalate_after_s: float | None = None
    escalate_to: frozenset[str] = frozenset()
    including: tuple[frozenset[str], ...] = ()
    firm: tuple[frozenset[str], ...] = ()
    in_person: bool = False

    def accepts(self, roles: Collection[str], *, escalated: bool = False) -> bool:
        """Whether somebody with these roles may approve; `escalated` says that the escalation has happened."""
        is_opened = escalated and not self.escalate_to.isdisjoint(roles)
        return all(not wanted.isdisjoint(roles) for wanted in (self.firm if is_opened else self.approvers))

    def counted(self, roles: Collection[str]) -> tuple[str, ...]:
        """Return those of somebody's roles that `including` asks for."""
        return tuple(sorted({role for wanted in self.including for role in wanted}.intersection(roles)))

    def lacking(self, voters: Iterable[Collection[str]]) -> tuple[frozenset[str], ...]:
        """Return the sets of `including` of which none of these people, each given by their roles, holds a role."""
        held = {role for roles in voters for role in roles}
        return tuple(wanted for wanted in self.including if wanted.isdisjoint(held))

    def covers(self, other: ApprovalTerms) -> bool:
        """Whether an answer given under these terms satisfies those as well; levels are compared elsewhere."""
        is_enough = self.quorum >= other.quorum and self.separation >= other.separation
        is_enough = is_enough and self.in_person >= other.in_person
        is_opened = bool(self.escalate_to) and not set(self.firm) >= set(other.firm)
        includes = set(self.including) >= set(other.including)
        return is_enough and includes and not is_opened and set(self.approvers) >= set(other.approvers)

    def stricter(self, other: ApprovalTerms) -> ApprovalTerms:
        """Return terms that satisfy both."""
        sooner = _sooner(self, other)
        return ApprovalTerms(
            level=max((it for it in (self.level, other.level) if it is not None), key=_rank, default=None),
            approvers=_both(self.approvers, other.approvers),
            quorum=max(self.quorum, other.quorum),
            separation=self.separation or other.separation,
            timeout_s=least(self.timeout_s, other.timeout_s),
            escalate_after_s=sooner.escalate_after_s,
            escalate_to=sooner.escalate_to,
            including=_both(self.including, other.including),
            firm=_both(_closed(self, sooner), _closed(other, sooner)),
            in_person=self.in_person or other.in_person,
        )

    def who(self) -> str:
        """Say in words who must approve, and how many of them."""
        roles = " and ".join(map(_any_of, self.approvers))
        count = "1 person" if self.quorum == 1 else f"{self.quorum} people"
        said = f"{count} with role {roles}" if roles else f"{count} other than the requester"
        return said + "".join(f", at least 1 of them with role {_any_of(wanted)}" for wanted in self.including)

    @property
    def is_picky(self) -> bool:
        """Whether not just anybody who may decide can answer alone."""
        return bool(self.quorum > 1 or self.approvers or self.including)

    def as_json(self) -> dict[str, Any]:
        """Return the terms as JSON, for stores and events."""
        told = {
            "level": self.level and self.level.value,
            "approvers": [sorted(roles) for roles in self.approvers],
            "quorum": self.quorum,
            "separation": self.separation,
            "timeout_s": self.timeout_s,
            "escalate_after_s": self.escalate_after_s,
            "escalate_to": sorted(self.escalate_to),
        }
        # Only where they say something: what was kept, and marked, before there were such terms stays what it was.
        more = {"including": self.including, "firm": self.firm}
        told |= {name: [sorted(roles) for roles in sets] for name, sets in more.items() if sets}
        return told | {"in_person": True} if self.in_person else told

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> ApprovalTerms:
        """Return the terms that `as_json` wrote."""
        kept = dict(data)
        kept["level"] = None if data["level"] is None else ApprovalLevel(data["level"])
        for name in ("approvers", "including", "firm"):
            kept[name] = tuple(frozenset(roles) for roles in data.get(name, ()))
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
    disk_mb: int | None = None

    def stricter(self, other: SandboxTerms) -> SandboxTerms:
        """Return terms that satisfy both."""
        return SandboxTerms(
            backend=_safer(self.backend, other.backend),
            network=self.network and other.network,
            timeout_s=least(self.timeout_s, other.timeout_s),
            memory_mb=least(self.memory_mb, other.memory_mb),
            processes=least(self.processes, other.processes),
            output_bytes=least(self.output_bytes, other.output_bytes),
            disk_mb=least(self.disk_mb, other.disk_mb),
        )


def _rank(level: ApprovalLevel) -> int:
    return level.rank


def least(one: Any, other: Any) -> Any:
    """The smaller of two limits; None is no limit."""
    return other if one is None else one if other is None else min(one, other)


def _sooner(one: ApprovalTerms, other: ApprovalTerms) -> ApprovalTerms:
    if one.escalate_after_s is None or other.escalate_after_s is None:
        return other if one.escalate_after_s is None else one
    return min(one, other, key=lambda terms: (terms.escalate_after_s or 0.0, sorted(terms.escalate_to)))


def _closed(terms: ApprovalTerms, sooner: ApprovalTerms) -> tuple[frozenset[str], ...]:
    """The approvers of some terms that an escalation opens to nobody: all of them, where it is another's."""
    if sooner.escalate_after_s is None:
        return ()
    is_own = (terms.escalate_after_s, terms.escalate_to) == (sooner.escalate_after_s, sooner.escalate_to)
    return terms.firm if is_own else terms.approvers


def _both(one: tuple[frozenset[str], ...], other: tuple[frozenset[str], ...]) -> tuple[frozenset[str], ...]:
    return one + tuple(it for it in other if it not in one)


def _any_of(roles: frozenset[str]) -> str:
    return " or ".join(sorted(roles))


_SAFETY = (SandboxBackend.NONE, SandboxBackend.LANDLOCK, SandboxBackend.AUTO, SandboxBackend.BUBBLEWRAP)


def _safer(one: SandboxBackend, other: SandboxBackend) -> SandboxBackend:
    return max(one, other, key=_SAFETY.index)
