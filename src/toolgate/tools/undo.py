"""Undo data kept by hand: store it, get it back until its time is over, delete it when it was used."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from os import PathLike
from typing import Any, Protocol, runtime_checkable
from uuid import UUID

import orjson

from toolgate.bootstrap import undo_records
from toolgate.doors.process import ProcessWide
from toolgate.errors import ConflictError, UsageError
from toolgate.kernel.change import Change
from toolgate.kernel.context import as_id
from toolgate.kernel.misuse import explained_class, fits
from toolgate.kernel.payload import encode
from toolgate.kernel.record import evolve
from toolgate.kernel.undo import DEFAULT_UNDO_TTL_S, UndoMetadata, UndoRecord, UndoState
from toolgate.ports.store import UndoRecords

PROJECT = "_undo"
Id = UUID | str

__all__ = ["AnyUndoStore", "UndoMetadata", "UndoStore", "clear_undo_store", "get_undo_store", "set_undo_store"]


@runtime_checkable
class AnyUndoStore(Protocol):
    """What an executor needs of an undo store; an UndoStore is one, and so is any object with these methods."""

    async def store(self, metadata: Any) -> Any: ...

    async def get(self, action_id: Any) -> UndoMetadata | None: ...

    async def delete(self, action_id: Any) -> Any: ...


@explained_class
class UndoStore:
    """Undo data by action id. `open` keeps it in a file or in Redis; without a URL it lives as long as the process."""

    def __init__(self, default_ttl_seconds: float = DEFAULT_UNDO_TTL_S, *, store: UndoRecords | None = None) -> None:
        self.default_ttl_seconds = default_ttl_seconds
        self._store = store if store is not None else undo_records("memory://")
        self._ends: dict[str, datetime] = {}
        """What this object stored and nobody deleted, with the time it expires."""

    @classmethod
    def open(cls, url: str | PathLike[str] = "memory://", *, ttl_seconds: float = DEFAULT_UNDO_TTL_S) -> UndoStore:
        """Return an undo store on a SQLite file, named by its path or as `sqlite:///file.db`, on
        `postgresql://user@host/database` or `redis://host:port/0` (durable, sealed), or on `memory://`.
        """
        return cls(ttl_seconds, store=undo_records(url))

    async def store(
        self,
        metadata: UndoMetadata | Id | None = None,
        *told: str | Mapping[str, Any],
        action_id: Id | None = None,
        tool_name: str = "",
        undo_data: Mapping[str, Any] | None = None,
        ttl_seconds: float | None = None,
    ) -> UndoMetadata:
        """Keep undo data: an UndoMetadata, or an action id and its data, with the tool's name before it or without."""
        for one in told:
            if isinstance(one, str):
                tool_name = one
            else:
                undo_data = one
        if not isinstance(metadata, UndoMetadata):
            id = metadata if action_id is None else action_id
            if id is None or undo_data is None:
                raise UsageError("Give an UndoMetadata, or an action id and its undo data.")
            metadata = UndoMetadata(id, tool_name, dict(undo_data))
        now = datetime.now(UTC)
        record = UndoRecord(
            project=PROJECT,
            call_id=str(metadata.action_id),
            tool_name=metadata.tool_name,
            data=encode(metadata.undo_data, what="undo data"),
            created_at=metadata.created_at.astimezone(UTC),
            expires_at=now + timedelta(seconds=self.default_ttl_seconds if ttl_seconds is None else ttl_seconds),
        )
        await self._write(record, now)
        self._ends.pop(record.call_id, None)
        self._ends[record.call_id] = record.expires_at
        while self._ends[first := next(iter(self._ends))] <= now and first != record.call_id:
            del self._ends[first]  # those stored first expire first, but for a few; the rest goes when somebody counts
        return metadata

    async def get(self, action_id: Id) -> UndoMetadata | None:
        """Return the data of an action; None where there is none, it was deleted or its time is over."""
        record = await self._usable(action_id)
        if record is None:
            return None
        return UndoMetadata(action_id, record.tool_name, orjson.loads(record.data), record.created_at)

    async def get_all(self) -> list[UndoMetadata]:
        """Return what was stored through this object and can still be had."""
        kept = [await self.get(as_id(key)) for key in tuple(self._ends)]
        return [metadata for metadata in kept if metadata is not None]

    async def claim(self, action_id: Id) -> bool:
        """Take the right to use the data of an action, once; False where somebody else has it or it is gone."""
        record = await self._usable(action_id)
        if record is None:
            return False
        with contextlib.suppress(ConflictError):
            await self._write(evolve(record, state=UndoState.CLAIMED), datetime.now(UTC), UndoState.AVAILABLE)
            return True
        return False

    async def release(self, action_id: Id) -> None:
        """Give a claim back, for whoever tries again."""
        record = await self._store.undo(PROJECT, str(action_id))
        if record is not None and record.state is UndoState.CLAIMED:
            await self._write(evolve(record, state=UndoState.AVAILABLE), datetime.now(UTC), UndoState.CLAIMED)

    async def delete(self, action_id: Id) -> bool:
        """Forget the data of an action; False where there was none."""
        record = await self._store.undo(PROJECT, str(action_id))
        if record is None or record.state is UndoState.DONE:
            return False
        await self._write(evolve(record, state=UndoState.DONE, data=b"{}"), datetime.now(UTC))
        self._ends.pop(record.call_id, None)
        return True

    remove = delete

    async def cleanup_expired(self) -> int:
        """Free what has expired, also what nobody asks for again; return how much of what was stored here that was."""
        now = datetime.now(UTC)
        await self._store.due(now, limit=1)
        return self._drop_expired(now)

    def __len__(self) -> int:
        """How much of what was stored through this object can still be had."""
        self._drop_expired(datetime.now(UTC))
        return len(self._ends)

    def _drop_expired(self, now: datetime) -> int:
        expired = [key for key, end in self._ends.items() if end <= now]
        for key in expired:
            del self._ends[key]
        return len(expired)

    async def close(self) -> None:
        """Close the store; what a file keeps stays kept."""
        await self._store.close()

    async def _usable(self, action_id: Id) -> UndoRecord | None:
        record = await self._store.undo(PROJECT, str(action_id))
        if record is not None and record.is_expired(datetime.now(UTC)):
            await self.cleanup_expired()
            return None
        return record if record is not None and record.state is UndoState.AVAILABLE else None

    async def _write(self, record: UndoRecord, now: datetime, expect: UndoState | None = None) -> None:
        writing = self._store.commit(Change(project=PROJECT, at=now, undo=record, undo_expect=expect))
        if writing is not None:
            await writing


_store = ProcessWide(UndoStore)


def get_undo_store() -> UndoStore:
    """Return the process-wide undo store, which executors without one of their own use."""
    return _store.get()


def set_undo_store(store: UndoStore) -> None:
    """Make a store the process-wide one."""
    if not fits(store, UndoStore):
        raise UsageError(f"An undo store is an UndoStore, not {type(store).__name__}.")
    _store.put(store)


def clear_undo_store() -> None:
    """Forget the process-wide store; the next one asked for is new and empty."""
    _store.put(None)
