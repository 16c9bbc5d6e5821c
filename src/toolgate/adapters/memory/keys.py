"""The keys that calls of a single process share, bounded like everything the process remembers."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from datetime import datetime
from itertools import islice

from toolgate.adapters.held import Held, check_move
from toolgate.kernel.holding import How, Move

Key = tuple[str, str]
_HARD = How.HARD  # bound once: an enum's attributes are slow to look up
_LOOKED_AT = 64
"""How many of the oldest keys are looked at for one to forget: the calls of the others are still remembered."""


class Keys:
    """Who holds which key, by project: at most so many in each. The store's lock is held by whoever calls this."""

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._held: dict[str, dict[str, Held]] = {}
        self._ends: list[tuple[datetime, Key]] = []

    def check(self, project: str, at: datetime, moves: tuple[Move, ...]) -> None:
        """Raise EffectHeldError where a key is not held as a move expects."""
        held = self._held.get(project) or {}
        for move in moves:
            found = held.get(move[0])
            if found is not None or move[1] is not None:  # otherwise it is nobody's, as it should be
                check_move(move, found, at)

    def move(self, project: str, at: datetime, moves: tuple[Move, ...], is_kept: Callable[[Key], bool]) -> None:
        """Make moves that were checked. `is_kept` says whether a call is remembered."""
        held = self._held.get(project)
        if held is None:
            held = self._held[project] = {}
        for name, expect, holder, until, how in moves:
            if how is _HARD and expect == holder:
                continue  # it only looks
            if how is How.SOFT and ((found := held.get(name)) is None or found[0] != expect):
                continue
            if holder is None:
                held.pop(name, None)
                continue
            held[name] = (holder, until)
            if until is not None:
                heapq.heappush(self._ends, (until, (project, name)))
        if self._ends:
            self._free(at)
        if len(held) > self._most:
            _forget_one(project, held, is_kept)
        elif not held:
            self._held.pop(project, None)

    def _free(self, now: datetime) -> None:
        while self._ends and self._ends[0][0] <= now:
            until, (project, name) = heapq.heappop(self._ends)
            held = self._held.get(project, {})
            if held.get(name, ("", None))[1] == until:
                del held[name]


def _forget_one(project: str, held: dict[str, Held], is_kept: Callable[[Key], bool]) -> None:
    for name in islice(held, _LOOKED_AT):
        if not is_kept((project, held[name][0])):
            del held[name]
            return
