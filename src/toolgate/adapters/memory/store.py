"""The store of a single process: everything in dictionaries under one lock, gone when the process ends.

Finished calls and old events are forgotten beyond `retain`, so a long-lived process does not grow;
the chain stays verifiable from the oldest event that is kept.

Events whose data cannot change any more take their place at once but are encoded and hashed in batches:
before anybody reads events or calls, before an event that cannot wait, and after `BATCH` commits.
"""

from __future__ import annotations

import heapq
import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, NoReturn, TypeVar

import orjson

from toolgate.adapters.held import check_stands
from toolgate.adapters.memory.keys import Keys
from toolgate.errors import ConflictError, GrantChangedError, ModeChangedError, StoreError
from toolgate.kernel.approval import SHOWN_JSON, Approval
from toolgate.kernel.brake import Brakes
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import HELD, Change, Reservation
from toolgate.kernel.context import PRIVATE, SYSTEM_PROJECT
from toolgate.kernel.delegation import Delegation
from toolgate.kernel.event import Draft, Event, Link, genesis, link, link_all, unlink
from toolgate.kernel.grant import Grant
from toolgate.kernel.holding import Move
from toolgate.kernel.marks import Marks
from toolgate.kernel.record import evolve
from toolgate.kernel.undo import UndoRecord
from toolgate.ports.sink import Cursor
from toolgate.ports.store import ApprovalQuery, CallQuery, DelegationQuery, Due, GrantQuery, Head, Question

Key = tuple[str, str]
L = TypeVar("L", Grant, Delegation)
EVENTS_PER_CALL = 6
KEYS_PER_CALL = 10
BATCH = 64
"""How many commits of a project may wait to be encoded: the longest pause this puts into one commit is short."""

_UNKNOWN = Status.UNKNOWN


@dataclass(slots=True)
class _Chain:
    """One project's events, as far as they are kept, the last one's number and hash, and what follows unsealed."""

    project: str
    links: deque[Link]
    seq: int
    last: bytes
    waiting: list[tuple[datetime, tuple[Draft, ...]]] = field(default_factory=list)

    def seal(self) -> None:
        """Encode and hash what waits. It cannot fail: it was vouched for."""
        self._extend(link_all(self.waiting, self.project, self.seq, self.last))
        self.waiting.clear()  # last: whoever sees nothing waiting knows that it is sealed

    @property
    def head(self) -> int:
        """The number of the last event, sealed or not."""
        return self.seq + sum(len(drafts) for _, drafts in self.waiting)

    def after(self, seq: int) -> Iterable[Link]:
        """Return what is kept after an event, walked to from the nearer end."""
        start = max(0, seq + 1 - self.links[0][0]) if self.links else 0
        if 2 * start < len(self.links):
            return islice(self.links, start, None)
        return reversed(list(islice(reversed(self.links), max(0, len(self.links) - start))))

    def append(self, drafts: tuple[Draft, ...], at: datetime) -> None:
        """Seal drafts at once, after what waits; what cannot be encoded is refused and leaves no trace."""
        if self.waiting:
            self.seal()
        self._extend(link(drafts, self.project, at, self.seq, self.last))

    def _extend(self, linked: list[Link]) -> None:
        self.links.extend(linked)
        self.seq, self.last = linked[-1][0], linked[-1][7]


@dataclass(slots=True)
class _Uses:
    """The uses of one rate or budget within its window, and their sum."""

    kept: deque[tuple[datetime, int]] = field(default_factory=deque)
    total: int = 0

    def add(self, at: datetime, amount: int) -> None:
        self.kept.append((at, amount))
        self.total += amount

    def put(self, at: datetime, amount: int) -> None:
        """Count a use as of another time than now; one that does not age is not among those that are forgotten."""
        self.total += amount
        if at != HELD:
            self.kept = deque(sorted([*self.kept, (at, amount)]))

    def forget(self, start: datetime) -> None:
        while self.kept and self.kept[0][0] <= start:
            self.total -= self.kept.popleft()[1]


class MemoryStore:
    """Keeps every guarantee of the Store port but durability."""

    is_shared = False

    def __init__(self, *, owner: str = "memory", retain: int = 10_000) -> None:
        self.owner = owner
        self._lock = threading.Lock()
        self.brakes = Brakes()
        self.marks = Marks.fresh()
        self._closed = False
        self._retain = retain
        self._calls: dict[Key, Call] = {}
        self._finished: deque[Key] = deque()
        self._approvals: dict[str, Approval] = {}
        self._open: dict[str, None] = {}
        self._asked: dict[Key, tuple[str, ...]] = {}
        self._undo: dict[Key, UndoRecord] = {}
        self._undo_ends: list[tuple[datetime, Key]] = []
        self._grants: dict[str, Grant] = {}
        self._delegations: dict[str, Delegation] = {}
        self._keys = Keys(most=retain * KEYS_PER_CALL)
        self._chains: dict[str, _Chain] = {}
        self._private: dict[str, int] = {}
        """How many finished calls of each private project are remembered: with the last one its events go, too."""
        self._cursors: dict[Key, int] = {}
        self._listening: dict[str, int] = {}
        """How many sinks follow a project: for as long as there are any, its numbers go on."""
        self._rates: dict[Key, _Uses] = {}
        self._due: list[tuple[datetime, Key]] = []

    def commit(self, change: Change) -> None:
        project, at, drafts, call, seen = change.project, change.at, change.events, change.call, change.mode_seen
        moves, has_companions = change.moves, not change.is_plain
        key = None if call is None else (call.project, call.id)
        self._lock.acquire()  # as `with` does, at half its cost
        try:
            if self._closed or (seen is not None and seen != self.brakes.serial):
                self._refuse()
            if key is not None and getattr(self._calls.get(key), "version", None) != change.expect:
                raise ConflictError(f"Call {key[1]} was changed by somebody else.")
            if moves or has_companions:
                self._check_companions(change, moves, is_plain=not has_companions)
            if drafts:
                chain = self._chains.get(project) or self._new_chain(project)
                if change.lasting and len(chain.waiting) < BATCH:
                    chain.waiting.append((at, drafts))
                else:
                    chain.append(drafts, at)
            # From here on nothing can fail: everything was checked.
            if call is not None and key is not None:
                self._calls[key] = call
                if call.due_at is not None or call.status.is_final:
                    self._keep_date(call, key)
            if moves:
                self._keys.move(project, at, moves, self._calls.__contains__)
            if has_companions:
                self._keep_companions(change, key)
        finally:
            self._lock.release()

    def _refuse(self) -> NoReturn:
        if self._closed:
            raise StoreError("The store is closed.")
        raise ModeChangedError("The mode was changed meanwhile.")

    def _check_companions(self, change: Change, moves: tuple[Move, ...], *, is_plain: bool) -> None:
        self._keys.check(change.project, change.at, moves)
        if is_plain:
            return
        if (stands := change.stands) is not None:
            told = self._calls.get((change.project, stands[0]))
            check_stands(stands, None if told is None else told.version)
        self._check_permissions(change)
        for reservation in change.reservations:
            self._check_rate(change, reservation)

    def _check_permissions(self, change: Change) -> None:
        if change.undo_expect is not None and change.undo is not None:
            kept = self._undo.get((change.undo.project, change.undo.call_id))
            if kept is None or kept.state is not change.undo_expect:
                raise ConflictError(f"Call {change.undo.call_id} is not {change.undo_expect} for undo any more.")
        if change.grant is not None:
            known = self._grants.get(change.grant.id)
            if (None if known is None else known.version) != change.grant_expect:
                raise GrantChangedError(f"Grant {change.grant.id} was used or changed meanwhile.")
        if change.delegation is not None:
            given = self._delegations.get(change.delegation.id)
            if (0 if given is None else given.version) != change.delegation.version - 1:
                raise ConflictError(f"Delegation {change.delegation.id} was changed by somebody else.")

    def _check_rate(self, change: Change, reservation: Reservation) -> None:
        used = self._rates.setdefault((change.project, reservation.key), _Uses())
        used.forget(change.at - timedelta(seconds=reservation.window_s))
        if used.total + reservation.amount > reservation.limit:
            raise reservation.refusal()

    def _new_chain(self, project: str) -> _Chain:
        links: deque[Link] = deque(maxlen=self._retain * EVENTS_PER_CALL)
        chain = self._chains[project] = _Chain(project, links, 0, genesis(project))
        return chain

    def _seal_all(self) -> None:
        """Seal what waits, before anybody outside gets hold of data that events refer to. Under the lock."""
        for chain in self._chains.values():
            if chain.waiting:
                chain.seal()

    def _keep_date(self, call: Call, key: Key) -> None:
        """Remember when a call comes due, or that it may be forgotten one day."""
        if call.due_at is not None:
            heapq.heappush(self._due, (call.due_at, key))
        elif call.status is not _UNKNOWN:
            self._finished.append(key)
            if key[0].startswith(PRIVATE):
                self._private[key[0]] = self._private.get(key[0], 0) + 1
            if len(self._finished) > self._retain:
                self._forget(self._finished.popleft())

    def _keep_companions(self, change: Change, key: Key | None) -> None:
        for approval in change.approvals:
            if approval.id not in self._approvals:
                call = (approval.project, approval.call_id)
                of = key if key is not None and key == call else call  # one tuple for both: thousands may wait
                self._asked[of] = (*self._asked.get(of, ()), approval.id)
            self._approvals[approval.id] = approval
            if approval.is_pending:
                self._open[approval.id] = None
            else:
                self._open.pop(approval.id, None)
        if change.undo is not None:
            self._keep_undo(change.undo, change.at)
        for reservation in change.reservations:
            self._rates[change.project, reservation.key].add(change.at, reservation.amount)
        for use in change.uses:
            self._rates.setdefault((change.project, use.key), _Uses()).put(use.at, use.amount)
        if change.grant is not None:
            _keep(self._grants, change.grant, change.at, self._retain)
        if change.delegation is not None:
            _keep(self._delegations, change.delegation, change.at, self._retain)
        if change.set_mode is not None:
            told = self._chains.get(SYSTEM_PROJECT)
            self.brakes = change.set_mode.numbered(0 if told is None else told.head)

    def _keep_undo(self, undo: UndoRecord, now: datetime) -> None:
        key = (undo.project, undo.call_id)
        self._undo[key] = undo
        heapq.heappush(self._undo_ends, (undo.expires_at, key))
        self._free_undo(now)

    def _free_undo(self, now: datetime) -> None:
        while self._undo_ends and self._undo_ends[0][0] <= now:
            _, key = heapq.heappop(self._undo_ends)
            kept = self._undo.get(key)
            if kept is not None and kept.is_expired(now):
                del self._undo[key]

    def _forget(self, key: Key) -> None:
        del self._calls[key]
        project = key[0]
        if project in self._private:
            self._private[project] -= 1
            if not self._private[project]:
                del self._private[project]
                if project not in self._listening:
                    self._chains.pop(project, None)
        for id in self._asked.pop(key, ()):
            self._approvals.pop(id, None)

    def known(self, project: str, call_id: str) -> Call | None:
        """Nothing: reading asks nobody here."""

    def known_question(self, approval_id: str) -> Question | None:
        """Nothing, likewise."""

    def forget(self, project: str | None = None, call_id: str = "", version: int | None = None) -> None:
        """Nothing is known apart from what is stored."""

    async def call(self, project: str, call_id: str) -> Call | None:
        found = self._calls.get((project, call_id))
        chain = self._chains.get(project)
        if chain is not None and chain.waiting:
            with self._lock:
                self._seal_all()
        return found

    async def calls(self, query: CallQuery) -> list[Call]:
        with self._lock:
            self._seal_all()
            everything: Iterable[Call] = tuple(self._calls.values())
        found = [call for call in everything if _call_fits(call, query)]
        found.sort(key=_place, reverse=query.newest_first)
        return found[: query.limit]

    async def approvals(self, query: ApprovalQuery) -> list[Approval]:
        if query.id is not None:
            approval = self._approvals.get(query.id)
            return [_own(approval)] if approval is not None and _approval_fits(approval, query) else []
        with self._lock:
            ids = tuple(self._open) if query.status == "pending" else tuple(self._approvals)
        found = [approval for id in ids if (approval := self._approvals.get(id)) and _approval_fits(approval, query)]
        found.sort(key=lambda approval: (approval.created_at, approval.id))
        if query.after is not None:
            seen = (query.after.created_at, query.after.id)
            found = [approval for approval in found if (approval.created_at, approval.id) > seen]
        return [_own(approval) for approval in found[: query.limit]]

    async def question(self, approval_id: str, *, project: str | None = None) -> Question | None:
        with self._lock:
            approval = self._approvals.get(approval_id)
            if approval is None or project not in (None, approval.project):
                return None
            call = self._calls[approval.project, approval.call_id]  # they are forgotten together
            self._seal_all()
        return Question(_own(approval), call)

    async def undo(self, project: str, call_id: str) -> UndoRecord | None:
        return self._undo.get((project, call_id))

    async def grants(self, query: GrantQuery) -> list[Grant]:
        with self._lock:
            everything = tuple(self._grants.values())
        return [grant for grant in everything if _grant_fits(grant, query)][: query.limit]

    async def delegations(self, query: DelegationQuery) -> list[Delegation]:
        with self._lock:
            everything = tuple(self._delegations.values())
        return [one for one in everything if _delegation_fits(one, query)][: query.limit]

    async def events(
        self, project: str, *, after: int = 0, limit: int = 1000, call_id: str | None = None
    ) -> list[Event]:
        with self._lock:
            chain = self._chains.get(project)
            if chain is None:
                return []
            if chain.waiting:
                chain.seal()
            fitting = (linked for linked in chain.after(after) if call_id is None or linked[3] == call_id)
            return [unlink(project, linked) for linked in islice(fitting, limit)]

    async def head(self, project: str) -> Head:
        with self._lock:
            chain = self._chains.get(project)
            if chain is None:
                return Head(0, genesis(project), 0, genesis(project))
            if chain.waiting:
                chain.seal()
            oldest = chain.links[0]  # a chain is made with its first event
            return Head(chain.seq, chain.last, oldest[0] - 1, oldest[6])

    async def open_cursor(self, project: str, sink: str | None) -> Cursor:
        with self._lock:
            chain = self._chains.get(project)
            head = 0 if chain is None else chain.head
            self._listening[project] = self._listening.get(project, 0) + 1
            seq = head if sink is None else self._cursors.setdefault((project, sink), head)
            return Cursor(seq, head, is_ours=True)

    async def move_cursor(self, project: str, sink: str, seq: int) -> bool:
        self._cursors[project, sink] = max(seq, self._cursors.get((project, sink), 0))
        return True

    async def close_cursor(self, project: str, sink: str | None) -> None:
        with self._lock:
            self._listening[project] -= 1
            if self._listening[project]:
                return
            del self._listening[project]
            is_over = project.startswith(PRIVATE) and project not in self._private
            if is_over and not any(key[0] == project for key in self._calls):
                self._chains.pop(project, None)

    async def due(self, now: datetime, *, limit: int = 100) -> Due:
        with self._lock:
            self._free_undo(now)
            self._seal_all()
            ready: list[tuple[datetime, Key]] = []
            while self._due and len(ready) < limit and self._due[0][0] <= now:
                entry = heapq.heappop(self._due)
                if self._is_current(entry) and entry not in ready:
                    ready.append(entry)
            for entry in ready:
                heapq.heappush(self._due, entry)
            calls = [self._calls[key] for _, key in ready]
            return Due(calls, self._next_due(now))

    def _is_current(self, entry: tuple[datetime, Key]) -> bool:
        call = self._calls.get(entry[1])
        return call is not None and call.due_at == entry[0]

    def _next_due(self, now: datetime) -> datetime | None:
        while self._due and not self._is_current(self._due[0]):
            heapq.heappop(self._due)
        return max(self._due[0][0], now) if self._due else None

    async def orphans(self, *, status: Status = Status.EXECUTING, limit: int = 100) -> list[Call]:
        return []  # the owner of these calls is the process that would have to ask

    async def close(self) -> None:
        with self._lock:
            self._closed = True
            self._seal_all()


def _keep(kept: dict[str, L], new: L, now: datetime, retain: int) -> None:
    """Keep a grant or a delegation; beyond `retain`, those that ended are forgotten."""
    kept[new.id] = new
    if len(kept) > retain:
        for id in [id for id, one in kept.items() if not one.is_live(now)]:
            del kept[id]


def _place(call: Call) -> tuple[datetime, str, str]:
    """Where a call stands among the others, oldest first."""
    return call.created_at, call.project, call.id


def _call_fits(call: Call, query: CallQuery) -> bool:
    return (
        (query.project is None or call.project == query.project)
        and (query.statuses is None or call.status in query.statuses)
        and (query.run_id is None or call.context.run_id == query.run_id)
        and (query.tool_name is None or call.tool_name == query.tool_name)
        and (query.since is None or call.created_at >= query.since)
        and (query.after is None or _is_beyond(call, query.after, query))
    )


def _is_beyond(call: Call, seen: Call, query: CallQuery) -> bool:
    return _place(call) < _place(seen) if query.newest_first else _place(call) > _place(seen)


def _grant_fits(grant: Grant, query: GrantQuery) -> bool:
    return (
        (query.project is None or grant.project == query.project)
        and (query.id is None or grant.id == query.id)
        and (query.tool_name is None or grant.tool_name == query.tool_name)
        and (query.live_at is None or grant.is_live(query.live_at))
    )


def _delegation_fits(one: Delegation, query: DelegationQuery) -> bool:
    return (
        (query.project is None or one.project == query.project)
        and (query.id is None or one.id == query.id)
        and (query.giver is None or one.giver == query.giver)
        and (query.delegate is None or one.delegate == query.delegate)
        and (query.live_at is None or one.is_live(query.live_at))
    )


def _own(approval: Approval) -> Approval:
    """Return the approval with a copy of what is shown: a reader who changes it changes nothing for the next."""
    return evolve(approval, **{name: _json_copy(getattr(approval, name)) for name in SHOWN_JSON})


def _approval_fits(approval: Approval, query: ApprovalQuery) -> bool:
    return (
        (query.project is None or approval.project == query.project)
        and (query.call_id is None or approval.call_id == query.call_id)
        and (query.status is None or approval.status is query.status)
    )


def _json_copy(value: Any) -> Any:
    """Return a copy of JSON, at a tenth of the cost of a deep copy."""
    return value if value is None else orjson.loads(orjson.dumps(value))
