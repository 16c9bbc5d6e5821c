"""What a tool returns (ToolOutput) and what a caller gets (Result)."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from toolgate import errors
from toolgate.kernel.call import Call, Status
from toolgate.kernel.record import record


@dataclass(slots=True)
class ToolOutput:
    """What a handler returns: success with data, or failure with an error text."""

    success: bool
    data: Any = None
    error: str | None = None
    undo_metadata: dict[str, Any] | None = None
    artifacts: list[Any] = field(default_factory=list)

    @classmethod
    def ok(
        cls,
        data: Any = None,
        *,
        undo_metadata: dict[str, Any] | None = None,
        artifacts: list[Any] | None = None,
    ) -> ToolOutput:
        return cls(success=True, data=data, undo_metadata=undo_metadata, artifacts=artifacts or [])

    @classmethod
    def fail(cls, error: str, *, data: Any = None) -> ToolOutput:
        return cls(success=False, data=data, error=error)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-serialisable mapping of every field."""
        from toolgate.kernel.payload import plain  # here: payload knows ToolOutput too

        return {
            "success": self.success,
            "data": plain(self.data),
            "error": self.error,
            "undo_metadata": plain(self.undo_metadata),
            "artifacts": plain(self.artifacts),
        }


@record
class Result:
    """Where a call stands. Final results answer `unwrap`; pending ones say what they wait for."""

    call_id: str
    tool_name: str
    status: Status
    data: Any = None
    error: str | None = None
    error_code: str | None = None
    approval_id: str | None = None
    approved_by: str | None = None
    duration_ms: float | None = None
    artifacts: tuple[Any, ...] = ()
    undo_of: str | None = None
    unchecked: bool = False
    """Whether it is an undo that could not see what others changed since."""
    timed_out: bool = False
    """Whether time ended it, also where its outcome is UNKNOWN."""
    rule: str | None = None
    """The rule that refused it, where one did."""
    reason: str | None = None
    """Why it was refused: what the rule says, or the person who said no."""
    joined: bool = False
    """Whether the call had been made before, by somebody else or earlier: nothing ran because of this one."""
    output: ToolOutput | None = field(default=None, compare=False, repr=False)
    """What the handler returned, where it ran for this caller and returned a ToolOutput."""
    cause: BaseException | None = field(default=None, compare=False, repr=False)

    @property
    def success(self) -> bool:
        return self.status is Status.COMPLETED

    @property
    def is_final(self) -> bool:
        return self.status.is_final

    @property
    def is_pending(self) -> bool:
        return not self.status.is_final

    @property
    def category(self) -> str | None:
        """Which kind of failure this is, for who must tell them apart; None where it is none."""
        if self.status is Status.COMPLETED or not self.status.is_final:
            return None
        known = "timeout" if self.timed_out else _CATEGORIES.get(self.error_code or "")
        if known is not None:
            return known
        ran = self.status in (Status.FAILED, Status.UNKNOWN) and self.duration_ms is not None
        return "exception" if ran else "permission"

    def unwrap(self) -> Any:
        """Return the data of a completed call; raise the documented error for any other end."""
        if self.status is Status.COMPLETED:
            return self.data
        raise self.to_error()

    def to_error(self) -> errors.ToolgateError:
        """Return the error this result stands for."""
        if not self.status.is_final:
            return errors.UsageError(
                f"Call {self.call_id} is {self.status}; wait for it with `gate.wait` or call with wait=True."
            )
        kind = _ERRORS.get(self.error_code or "") or _BY_STATUS.get(self.status, errors.ToolExecutionError)
        if self.timed_out and self.status is Status.UNKNOWN:
            kind = errors.ToolUnknownTimeoutError
        error = kind(self.error or kind.default_text, tool=self.tool_name)
        error.__cause__ = self.cause
        return error


_CATEGORIES: dict[str, str] = {
    "tool_not_found": "not_found",
    "invalid_arguments": "validation",
    "timeout": "timeout",
    "resource_exhausted": "resources",
    "unknown": "unknown",
}

_BY_STATUS: dict[Status, type[errors.ToolError]] = {
    Status.DENIED: errors.ToolDeniedError,
    Status.REJECTED: errors.ToolApprovalDeniedError,
    Status.TIMEOUT: errors.ToolApprovalTimeoutError,
    Status.CANCELLED: errors.ToolCancelledError,
    Status.UNKNOWN: errors.ToolUnknownOutcomeError,
}

_ERRORS: dict[str, type[errors.ToolError]] = {
    kind.code: kind
    for kind in (
        errors.ToolNotFoundError,
        errors.ToolInputError,
        errors.NotExecuted,
        errors.ToolTimeoutError,
        errors.ToolOutputError,
        errors.ToolUndoError,
        errors.ToolUnknownOutcomeError,
    )
}
_ERRORS["undo_conflict"] = errors.ToolUndoError


def result_of(
    call: Call, *, data: Any = None, cause: BaseException | None = None, output: ToolOutput | None = None
) -> Result:
    """Return the caller's view of a call; `data` is a copy nobody else holds."""
    return Result(
        call_id=call.id,
        tool_name=call.tool_name,
        status=call.status,
        data=data,
        approval_id=call.approval_id,
        approved_by=call.approved_by,
        duration_ms=call.duration_ms,
        error=call.error,
        error_code=call.error_code,
        timed_out=call.timed_out,
        artifacts=copy.deepcopy(call.artifacts) if call.artifacts else (),
        undo_of=call.undo_of,
        unchecked=call.undo_of is not None and call.unchecked,
        rule=call.rule,
        reason=call.reason,
        cause=cause,
        output=output,
    )
