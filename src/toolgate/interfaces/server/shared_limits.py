"""Limits that several servers keep together, counted in Redis. Without Redis each server keeps its own.

Every server asks its own bucket first, so one that was refused costs Redis nothing, and a Redis that is lost
costs one short wait every few seconds and no request.
"""

from __future__ import annotations

import asyncio
import logging
import math
from time import monotonic, time
from typing import Any

from limits import RateLimitItemPerSecond
from limits.aio.storage import RedisStorage
from limits.aio.strategies import SlidingWindowCounterRateLimiter
from limits.errors import StorageError

from toolgate.bootstrap import REDIS
from toolgate.errors import UsageError
from toolgate.interfaces.server.limits import Buckets

PATIENCE_S = 0.25
AGAIN_S = 5.0
"""How long a Redis that failed is left alone."""
log = logging.getLogger("toolgate.server")


def shared_storage(url: str) -> Any:
    """Return where several servers count; nothing is connected before the first request."""
    if not url.startswith(REDIS):
        raise UsageError("This is not a Redis URL: write redis://host:port/0 or rediss://...")
    return RedisStorage(f"async+{url}", wrap_exceptions=True, implementation="redispy", key_prefix="toolgate:limit")


async def close_storage(storage: Any) -> None:
    """Close the connections; the library leaves them open."""
    await storage.bridge.storage.aclose()


class SharedBuckets:
    """What `Buckets` does, for all servers on one Redis together."""

    def __init__(
        self, name: str, storage: Any, per_second: float, burst: int, *, patience_s: float = PATIENCE_S
    ) -> None:
        self._name, self._patience_s = name, patience_s
        self._own = Buckets(per_second, burst)
        self._item = RateLimitItemPerSecond(burst, max(1, math.ceil(burst / per_second)))
        self._limiter = SlidingWindowCounterRateLimiter(storage)
        self._lost_at: float | None = None

    async def take(self, key: str) -> float:
        """Take one; 0.0 where it was there, else the seconds until the next one is."""
        wait = await self._own.take(key)
        if wait or (self._lost_at is not None and monotonic() - self._lost_at < AGAIN_S):
            return wait
        try:
            async with asyncio.timeout(self._patience_s):
                if await self._limiter.hit(self._item, self._name, key):
                    self._lost_at = None
                    return 0.0
                stats = await self._limiter.get_window_stats(self._item, self._name, key)
        except (StorageError, TimeoutError, OSError) as error:
            if self._lost_at is None:
                log.warning("Redis does not count requests now (%s); this server does", type(error).__name__)
            self._lost_at = monotonic()
            return 0.0
        return max(0.05, min(stats.reset_time - time(), self._item.get_expiry()))
