"""The events of this door: the nine names documents 000 and 001 use, as classes and as an event sink gets them.

The gate records more than these (its whole list is in the event reference); what it calls by a name that the
documents do not know is told by the nearest one they do, or not at all.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any, ClassVar
from uuid import UUID

from toolgate.kernel.approval import plain_question
from toolgate.kernel.artifact import ApprovalArtifact, summary_of
from toolgate.kernel.misuse import explained

Id = UUID | str


def _now() -> str:
    return datetime.now(UTC).isoformat()


@dataclass(frozen=True, kw_only=True)
class ToolgateEvent:
    """What every event carries besides its own fields."""

    type: ClassVar[str] = ""
    pipeline_run_id: Id | None = None
    timestamp: str = field(default_factory=_now)

    def to_dict(self) -> dict[str, Any]:
        """Return the event as JSON types, with its type."""
        told = {item.name: getattr(self, item.name) for item in fields(self)}
        return {"type": self.type} | {name: str(v) if isinstance(v, UUID) else v for name, v in told.items()}


@dataclass(frozen=True, kw_only=True)
class ToolEventBase(ToolgateEvent):
    """An event of a call; `request_id` is what the caller's context says."""

    request_id: Id | None = None


@dataclass(frozen=True)
class ToolInvokedEvent(ToolEventBase):
    type: ClassVar[str] = "tool.invoked"
    tool_name: str
    action_id: Id
    payload_summary: Any = None
    behavior: str | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class ToolStartedEvent(ToolEventBase):
    type: ClassVar[str] = "tool.started"
    tool_name: str
    action_id: Id
    approved_by: str | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class ToolCompletedEvent(ToolEventBase):
    type: ClassVar[str] = "tool.completed"
    tool_name: str
    action_id: Id
    duration_ms: float = 0.0
    output_summary: Any = None
    success: bool = field(default=True, kw_only=True)
    artifacts_count: int = field(default=0, kw_only=True)
    artifact_type: str | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class ToolFailedEvent(ToolEventBase):
    type: ClassVar[str] = "tool.failed"
    tool_name: str
    action_id: Id
    error_code: str = "execution_failed"
    error_message: str = ""
    duration_ms: float | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class ToolDeniedEvent(ToolEventBase):
    type: ClassVar[str] = "tool.denied"
    tool_name: str
    action_id: Id
    reason: str = ""
    message: str = field(default="", kw_only=True)


@dataclass(frozen=True)
class ToolUndoneEvent(ToolEventBase):
    type: ClassVar[str] = "tool.undone"
    tool_name: str
    action_id: Id
    duration_ms: float = 0.0


@dataclass(frozen=True)
class ToolUndoFailedEvent(ToolEventBase):
    type: ClassVar[str] = "tool.undo_failed"
    tool_name: str
    action_id: Id
    error: str = ""
    error_code: str | None = field(default=None, kw_only=True)


@dataclass(frozen=True, kw_only=True)
class ApprovalEventBase(ToolgateEvent):
    """An event of an approval, whose id is `request_id`."""

    action_id: Id | None = None
    correlation_request_id: Id | None = None


@dataclass(frozen=True)
class ApprovalRequestedEvent(ApprovalEventBase):
    type: ClassVar[str] = "approval.requested"
    request_id: Id
    tool_name: str
    message: str = ""

    @property
    def approval_message(self) -> str:
        return self.message


@dataclass(frozen=True)
class ApprovalDecidedEvent(ApprovalEventBase):
    type: ClassVar[str] = "approval.decided"
    request_id: Id
    decision: str
    decided_by: Id | None = None
    tool_name: str = field(default="", kw_only=True)
    reason: str | None = field(default=None, kw_only=True)


_CLASSES: dict[str, type[Any]] = {
    kind.type: kind
    for kind in (
        ToolInvokedEvent,
        ToolStartedEvent,
        ToolCompletedEvent,
        ToolFailedEvent,
        ToolDeniedEvent,
        ToolUndoneEvent,
        ToolUndoFailedEvent,
        ApprovalRequestedEvent,
        ApprovalDecidedEvent,
    )
}
EVENT_TYPES = tuple(_CLASSES)
"""The nine names, in the order documents 000 and 001 list them."""

_BEYOND = frozenset({"tool.progress", "tool.late_result", "tool.settled", "tool.still_unknown"})
"""What only happens to tools that go beyond the documents: passed on as it is."""


@explained
def event_of(type: str, data: dict[str, Any]) -> ToolgateEvent:
    """Return what a sink was told as its event class; raise KeyError for a name that has none."""
    kind = _CLASSES[type]
    names = {item.name for item in fields(kind)}
    event: ToolgateEvent = kind(**{name: value for name, value in data.items() if name in names})
    return event


def render(name: str, data: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Tell an event of the gate in this door's words; None where they have none for it.

    What was said may have been destroyed since, so an event is told without it, too.
    """
    if name == "tool.cancelled":
        # The one who waited went away. The documents know no such end, only one that is not a success.
        return "tool.failed", {**data, "error_code": "cancelled", "error_message": data.get("message", "")}
    if name == "approval.requested":
        return name, {**data, "approval_message": data.get("message", ""), "artifact": _artifact(data)}
    return (name, data) if name in _CLASSES or name in _BEYOND else None


def _artifact(asked: dict[str, Any]) -> dict[str, Any]:
    """What a client shows the person who is asked, made of an `approval.requested` event."""
    arguments = asked.get("payload_summary")
    return ApprovalArtifact(
        request_id=asked["request_id"],
        tool_name=asked["tool_name"],
        message=asked.get("message", plain_question(asked["tool_name"])),
        action_summary=summary_of(asked["tool_name"], arguments),
        arguments=arguments,
        run_id=asked["pipeline_run_id"],
        level=asked["level"],
        risk=asked["risk_level"],
        reasons=tuple(asked.get("reasons", ())),
        confidence=asked["confidence"],
        expires_at=datetime.fromisoformat(asked["expires_at"]),
        digest=asked["digest"],
    ).to_dict()


def render_all(name: str, data: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Tell an event as `render` does, and an undo's beginning too: for a sink without which nothing may run."""
    return (name, data) if name == "tool.undo_started" else render(name, data)
