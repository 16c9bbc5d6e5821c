"""Checking a project's chain of events while the server runs: a bounded piece at a time, off the loop.

What was checked is remembered by sequence number and hash. The next piece must link to it, so that a chain that was cut
or written anew behind it is noticed; `toolgate audit verify` checks the whole file, recorded heads included.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import datetime

from toolgate.gate import Gate
from toolgate.kernel.comparing import Difference
from toolgate.kernel.event import ChainError, Event, verify

PIECE = 2000
"""How many events one request checks."""
READ = 500
MOST = 100
"""How many differences between rows and events are remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """How far a project's chain was checked. `problem`: the event after `seq` does not fit."""

    events: int = 0
    seq: int = 0
    hash: bytes | None = None
    problem: str | None = None
    at: datetime | None = None
    differences: tuple[Difference, ...] = ()

    @property
    def is_whole(self) -> bool:
        return self.problem is None and self.at is not None and self.seq >= self.events


class Chains:
    """What this server knows of each project's chain."""

    def __init__(self) -> None:
        self._checked: dict[str, Checked] = {}
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def status(self, gate: Gate, project: str) -> Checked:
        """Return how far the chain was checked, and how long it is now."""
        checked = self._checked.get(project, Checked())
        return replace(checked, events=(await gate.host.head(project)).seq)

    async def advance(self, gate: Gate, project: str, *, now: datetime, restart: bool = False) -> Checked:
        """Check the next piece, or begin again; where a problem was found, it is looked at anew."""
        async with self._locks[project]:
            known = Checked() if restart else self._checked.get(project, Checked())
            checked = await self._check(gate, project, replace(known, problem=None))
            checked = await self._compare(gate, project, checked, after=known.seq)
            self._checked[project] = replace(checked, at=now)
        return await self.status(gate, project)

    async def _compare(self, gate: Gate, project: str, checked: Checked, *, after: int) -> Checked:
        """Compare the rows of the calls that the events just checked tell of, and of those that differed before."""
        ids = {one.id: None for one in checked.differences if one.kind == "call"}
        while after < checked.seq:
            events = await gate.events(project=project, after=after, limit=READ)
            ids |= {str(event.call_id): None for event in events if event.seq <= checked.seq and _tells_of_call(event)}
            after = events[-1].seq if events else checked.seq
        found: list[Difference] = [one for one in checked.differences if one.kind != "call"]
        for id in ids:
            for one in await gate.host.differences(id, project=project):
                if one not in found:
                    found.append(one)
        return replace(checked, differences=tuple(found[:MOST]))

    async def _check(self, gate: Gate, project: str, known: Checked) -> Checked:
        head = await gate.host.head(project)
        if known.hash is None or known.seq < head.base_seq:  # what was checked before is removed by now
            known = replace(known, seq=head.base_seq, hash=head.base_hash)
        elif known.seq > head.base_seq:
            mark = await gate.events(project=project, after=known.seq - 1, limit=1)
            if not mark:
                return replace(known, problem=f"Event {known.seq} was checked here before and is no longer there.")
            if mark[0].hash != known.hash:
                return replace(known, problem=f"Event {known.seq} is another one than was checked here before.")
        left = PIECE
        while left > 0:
            try:
                events = await gate.events(project=project, after=known.seq, limit=min(READ, left))
            except (TypeError, ValueError):  # somebody wrote into the row what no event has
                return replace(known, problem=f"The events after {known.seq} were altered: they cannot be read.")
            known = await asyncio.to_thread(_piece, known, events)
            if known.problem is not None or len(events) < READ:
                break
            left -= len(events)
        return known


def _tells_of_call(event: Event) -> bool:
    return event.call_id is not None and event.type.startswith(("tool.", "approval."))


def _piece(known: Checked, events: list[Event]) -> Checked:
    """Check events one after the other, so that the last good one is known."""
    for event in events:
        assert known.hash is not None
        try:
            verify([event], after=(known.seq, known.hash))
        except ChainError as error:
            return replace(known, problem=str(error))
        known = replace(known, seq=event.seq, hash=event.hash)
    return known
