"""What a runner tells its user: one notice for each thing that happens, for screens, lines and programs alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Protocol


class Kind(StrEnum):
    """What happened. The names are those of `--json`."""

    CHECKED = "checked"  # the start-up check found something out
    CONNECTED = "connected"
    DISCONNECTED = "disconnected"
    SIGNAL = "signal"  # the server wants something done
    IGNORED = "ignored"  # a signal that is not acted upon: unreadable, a duplicate, another call's id
    ASKING = "asking"  # the local policy asks a person here
    STARTED = "started"
    PROGRESS = "progress"
    ENDED = "ended"
    RECALLED = "recalled"  # the server wants a call to stop
    LOST = "lost"  # the server no longer waits for a call
    DELIVERED = "delivered"
    REFUSED = "refused"  # the server does not want a result any more
    KEPT = "kept"  # a result could not be delivered yet
    STOPPING = "stopping"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One thing that happened. `text` is safe to print; `data` holds nothing secret."""

    kind: Kind
    text: str = ""
    tool_id: str | None = None
    tool_name: str | None = None
    data: dict[str, Any] = field(default_factory=dict)
    at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def as_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {"event": self.kind.value, "at": self.at.isoformat(timespec="milliseconds")}
        told |= {name: value for name in ("tool_id", "tool_name") if (value := getattr(self, name)) is not None}
        return told | ({"text": self.text} if self.text else {}) | self.data


Tell = Callable[[Notice], None]


class View(Protocol):
    """Who is told. Called on the runner's loop; must return at once."""

    def tell(self, notice: Notice) -> None: ...

    def pause(self) -> None:
        """Leave the terminal to somebody who asks a question there."""
        ...

    def resume(self) -> None: ...

    def close(self) -> None: ...
