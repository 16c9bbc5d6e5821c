"""What came of a call, in document 003's words: the result, its category and why it did not succeed."""

from __future__ import annotations

from typing import Any

from toolgate.errors import ToolInputError, UsageError
from toolgate.governance.definitions import ToolResult
from toolgate.kernel.call import Status
from toolgate.kernel.context import Context
from toolgate.kernel.output import Result


class NoModeError(Exception):
    """The mode manager did not say which mode holds; without one nothing may run."""


def not_run(tool_name: object, error: Exception, text: str) -> ToolResult:
    """Return what is told of a call that the layer could not make, or not follow to its end. `text` is masked."""
    if isinstance(error, NoModeError):
        category, text = "permission", f"Permission denied: {text}"
    elif isinstance(error, UsageError | ToolInputError):
        category = "validation"
    else:
        category = "unavailable"
    return ToolResult(
        tool_name=tool_name[:128] if isinstance(tool_name, str) else f"({type(tool_name).__name__})",
        success=False,
        error=text,
        metadata={"category": category},
    )


def told(result: Result, context: Context) -> ToolResult:
    """Return a result in document 003's words; `metadata` tells its category and ids."""
    about: dict[str, Any] = {
        "call_id": result.call_id,
        "trace_id": context.trace_id,
        "span_id": context.span_id,
        "status": result.status.value,
    }
    if result.success:
        return ToolResult(
            tool_name=result.tool_name,
            success=True,
            output={} if result.data is None else result.data,
            latency_ms=result.duration_ms or 0.0,
            metadata=about,
        )
    about["category"] = result.category
    if about["category"] == "validation":
        about["suggestion"] = "Correct the arguments that are named and call again."
    return ToolResult(
        tool_name=result.tool_name,
        success=False,
        output={},
        error=error_of(result),
        latency_ms=result.duration_ms or 0.0,
        metadata=about,
    )


def error_of(result: Result) -> str:
    """Say why a call did not succeed."""
    if result.error_code == "tool_not_found":
        return f"Tool {result.tool_name} not found"
    if result.category not in ("permission", "validation"):
        return result.error or "the tool failed"
    return f"Permission denied: {_reason(result)}"


def _reason(result: Result) -> str:
    if result.status is Status.REJECTED:
        return "Approval denied by user" + (f": {result.reason}" if result.reason else "")
    if result.status is Status.TIMEOUT:
        return "Approval denied by user: nobody answered in time"
    return result.reason or result.error or "refused"
