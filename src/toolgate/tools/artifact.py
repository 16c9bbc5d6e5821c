"""What a client shows a person who is asked: the question, what would run, and the two answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

OPTIONS = ("approve", "deny")


@dataclass(frozen=True)
class ApprovalArtifact:
    """A question for the user interface. `summary` are the masked arguments."""

    request_id: UUID | str
    tool_name: str
    message: str
    options: list[str] = field(default_factory=lambda: list(OPTIONS))
    summary: Any = None
    action_id: UUID | str | None = None
    type: str = "approval"

    @property
    def action_summary(self) -> Any:
        return self.summary

    @classmethod
    def of(cls, asked: Mapping[str, Any]) -> ApprovalArtifact:
        """Return the artifact of an `approval.requested` event's data."""
        return cls(
            request_id=asked["request_id"],
            tool_name=asked["tool_name"],
            message=asked["message"],
            summary=asked.get("payload_summary"),
            action_id=asked.get("action_id"),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the artifact as JSON types."""
        return {
            "type": self.type,
            "request_id": str(self.request_id),
            "tool_name": self.tool_name,
            "message": self.message,
            "options": list(self.options),
            "action_id": None if self.action_id is None else str(self.action_id),
            "action_summary": self.summary,
        }
