"""What it takes to undo a call: the data its handler gets, and the record that lets it run only once."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from toolgate.kernel.record import record

DEFAULT_UNDO_TTL_S = 3600.0


@dataclass(slots=True)
class UndoMetadata:
    """What an undo handler receives."""

    action_id: UUID | str
    tool_name: str
    undo_data: dict[str, Any]
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))


class UndoState(StrEnum):
    PREPARED = "prepared"  # durable before the effect; the effect is not known to have happened
    AVAILABLE = "available"
    CLAIMED = "claimed"  # an undo call is running
    DONE = "done"


@record
class UndoRecord:
    """How one call can be undone, until when, and by which undo call it is or was."""

    project: str
    call_id: str
    tool_name: str
    data: bytes
    created_at: datetime
    expires_at: datetime
    state: UndoState = UndoState.AVAILABLE
    fingerprint: bytes | None = None
    claimed_by: str | None = None

    def is_expired(self, now: datetime) -> bool:
        return now >= self.expires_at
