"""Run handlers at connected clients: choose the one connection a call is offered to, and offer it again if it goes.

This file knows who is there. It holds no arguments: whoever is offered a call takes it with `Gate.dispatch`,
which gives it the real ones once.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from toolgate.kernel.call import Call
from toolgate.ports.runner import PARKED, Job


class Offer(NamedTuple):
    """A call that waits for somebody to run it: what is needed to choose who."""

    project: str
    call_id: str
    tool_name: str
    principal: str
    user: str | None
    session_id: str | None
    is_undo: bool
    until: datetime | None


@dataclass(eq=False, slots=True, kw_only=True)
class Seat:
    """One connection that can run calls of one project.

    `tools` are the tools it registered for (`*`: all); empty for a plain stream. Only a registered runner
    (`is_runner`) is given other people's calls: everybody else's connection runs what its own principal asked for, or
    what was asked for them. `offer` and `recall` are called on any thread and must return at once.
    """

    project: str
    principal: str
    offer: Callable[[Offer], None]
    recall: Callable[[str, str], None]
    tools: frozenset[str] = frozenset()
    session_id: str | None = None
    can_undo: bool = False
    is_runner: bool = False
    turn: int = 0
    offered: dict[str, Offer] | None = None
    """What was offered and not taken yet; most seats are never offered anything."""
    taken: set[str] | None = None
    recalled: frozenset[str] = frozenset()
    """What it was asked to stop: it is asked once, however many servers say so."""

    def is_registered_for(self, offer: Offer) -> bool:
        is_named = bool(self.tools) and ("*" in self.tools or offer.tool_name in self.tools)
        return is_named and (self.is_runner or self._owns(offer))

    def _owns(self, offer: Offer) -> bool:
        return self.principal in (offer.principal, offer.user)

    def is_own_stream_of(self, offer: Offer) -> bool:
        """Whether a plain stream may run what was asked: by or for its own principal, in its own session where both
        name one.

        Naming somebody's session gives nobody's call to their client.
        """
        if self.tools or not self._owns(offer):
            return False
        return offer.session_id is None or self.session_id is None or self.session_id == offer.session_id


class ClientRunner:
    """Offers each call to exactly one connection; where none is there, it waits for one until its time is over."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seats: dict[str, list[Seat]] = {}
        self._waiting: dict[tuple[str, str], Offer] = {}
        self._turns = itertools.count(1)

    def run(self, job: Job) -> Awaitable[object]:
        return self._run(job.call)

    async def _run(self, call: Call) -> object:
        self.place(offer_of(call))
        return PARKED

    def place(self, offer: Offer) -> None:
        """Offer a call to one connection, or keep it for the next that fits."""
        with self._lock:
            seat = self._choose(offer)
            if seat is None:
                self._forget_late(datetime.now(UTC))
                self._waiting[offer.project, offer.call_id] = offer
                return
            if seat.offered is None:
                seat.offered = {}
            seat.offered[offer.call_id] = offer
        seat.offer(offer)

    def place_foreign(self, offer: Offer) -> None:
        """Offer a call that another server claimed to a connection here, if one fits and has not got it yet."""
        with self._lock:
            seats = self._seats.get(offer.project, ())
            if any(offer.call_id in (seat.offered or ()) or offer.call_id in (seat.taken or ()) for seat in seats):
                return
            seat = self._choose(offer)
            if seat is None:
                return  # the server that claimed it keeps it for whoever comes
            if seat.offered is None:
                seat.offered = {}
            seat.offered[offer.call_id] = offer
        seat.offer(offer)

    def has_seats(self, project: str) -> bool:
        """Whether anybody is connected here who can run calls of a project."""
        return project in self._seats

    @property
    def projects(self) -> tuple[str, ...]:
        """The projects of those who are connected here."""
        return tuple(self._seats)

    def _choose(self, offer: Offer) -> Seat | None:
        """A registered runner whose turn it is, else the most recent stream of the session, else of who asked."""
        seats = [seat for seat in self._seats.get(offer.project, ()) if seat.can_undo or not offer.is_undo]
        registered = [seat for seat in seats if seat.is_registered_for(offer)]
        if registered:
            chosen = min(registered, key=lambda seat: seat.turn)
            chosen.turn = next(self._turns)
            return chosen
        own = [seat for seat in reversed(seats) if seat.is_own_stream_of(offer)]
        in_session = [seat for seat in own if offer.session_id in (None, seat.session_id)]
        return next(iter(in_session or own), None)

    def _forget_late(self, now: datetime) -> None:
        """Drop offers whose time is over; their rows say so already."""
        for key in [key for key, offer in self._waiting.items() if offer.until is not None and offer.until < now]:
            del self._waiting[key]

    def join(self, seat: Seat) -> None:
        """A connection is there: it is offered what waits and suits it."""
        with self._lock:
            seat.turn = next(self._turns)
            self._seats.setdefault(seat.project, []).append(seat)
            waiting = [offer for key, offer in self._waiting.items() if key[0] == seat.project]
            for offer in waiting:
                del self._waiting[offer.project, offer.call_id]
        for offer in waiting:
            self.place(offer)

    def leave(self, seat: Seat) -> None:
        """A connection is gone: what it was offered and did not take is offered to others."""
        with self._lock:
            seats = self._seats.get(seat.project, [])
            if seat in seats:
                seats.remove(seat)
            if not seats:
                self._seats.pop(seat.project, None)
            left = list((seat.offered or {}).values())
            seat.offered = None
        for offer in left:
            self.place(offer)

    def took(self, seat: Seat, call_id: str) -> None:
        """A connection took what it was offered; whatever happens to it now is its lease's business."""
        with self._lock:
            if seat.offered is not None and seat.offered.pop(call_id, None) is not None:
                seat.taken = {*(seat.taken or ()), call_id}

    def dropped(self, seat: Seat, call_id: str) -> None:
        """What was offered is not to be had any more, or is over."""
        with self._lock:
            if seat.offered is not None:
                seat.offered.pop(call_id, None)
            seat.taken = (seat.taken or set()) - {call_id}
            seat.recalled -= {call_id}

    def recall(self, call: Call, reason: str) -> None:
        with self._lock:
            seats = self._seats.get(call.project, ())
            holders = [seat for seat in seats if call.id in (seat.taken or ()) and call.id not in seat.recalled]
            for seat in holders:
                seat.recalled |= {call.id}
        for seat in holders:
            seat.recall(call.id, reason)

    @property
    def waiting_count(self) -> int:
        """How many calls wait for a connection."""
        return len(self._waiting)

    async def close(self) -> None:
        with self._lock:
            self._seats.clear()
            self._waiting.clear()


def offer_of(call: Call) -> Offer:
    """Return what is needed to choose who runs this call."""
    context = call.context
    return Offer(
        call.project,
        call.id,
        call.tool_name,
        context.principal,
        context.user,
        context.session_id,
        call.undo_of is not None,
        call.due_at,
    )
