"""What several servers gave to whom, remembered together in Redis. A Redis that is lost costs a second look."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any

from limits.errors import StorageError

from toolgate.interfaces.server.served import ServedHere

PATIENCE_S = 0.25
KEPT_S = 7 * 86400
"""How long it is remembered that somebody saw something: no question waits longer."""
log = logging.getLogger("toolgate.server")


class SharedServed:
    """What `ServedHere` does, for all servers on one Redis together. Pieces add up where they were given."""

    def __init__(self, storage: Any, *, patience_s: float = PATIENCE_S) -> None:
        self._storage, self._patience_s = storage, patience_s
        self._own = ServedHere()

    async def note(self, account: str, approval_id: str, parts: Iterable[str]) -> None:
        parts = tuple(parts)
        fresh = [part for part in parts if not await self._own.has(account, approval_id, (part,))]
        await self._own.note(account, approval_id, parts)
        await self._tell(account, approval_id, fresh)

    async def note_piece(self, account: str, approval_id: str, part: str, *, offset: int, next: int | None) -> None:
        if self._own.piece(account, approval_id, part, offset=offset, next=next):
            await self._tell(account, approval_id, [part])

    async def has(self, account: str, approval_id: str, parts: Iterable[str]) -> bool:
        missing = [part for part in parts if not await self._own.has(account, approval_id, (part,))]
        if not missing:
            return True
        try:
            async with asyncio.timeout(self._patience_s):
                return all([await self._storage.get(_key(account, approval_id, part)) > 0 for part in missing])
        except (StorageError, TimeoutError, OSError) as error:
            log.warning("Redis does not say what was shown (%s)", type(error).__name__)
            return False

    async def _tell(self, account: str, approval_id: str, parts: list[str]) -> None:
        try:
            async with asyncio.timeout(self._patience_s):
                for part in parts:
                    await self._storage.incr(_key(account, approval_id, part), KEPT_S)
        except (StorageError, TimeoutError, OSError) as error:
            log.warning("Redis does not remember what was shown (%s); this server does", type(error).__name__)


def _key(account: str, approval_id: str, part: str) -> str:
    return f"served/{account}/{approval_id}/{part}"
