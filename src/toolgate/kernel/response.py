"""A result in document 004's words: the response an agent gets, with lower-case states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from toolgate.kernel.call import Status
from toolgate.kernel.output import Result

_SHOWN = {
    Status.DENIED: "failed",
    Status.UNKNOWN: "failed",
    Status.CANCELLED: "rejected",
    Status.TIMEOUT: "rejected",
}


@dataclass(frozen=True, kw_only=True)
class ToolResponse:
    """What became of a call, by attributes. `status` is `completed`, `failed`, `rejected`, or where it still is."""

    tool_id: str
    tool_name: str
    status: str
    result: Any = None
    error: str | None = None
    error_type: str | None = None
    approval_id: str | None = None

    @property
    def success(self) -> bool:
        return self.status == "completed"

    @classmethod
    def of(cls, result: Result) -> ToolResponse:
        """Return the response that tells of a result. A timeout is a rejection whose error says `timeout`."""
        error = "timeout" if result.status is Status.TIMEOUT else result.error
        return cls(
            tool_id=result.call_id,
            tool_name=result.tool_name,
            status=_SHOWN.get(result.status, result.status.value.lower()),
            result=result.data,
            error=error,
            error_type=result.error_code,
            approval_id=result.approval_id,
        )
