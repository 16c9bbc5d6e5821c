"""Which servers are alive: each owner keeps a row whose time it pushes on, by the database's clock.

A row, not a lock of the session, since a pooler may give the session to somebody else. Whoever stops pushing counts
as dead after `LEASE_S`; what it claimed is then looked after by others, and its late results meet another version.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta
from time import monotonic
from uuid import UUID

from toolgate.adapters.postgres.link import EVERYTHING, Connection, Link
from toolgate.errors import StoreError

LEASE_S, BEAT_S = 9.0, 2.0
SKEW_THAT_COUNTS = timedelta(seconds=0.5)
KEPT_S = 600.0
"""How long a dead owner's row is kept, so that everybody sees that it died; and the id of a commit, to look it up."""

_PUT = """
INSERT INTO owners (owner, host, started_at, alive_until)
VALUES ($1, $2, now(), clock_timestamp() + make_interval(secs => $3))
ON CONFLICT (owner) DO UPDATE SET alive_until=greatest(owners.alive_until, excluded.alive_until)
"""
"""From when it is done: a transaction that waited for a lock began long before, and must take no time away."""
log = logging.getLogger("toolgate.postgres")


class Lease:
    """Keeps one owner alive. Used on the link's loop, but for `trusts_others`."""

    def __init__(self, link: Link, owner: str, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self.owner = owner
        self._link = link
        self._host = socket.gethostname()
        self._beat_at = -LEASE_S
        self._trust_from = 0.0
        self._beating: asyncio.Task[None] | None = None
        self._skews: deque[timedelta] = deque(maxlen=5)

    @property
    def skew(self) -> timedelta:
        """How far the database's clock is ahead of this machine's; a slow answer does not count."""
        middle = sorted(self._skews)[len(self._skews) // 2] if self._skews else timedelta()
        return middle if abs(middle) >= SKEW_THAT_COUNTS else timedelta()

    @property
    def trusts_others(self) -> bool:
        """Whether the times of others can be believed: not in or just after an outage, when nobody could push on."""
        now = monotonic()
        return now >= self._trust_from and now - self._beat_at < LEASE_S

    def new_id(self) -> UUID:
        """Return the id of a commit, which begins with the database's time: by that it is forgotten."""
        return UUID(int=_id_of(self._clock() + self.skew).int | int.from_bytes(os.urandom(10), "big"))

    async def begin(self) -> None:
        """Be alive from now on, until `end`."""
        await self._beat()
        self._beating = asyncio.get_running_loop().create_task(self._keep_beating())

    @property
    def is_overdue(self) -> bool:
        """Whether the time must be pushed on with the next change, since no beat of its own came through."""
        return monotonic() - self._beat_at > 2 * BEAT_S

    async def renew(self, connection: Connection) -> None:
        """In somebody's transaction: push the time on where that is overdue, so that no claim is made by the dead.

        Not noted, since the transaction may be taken back: the next one does so again, until a beat of its own is done.
        """
        if self.is_overdue:
            await connection.execute(_PUT, self.owner, self._host, LEASE_S)

    def _note(self) -> None:
        now = monotonic()
        if 0 < self._beat_at < now - LEASE_S:
            self._trust_from = now + LEASE_S
        self._beat_at = now

    async def _beat(self) -> None:
        async with self._link.transaction(EVERYTHING, writing=True) as connection:
            asked_at = self._clock()
            theirs: datetime = await connection.fetchval("SELECT clock_timestamp()")
            self._skews.append(theirs - asked_at - (self._clock() - asked_at) / 2)
            await connection.execute(_PUT, self.owner, self._host, LEASE_S)
            await connection.execute("DELETE FROM owners WHERE alive_until < now() - make_interval(secs => $1)", KEPT_S)
            await connection.execute("DELETE FROM commits WHERE id < $1", _id_of(theirs - timedelta(seconds=KEPT_S)))
        self._note()

    async def _keep_beating(self) -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            try:
                await self._beat()
            except StoreError as error:
                log.warning("the heartbeat of this server cannot be written now: %s", error)

    async def end(self) -> None:
        """Count as dead from now on."""
        if self._beating is None:
            return
        self._beating.cancel()
        await asyncio.gather(self._beating, return_exceptions=True)
        self._beating = None
        try:
            async with self._link.transaction(EVERYTHING, writing=True) as connection:
                await connection.execute("UPDATE owners SET alive_until=now() WHERE owner=$1", self.owner)
        except StoreError as error:
            log.warning(
                "the shutdown of this server could not be recorded; others notice it in %g s: %s", LEASE_S, error
            )


def _id_of(at: datetime) -> UUID:
    """The least id of what was made at a time, where ids begin with their time."""
    return UUID(int=int(at.timestamp() * 1000) << 80)
