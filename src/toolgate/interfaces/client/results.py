"""What the wire says of a call, as the Result a Gate would give."""

from __future__ import annotations

from toolgate.errors import BadAnswerError
from toolgate.kernel.call import Status
from toolgate.kernel.output import Result
from toolgate.kernel.record import evolve
from toolgate.wire.schemas import ExecuteAnswer, Execution, ExecutionRecord, UndoAnswer


def result_of(told: Execution) -> Result:
    """Return where a call stands. BadAnswerError for a status this version does not know."""
    status, code, error = _status(told), told.error_type, told.error
    if status is Status.TIMEOUT and code == "timeout":
        code, error = "approval_timeout", (error or "").removeprefix("timeout: ")
    result = Result(
        call_id=told.tool_id,
        tool_name=told.tool_name,
        status=status,
        data=told.result,
        error=error,
        error_code=code,
        approval_id=told.approval_id,
        duration_ms=told.execution_time_ms,
        timed_out=told.timed_out,
        rule=told.rule,
        reason=told.reason,
        unchecked=told.unchecked if isinstance(told, ExecutionRecord | UndoAnswer) else False,
        joined=told.joined if isinstance(told, ExecuteAnswer) else False,
    )
    if not isinstance(told, ExecutionRecord):
        return result
    return evolve(result, approved_by=told.approved_by, artifacts=tuple(told.artifacts), undo_of=told.undo_of)


def _status(told: Execution) -> Status:
    try:
        return Status(told.internal_status)
    except ValueError:
        raise BadAnswerError("The server sent an unknown status; does it run the same version of Toolgate?") from None
