"""What it takes to undo a call: the data its handler gets, and the record that lets it run only once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from toolgate.kernel.context import as_id
from toolgate.kernel.record import record

DEFAULT_UNDO_TTL_S = 3600.0


@dataclass(slots=True)
class UndoMetadata:
    """What an undo handler receives. A time given as ISO 8601 text is read; one without a zone is UTC."""

    action_id: UUID | str
    tool_name: str
    undo_data: dict[str, Any]
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __post_init__(self) -> None:
        if isinstance(self.created_at, str):
            at = datetime.fromisoformat(self.created_at)
            self.created_at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values, which `from_dict` reads; the data must be JSON itself."""
        return {
            "action_id": str(self.action_id),
            "tool_name": self.tool_name,
            "undo_data": self.undo_data,
            "created_at": self.created_at.isoformat(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> UndoMetadata:
        """Return what `to_dict` wrote. An id that spells a UUID comes back as one; without a time it is now."""
        known = {"created_at": data["created_at"]} if data.get("created_at") else {}
        return cls(as_id(data["action_id"]), data["tool_name"], dict(data["undo_data"]), **known)


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
