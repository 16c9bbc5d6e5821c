"""What the wire says of a call, as the Result a Gate would give."""

from __future__ import annotations

from toolgate.errors import BadAnswerError
from toolgate.kernel.call import Status
from toolgate.kernel.output import Result
from toolgate.wire.schemas import ExecuteAnswer, Execution, ExecutionRecord, UndoAnswer

_ENDS = {
    ("rejected", "timeout"): Status.TIMEOUT,
    ("rejected", "unclaimed"): Status.TIMEOUT,
    ("rejected", "cancelled"): Status.CANCELLED,
    ("failed", "unknown"): Status.UNKNOWN,
    ("failed", "denied"): Status.DENIED,
    ("failed", "rate_limited"): Status.DENIED,
    ("failed", "effect_held"): Status.DENIED,
    ("failed", "approval_mismatch"): Status.DENIED,
    ("failed", "approval_unmarked"): Status.DENIED,
}
"""The ends an answer has no word of its own for; a record says which it was."""


def result_of(told: Execution) -> Result:
    """Return where a call stands. BadAnswerError for a status this version does not know."""
    status, code, error = _status(told), told.error_type, told.error
    if status is Status.TIMEOUT and code == "timeout":
        code, error = "approval_timeout", (error or "").removeprefix("timeout: ")
    fields = {
        "call_id": told.tool_id,
        "tool_name": told.tool_name,
        "status": status,
        "data": told.result,
        "error": error,
        "error_code": code,
        "approval_id": told.approval_id,
    }
    if isinstance(told, ExecutionRecord):
        fields |= {
            "approved_by": told.approved_by,
            "duration_ms": told.execution_time_ms,
            "artifacts": tuple(told.artifacts),
            "undo_of": told.undo_of,
        }
    if isinstance(told, ExecutionRecord | UndoAnswer):
        fields["unchecked"] = told.unchecked
    if isinstance(told, ExecuteAnswer):
        fields["joined"] = told.joined
    return Result(**fields)


def _status(told: Execution) -> Status:
    if not isinstance(told, ExecutionRecord):
        return _ENDS.get((told.status, told.error_type or ""), Status(told.status.upper()))
    try:
        return Status(told.internal_status)
    except ValueError:
        raise BadAnswerError("The server sent an unknown status; does it run the same version of Toolgate?") from None
