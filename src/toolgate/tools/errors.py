"""The errors of the tools door: those of the whole package, under the names documents 000 and 001 use, and one more."""

from toolgate.errors import (
    ConflictError,
    DecisionConflictError,
    DefinitionError,
    NotFoundError,
    ToolApprovalDeniedError,
    ToolApprovalTimeoutError,
    ToolCancelledError,
    ToolDeniedError,
    ToolError,
    ToolExecutionError,
    ToolInputError,
    ToolNotFoundError,
    ToolOutputError,
    ToolTimeoutError,
    ToolUndoError,
    ToolUnknownOutcomeError,
    ToolUnknownTimeoutError,
)


class ApprovalWaitTimeoutError(ToolApprovalTimeoutError, TimeoutError):
    """What `ApprovalService.await_decision` raises when time is up; who waits with `except TimeoutError` catches it."""

    is_transient = False


__all__ = [
    "ApprovalWaitTimeoutError",
    "ConflictError",
    "DecisionConflictError",
    "DefinitionError",
    "NotFoundError",
    "ToolApprovalDeniedError",
    "ToolApprovalTimeoutError",
    "ToolCancelledError",
    "ToolDeniedError",
    "ToolError",
    "ToolExecutionError",
    "ToolInputError",
    "ToolNotFoundError",
    "ToolOutputError",
    "ToolTimeoutError",
    "ToolUndoError",
    "ToolUnknownOutcomeError",
    "ToolUnknownTimeoutError",
]
