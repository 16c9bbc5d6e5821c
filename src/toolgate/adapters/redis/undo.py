"""Undo data in Redis: sealed, gone when its time is over, and changed only from the state somebody expects.

Holds undo records and nothing else: calls, approvals and events belong into a store that keeps what it confirmed.
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from toolgate.adapters.sealing import load
from toolgate.errors import ConflictError, StoreError, UsageError
from toolgate.kernel.change import Change
from toolgate.kernel.undo import UndoRecord, UndoState
from toolgate.ports.store import Due

KEY_FILE = "toolgate-redis.key"
PATIENCE_S = 2.0
PREFIX = "toolgate:undo"

# Redis runs a script as one step, so the state that was expected is the state that is replaced. No two boxes are alike:
# one that is there already was sent before, and its answer was lost.
_WRITE = """
if redis.call('HGET', KEYS[1], 'box') == ARGV[3] then return 1 end
local state = redis.call('HGET', KEYS[1], 'state')
if ARGV[1] ~= '' and state ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'state', ARGV[2], 'box', ARGV[3])
redis.call('PEXPIREAT', KEYS[1], ARGV[4])
return 1
"""


class RedisUndo:
    """Undo records by project and call id. Safe to use from several threads and event loops at once."""

    def __init__(self, url: str, *, key_file: Path | None = None) -> None:
        try:
            self._client: Any = redis.Redis.from_url(
                url,
                socket_timeout=PATIENCE_S,
                socket_connect_timeout=PATIENCE_S,
                retry=Retry(NoBackoff(), 1),  # a connection that died while idle is made anew
                client_name="toolgate-undo",
            )
        except ValueError as error:
            raise UsageError("This is not a Redis URL: write redis://host:port/0 or rediss://...") from error
        parts = urlsplit(url)
        self._where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        self._sealer = load(key_file or Path(KEY_FILE), create=True)

    async def commit(self, change: Change) -> None:
        """Write the undo record of a change, if the stored one is in the expected state; ConflictError if not."""
        record = change.undo
        if record is None:
            return
        name = _name(record.project, record.call_id)
        box = self._sealer.seal(_encode(record), name)
        expect = "" if change.undo_expect is None else change.undo_expect.value
        ends = max(1, round(record.expires_at.timestamp() * 1000))
        written = await self._do(self._client.eval, _WRITE, 1, name, expect, record.state.value, box, ends)
        if not written:
            raise ConflictError(f"The undo data of action {record.call_id[:64]} is not as expected: somebody has it.")

    async def undo(self, project: str, call_id: str) -> UndoRecord | None:
        """Return the record; None where there is none or its time is over."""
        name = _name(project, call_id)
        state, box = await self._do(self._client.hmget, name, "state", "box")
        if state is None or box is None:
            return None
        return _decode(project, call_id, state.decode(), self._sealer.open(box, name))

    async def due(self, _now: datetime, *, limit: int = 100) -> Due:
        """Nothing is ever due here: Redis frees what has expired by itself."""
        return Due([], None)

    async def close(self) -> None:
        await asyncio.to_thread(self._client.close)

    async def _do(self, command: Any, *given: Any) -> Any:
        try:
            return await asyncio.to_thread(command, *given)
        except redis.RedisError as error:
            raise StoreError(
                f"The undo store {self._where} cannot be used now ({type(error).__name__}). "
                "Nothing was changed for certain; start Redis, or look at its log, and try again."
            ) from error


def _name(project: str, call_id: str) -> bytes:
    return f"{PREFIX}:{project}:{call_id}".encode()


def _encode(record: UndoRecord) -> bytes:
    told = {
        "tool_name": record.tool_name,
        "data": record.data.decode(),
        "created_at": record.created_at.isoformat(),
        "expires_at": record.expires_at.isoformat(),
        "fingerprint": None if record.fingerprint is None else record.fingerprint.decode(),
        "claimed_by": record.claimed_by,
    }
    return orjson.dumps(told)


def _decode(project: str, call_id: str, state: str, body: bytes) -> UndoRecord:
    told = orjson.loads(body)
    return UndoRecord(
        project=project,
        call_id=call_id,
        tool_name=told["tool_name"],
        data=told["data"].encode(),
        created_at=datetime.fromisoformat(told["created_at"]),
        expires_at=datetime.fromisoformat(told["expires_at"]),
        state=UndoState(state),
        fingerprint=None if told["fingerprint"] is None else told["fingerprint"].encode(),
        claimed_by=told["claimed_by"],
    )
