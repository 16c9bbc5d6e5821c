"""How often: a bucket of requests for each account, and of failed sign-ins for each address.

The library `limits` counts where several servers do so together; alone, its windows in memory would keep any number of
keys, look through all of them at each request (2 ms at 10,000 addresses, a bucket 2 us) and read the wall clock.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from time import monotonic
from typing import Protocol

MOST_BUCKETS = 10_000


class Limit(Protocol):
    """How often a key may do something: counted by this server, or by all together."""

    async def take(self, key: str) -> float:
        """Take one; 0.0 where it was there, else the seconds until the next one is."""
        ...


class Buckets:
    """Each key may take `burst` at once and `per_second` in the long run."""

    def __init__(self, per_second: float, burst: int, *, clock: Callable[[], float] = monotonic) -> None:
        self._rate, self._burst, self._clock = per_second, float(burst), clock
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    async def take(self, key: str) -> float:
        """Take one; 0.0 where it was there, else the seconds until the next one is."""
        now = self._clock()
        level, at = self._levels.get(key, (self._burst, now))
        level = min(self._burst, level + (now - at) * self._rate)
        if level < 1.0:
            return (1.0 - level) / self._rate
        self._levels[key] = (level - 1.0, now)
        self._levels.move_to_end(key)
        if len(self._levels) > MOST_BUCKETS:
            self._levels.popitem(last=False)
        return 0.0
