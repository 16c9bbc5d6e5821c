"""Undo data kept by hand: store it, get it back until its time is over, delete it when it was used."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import orjson

from toolgate.bootstrap import connect
from toolgate.errors import UsageError
from toolgate.kernel.change import Change
from toolgate.kernel.payload import encode
from toolgate.kernel.undo import DEFAULT_UNDO_TTL_S, UndoMetadata, UndoRecord, UndoState
from toolgate.ports.store import Store

PROJECT = "_undo"

__all__ = ["UndoMetadata", "UndoStore"]


class UndoStore:
    """Undo data by action id. `open` keeps it in a file; without a URL it lives as long as the process."""

    def __init__(self, default_ttl_seconds: float = DEFAULT_UNDO_TTL_S, *, store: Store | None = None) -> None:
        self._ttl_s = default_ttl_seconds
        self._store = store if store is not None else connect("memory://")[0]

    @classmethod
    def open(cls, url: str = "memory://", *, ttl_seconds: float = DEFAULT_UNDO_TTL_S) -> UndoStore:
        """Return an undo store on `sqlite:///file.db` (durable, sealed) or `memory://`."""
        return cls(ttl_seconds, store=connect(url)[0])

    async def store(
        self,
        metadata: UndoMetadata | UUID | str,
        undo_data: Mapping[str, Any] | None = None,
        *,
        tool_name: str = "",
        ttl_seconds: float | None = None,
    ) -> UndoMetadata:
        """Keep undo data: an UndoMetadata, or an action id and its data."""
        if not isinstance(metadata, UndoMetadata):
            if undo_data is None:
                raise UsageError("Give an UndoMetadata, or an action id and its undo data.")
            metadata = UndoMetadata(metadata, tool_name, dict(undo_data))
        now = datetime.now(UTC)
        record = UndoRecord(
            project=PROJECT,
            call_id=str(metadata.action_id),
            tool_name=metadata.tool_name,
            data=encode(metadata.undo_data, what="undo data"),
            created_at=metadata.created_at.astimezone(UTC),
            expires_at=now + timedelta(seconds=self._ttl_s if ttl_seconds is None else ttl_seconds),
        )
        await self._write(record, now)
        return metadata

    async def get(self, action_id: UUID | str) -> UndoMetadata | None:
        """Return the data of an action; None where there is none, it was deleted or its time is over."""
        record = await self._store.undo(PROJECT, str(action_id))
        if record is None or record.state is not UndoState.AVAILABLE or record.is_expired(datetime.now(UTC)):
            return None
        return UndoMetadata(action_id, record.tool_name, orjson.loads(record.data), record.created_at)

    async def delete(self, action_id: UUID | str) -> bool:
        """Forget the data of an action; False where there was none."""
        record = await self._store.undo(PROJECT, str(action_id))
        if record is None or record.state is not UndoState.AVAILABLE:
            return False
        await self._write(record.evolve(state=UndoState.DONE, data=b"{}"), datetime.now(UTC))
        return True

    remove = delete

    async def close(self) -> None:
        await self._store.close()

    async def _write(self, record: UndoRecord, now: datetime) -> None:
        writing = self._store.commit(Change(project=PROJECT, at=now, undo=record))
        if writing is not None:
            await writing
