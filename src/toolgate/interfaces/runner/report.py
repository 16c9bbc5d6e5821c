"""How the end of a call here is told to the server, in words an agent there can act on."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from toolgate.kernel.call import Status
from toolgate.kernel.output import Result

KEPT = {"kept_by": "runner"}
"""What the server keeps for an undo: that the runner can. What was there before never leaves this machine."""
NOT_BEGUN = "The runner was stopped before this began; nothing ran. Ask for it again."
"""What is told of a signal the journal knows no call of."""


class Report(NamedTuple):
    """What is posted to `tools/{tool_id}/result`."""

    status: Literal["completed", "failed", "unknown"]
    result: Any = None
    error: str | None = None
    undo: dict[str, Any] | None = None

    @property
    def is_good(self) -> bool:
        return self.status == "completed"


_SAID: dict[Status, str] = {
    Status.DENIED: "The policy of the runner's machine does not allow this",
    Status.REJECTED: "The person at the runner's machine said no",
    Status.TIMEOUT: "Nobody at the runner's machine answered in time; nothing ran",
    Status.CANCELLED: "It was stopped at the runner",
}


def report_of(result: Result, *, undoable: bool = False) -> Report:
    """Return what the server is told of a final result; the data are the real ones."""
    if result.status is Status.COMPLETED:
        return Report("completed", result.data, undo=dict(KEPT) if undoable else None)
    error = result.error or "it did not say why"
    if result.status is Status.UNKNOWN:
        return Report("unknown", error=f"At the runner: {error}")
    said = _SAID.get(result.status)
    return Report("failed", result.data, error=f"{said}: {error}" if said else error)


def without_data(report: Report, size: int, *, has_effects: bool) -> Report:
    """Return a report the server can take instead of one whose data it refused: honest about what ran."""
    why = f"The server did not take the result ({size} bytes); it is kept in the runner's journal."
    if report.is_good and has_effects:
        return report._replace(result={"omitted": why})
    return report._replace(status="failed" if report.is_good else report.status, result=None, error=why)
