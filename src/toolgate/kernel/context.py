"""Who asks and from where: principals, the call's context and the operator's mode.

A Context is built by the trusted host and never from arguments a model wrote.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import NAMESPACE_URL, UUID, uuid5

from toolgate.kernel.spelling import spelled_fields


class Mode(StrEnum):
    """The operator's posture for everybody."""

    __hash__ = str.__hash__  # as quick as text: modes are looked up for every call

    NORMAL = "NORMAL"
    ALERT = "ALERT"
    DEGRADED = "DEGRADED"
    LOCKDOWN = "LOCKDOWN"
    RECOVERY = "RECOVERY"


class PrincipalKind(StrEnum):
    PERSON = "person"
    AGENT = "agent"
    RUNNER = "runner"
    ADMIN = "admin"
    POLICY = "policy"


_KINDS = {"agent": PrincipalKind.AGENT, "runner": PrincipalKind.RUNNER, "policy": PrincipalKind.POLICY}


@lru_cache(maxsize=1024)
def _id_of(name: str) -> UUID:
    try:
        return UUID(name)
    except ValueError:
        return uuid5(NAMESPACE_URL, f"toolgate:principal:{name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Somebody who can ask, decide or run. Only persons and admins decide."""

    name: str
    kind: PrincipalKind = PrincipalKind.PERSON
    roles: frozenset[str] = frozenset()

    @property
    def id(self) -> UUID:
        """The stable UUID of this name: the name itself where it is one, else derived from it."""
        return _id_of(self.name)

    @classmethod
    def of(cls, who: str | UUID | Principal) -> Principal:
        """Return `who` as a principal; a bare name is a person, unless it says otherwise (`agent:`, `runner:`)."""
        if isinstance(who, Principal):
            return who
        name = str(who)
        prefix = name.partition(":")[0]
        return cls(name=name, kind=_KINDS.get(prefix, PrincipalKind.PERSON) if ":" in name else PrincipalKind.PERSON)

    @property
    def can_decide(self) -> bool:
        return self.kind in (PrincipalKind.PERSON, PrincipalKind.ADMIN)


DEFAULT_PROJECT = "default"
SYSTEM_PROJECT = "_system"
PRIVATE = "private:"
"""What the names of projects begin with that belong to one object of one process, and to nobody after it."""


class Caller(NamedTuple):
    """What the host called with, kept in process only: its own context object and its own action."""

    ctx: Any
    action: Any


@spelled_fields
@dataclass(frozen=True, kw_only=True)
class Context:
    """Who asks, on whose behalf and where. `host` is the caller's own object, or a Caller, kept in process only.

    A call made by a handler names the call it was made in (`parent_call_id`) and how deep it is (`depth`). `claimed`
    says that session, run and times are the caller's own word: what is limited for each of them is limited for the
    caller. `step_id` names the turn of a run in which a call was made: two alike in one step are two on purpose.
    """

    principal: str = "agent:local"
    roles: frozenset[str] = frozenset()
    user: str | None = None
    project: str = DEFAULT_PROJECT
    session_id: str | None = None
    run_id: str | None = None
    step_id: str | None = None
    request_id: str | None = None
    behavior: str | None = None
    trace_id: str | None = None
    span_id: str | None = None
    parent_call_id: str | None = None
    workspace_verified: bool = False
    depth: int = 0
    claimed: bool = False
    host: Any = field(default=None, compare=False, repr=False)


DEFAULT_CONTEXT = Context()


def as_id(text: str) -> UUID | str:
    """Return an id as the UUID it spells, or as it is."""
    try:
        return UUID(text)
    except ValueError:
        return text


def read(ctx: object, name: str) -> str | None:
    """Return an id or name out of a host's context as text; None where there is none or it is something else."""
    value = ctx.get(name) if isinstance(ctx, Mapping) else getattr(ctx, name, None)
    if isinstance(value, Enum):
        value = value.value
    return str(value) if isinstance(value, str | UUID | int) and not isinstance(value, bool) else None


def behavior_of(ctx: object) -> str | None:
    """Return the behavior a host's context is in: its `behavior`, else its `execution_mode`."""
    return read(ctx, "behavior") or read(ctx, "execution_mode")
