"""The errors of the tools door: those of the whole package, under the names documents 000 and 001 use."""

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
)

__all__ = [
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
]
