"""Random bytes that are used once, fetched from the system many at a time: asking for each costs ten times as much."""

from __future__ import annotations

import os

_BATCH = 256


class Nonces:
    """Gives out random values of one size, none of them twice, from any thread."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._ready: list[bytes] = []
        os.register_at_fork(after_in_child=self._ready.clear)  # a child must not use its parent's

    def take(self) -> bytes:
        """Return the next one."""
        try:
            return self._ready.pop()
        except IndexError:
            return self._more()

    def _more(self) -> bytes:
        fetched, size = os.urandom(self._size * _BATCH), self._size
        made = [fetched[at : at + size] for at in range(0, len(fetched), size)]
        self._ready.extend(made[1:])
        return made[0]
