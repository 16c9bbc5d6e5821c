"""Store: where the truth is kept. Calls, approvals, events, rates and undo records change only here."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol, runtime_checkable

from toolgate.kernel.approval import Approval, ApprovalStatus
from toolgate.kernel.brake import Brakes
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change
from toolgate.kernel.delegation import Delegation
from toolgate.kernel.event import Event
from toolgate.kernel.grant import Grant
from toolgate.kernel.marks import Marks
from toolgate.kernel.undo import UndoRecord
from toolgate.ports.sink import Cursors


@dataclass(frozen=True, slots=True, kw_only=True)
class CallQuery:
    """Which calls, oldest first, or `newest_first`. None means any; `since` is the earliest creation.

    `after` is the last one seen: what comes next in the order that is asked for follows it.
    """

    project: str | None = None
    statuses: frozenset[Status] | None = None
    run_id: str | None = None
    tool_name: str | None = None
    since: datetime | None = None
    after: Call | None = None
    newest_first: bool = False
    limit: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalQuery:
    """Which approvals, oldest first. None means any; `after` is the last approval already seen."""

    project: str | None = None
    id: str | None = None
    call_id: str | None = None
    status: ApprovalStatus | None = None
    after: Approval | None = None
    limit: int = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantQuery:
    """Which grants, oldest first. None means any; `live_at` leaves out those that were not usable then."""

    project: str | None = None
    id: str | None = None
    tool_name: str | None = None
    live_at: datetime | None = None
    limit: int = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationQuery:
    """Which delegations, oldest first. None means any; `live_at` leaves out those that were over or ended then."""

    project: str | None = None
    id: str | None = None
    giver: str | None = None
    delegate: str | None = None
    live_at: datetime | None = None
    limit: int = 1000


class Due(NamedTuple):
    """Calls whose `due_at` has come, and when the next one comes (None: none is waiting)."""

    calls: list[Call]
    next_at: datetime | None


class Question(NamedTuple):
    """An approval and its call, as they stood at the same moment."""

    approval: Approval
    call: Call


class Head(NamedTuple):
    """The ends of a project's chain: the number and the hash of its last event, and of the last that was removed."""

    seq: int
    hash: bytes
    base_seq: int
    base_hash: bytes


class UndoRecords(Protocol):
    """The part of a store that keeps undo data; Redis can be this much of one. Raises what a store raises."""

    def commit(self, change: Change) -> Awaitable[None] | None: ...

    async def undo(self, project: str, call_id: str) -> UndoRecord | None: ...

    async def due(self, now: datetime, *, limit: int = 100) -> Due: ...

    async def close(self) -> None: ...


@runtime_checkable
class Clocked(Protocol):
    """A store with a clock of its own: machines whose clocks differ go by it when they write and compare times."""

    def now(self) -> datetime: ...


class Store(Cursors, Protocol):
    """Safe to use from several event loops and threads at once.

    Reads see every change whose commit has returned. Cancelling a `commit` does not undo it: the
    change is then either wholly there or wholly not.
    """

    @property
    def owner(self) -> str:
        """Who claims are made for here: a random id of this opening, alive for as long as it is open."""
        ...

    @property
    def is_shared(self) -> bool:
        """Whether other processes may use the same truth, so that their deaths must be looked for."""
        ...

    @property
    def marks(self) -> Marks:
        """What marks people's decisions, under a key that is not in the database."""
        ...

    @property
    def brakes(self) -> Brakes:
        """The brakes last read or written here; a commit with `mode_seen` checks the stored ones.

        What is stored without the mark of a gate, or is older than what was set since, counts as LOCKDOWN.
        """
        ...

    def commit(self, change: Change) -> Awaitable[None] | None:
        """Write all of `change` or nothing, giving its events their place in the chain.

        None means it is written; otherwise it is written when the awaitable returns. A store that can
        write at once spares every call a coroutine.

        Raises ConflictError when the row, the undo record, the grant, the delegation or the mode is not as expected,
        RateLimitError when a reservation does not fit, StoreError when it cannot be written.
        """
        ...

    def known(self, project: str, call_id: str) -> Call | None:
        """Return a waiting call as it was last written from here, where that is at hand without asking anybody.

        It may be outdated: whoever goes on from it commits against its version, and reads the store where that fails.
        A refusal, or the end of a wait, must never rest on it alone.
        """
        ...

    def known_question(self, approval_id: str) -> Question | None:
        """Return an approval with its call, as both were last written from here; it may be outdated as `known` may."""
        ...

    def forget(self, project: str | None = None, call_id: str = "", version: int | None = None) -> None:
        """Know a call no longer that was heard to have this version now, unless that is known; without any, nothing."""
        ...

    async def call(self, project: str, call_id: str) -> Call | None: ...

    async def calls(self, query: CallQuery) -> list[Call]: ...

    async def approvals(self, query: ApprovalQuery) -> list[Approval]: ...

    async def question(self, approval_id: str, *, project: str | None = None) -> Question | None:
        """Return an approval with its call, in one read; None where there is none, or not in this project."""
        ...

    async def undo(self, project: str, call_id: str) -> UndoRecord | None: ...

    async def grants(self, query: GrantQuery) -> list[Grant]: ...

    async def delegations(self, query: DelegationQuery) -> list[Delegation]: ...

    async def events(
        self, project: str, *, after: int = 0, limit: int = 1000, call_id: str | None = None
    ) -> list[Event]: ...

    async def head(self, project: str) -> Head:
        """Return where a project's chain ends and where its kept events begin.

        Before the first event, and where none was removed, that is number 0 and the hash chains begin with.
        """
        ...

    async def due(self, now: datetime, *, limit: int = 100) -> Due:
        """Return what has come due, free undo records that expired before `now`, and read the brakes anew."""
        ...

    async def orphans(self, *, status: Status = Status.EXECUTING, limit: int = 100) -> list[Call]:
        """Return calls in this status whose owner is no longer alive; also where they have none, unless they wait for
        a person: such a question is nobody's to put.
        """
        ...

    async def close(self) -> None: ...
