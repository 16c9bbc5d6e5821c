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
    """Who holds which key of a project. The store's lock is held by whoever calls this."""

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._held: dict[Key, Held] = {}
        self._ends: list[tuple[datetime, Key]] = []

    def check(self, project: str, at: datetime, moves: tuple[Move, ...]) -> None:
        """Raise EffectHeldError where a key is not held as a move expects."""
        for move in moves:
            found = self._held.get((project, move[0]))
            if found is not None or move[1] is not None:  # otherwise it is nobody's, as it should be
                check_move(move, found, at)

    def move(self, project: str, at: datetime, moves: tuple[Move, ...], is_kept: Callable[[Key], bool]) -> None:
        """Make moves that were checked. `is_kept` says whether a call is remembered."""
        held = self._held
        for name, expect, holder, until, how in moves:
            key = (project, name)
            if how is _HARD and expect == holder:
                continue  # it only looks
            if how is How.SOFT and ((found := held.get(key)) is None or found[0] != expect):
                continue
            if holder is None:
                held.pop(key, None)
                continue
            held[key] = (holder, until)
            if until is not None:
                heapq.heappush(self._ends, (until, key))
        if self._ends:
            self._free(at)
        if len(held) > self._most:
            self._forget_one(is_kept)

    def _free(self, now: datetime) -> None:
        while self._ends and self._ends[0][0] <= now:
            until, key = heapq.heappop(self._ends)
            if self._held.get(key, ("", None))[1] == until:
                del self._held[key]

    def _forget_one(self, is_kept: Callable[[Key], bool]) -> None:
        for key in islice(self._held, _LOOKED_AT):
            if not is_kept((key[0], self._held[key][0])):
                del self._held[key]
                return
