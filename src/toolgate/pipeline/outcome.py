"""What a handler did, read from what it returned, raised or was stopped by. Nothing is written here."""

from __future__ import annotations

import errno
from typing import Any, NamedTuple

import orjson

from toolgate.errors import (
    NotExecuted,
    ToolDeniedError,
    ToolOutputError,
    ToolTimeoutError,
    ToolUnknownOutcomeError,
    text_of,
)
from toolgate.kernel.call import Call, Status
from toolgate.kernel.doubt import Doubt, Meaning, says_nothing_happened
from toolgate.kernel.output import ToolOutput
from toolgate.kernel.payload import encode
from toolgate.kernel.text.schema import Schema
from toolgate.kernel.tool import Placement, ToolDefinition

_COMPLETED = Status.COMPLETED  # bound once: an enum's attributes are slow to look up
_outcome = tuple.__new__
_EXHAUSTED = frozenset((errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EMFILE, errno.ENFILE))


class Outcome(NamedTuple):
    """How an execution ended: the status, and what is known about it. `error` is not masked yet."""

    status: Status
    result: bytes | None = None
    error: str | None = None
    code: str | None = None
    undo: bytes | None = None
    artifacts: bytes | None = None
    cause: BaseException | None = None
    timed_out: bool = False
    output: ToolOutput | None = None
    """What the handler returned, where that was a ToolOutput."""


def interpret(tool: ToolDefinition, raw: object) -> Outcome:
    """Return what a handler's return value means; raise ToolOutputError where it is unusable."""
    if isinstance(raw, ToolOutput):
        return _from_output(tool, raw)
    if tool.function is None and tool.placement is not Placement.CALLER:
        raise ToolOutputError(
            f"The handler of `{tool.name}` returned {type(raw).__name__} instead of ToolOutput.",
            tool=tool.name,
        )
    result = encode(raw)
    if tool.result_schema is not None:
        _verify(tool, tool.result_schema, result)
    return _outcome(
        Outcome, (_COMPLETED, result, None, None, b"{}" if tool.undoable else None, None, None, False, None)
    )


def _from_output(tool: ToolDefinition, output: ToolOutput) -> Outcome:
    result = encode(output.data)
    artifacts = encode(list(output.artifacts), what="artifacts") if output.artifacts else None
    if output.success is not True:
        return Outcome(
            Status.FAILED,
            result,
            error=str(output.error or "the handler reported failure without saying why"),
            code="execution_failed",
            artifacts=artifacts,
            output=output,
        )
    if tool.result_schema is not None:
        _verify(tool, tool.result_schema, result)
    undo = None
    if tool.undoable:
        undo = encode(output.undo_metadata if output.undo_metadata is not None else {}, what="undo metadata")
    return Outcome(_COMPLETED, result, undo=undo, artifacts=artifacts, output=output)


def _verify(tool: ToolDefinition, schema: Schema, result: bytes) -> None:
    value: Any = decode(result)
    if schema.is_valid(value):
        return
    listed = "; ".join(f"{item.location or '/'} {item.message}" for item in schema.violations(value))
    raise ToolOutputError(
        f"The handler of `{tool.name}` ran, but its output breaks its schema: {listed}.", tool=tool.name
    )


def decode(result: bytes | None) -> Any:
    """Return a fresh copy of stored data."""
    return None if result is None else orjson.loads(result)


def unusable(doubt: Doubt, error: ToolOutputError) -> Outcome:
    """What may be said of a handler that returned something unusable: it ran, so its effect is not ruled out."""
    if not doubt.is_declared:
        return Outcome(Status.FAILED, error=str(error), code=error.code)
    return Outcome(Status.UNKNOWN, error=f"{error} {_SETTLE}", code="unknown")


def interrupted(
    tool: ToolDefinition, doubt: Doubt, *, why: str, stopped: bool, began: bool, detail: str | None = None
) -> Outcome:
    """Return what may honestly be said of a handler that was cut short.

    One that had not begun did nothing. One with declared effects may have had them before it was stopped, and one with
    any effects that could not be stopped may still be at work: nobody knows. Any other failed or was cancelled.
    """
    is_unknown = began and (doubt.is_declared or (doubt.has_effects and not stopped))
    left = "had not begun" if not began else "was stopped" if stopped else "could not be stopped"
    if why == "timeout":
        words = "" if detail is None else f" ({detail})"
        text = f"The handler of `{tool.name}` timed out after {tool.timeout_seconds:g} s{words} and {left}"
        if is_unknown:
            return Outcome(Status.UNKNOWN, error=f"{text}. {_SETTLE}", code="unknown", timed_out=True)
        text = f"{text}, but it can do no harm" if began and not stopped else text
        return Outcome(Status.FAILED, error=f"{text}.", code="timeout", timed_out=True)
    reason = _WHY[why] if detail is None else f"{_WHY[why]} ({detail})"
    text = f"The handler of `{tool.name}` {left}: {reason}."
    if is_unknown:
        return Outcome(Status.UNKNOWN, error=f"{text} {_SETTLE}", code="unknown")
    return Outcome(Status.CANCELLED, error=text, code="cancelled")


_SETTLE = "Whether its effect happened is unknown."
_WHY = {
    "cancelled": "the call was cancelled",
    "shutdown": "the gate or its event loop was shut down",
}


def unheard(tool: ToolDefinition, trouble: str) -> Outcome:
    """The end of a call whose sink is required and did not take the event that says it starts."""
    text = f"Tool `{tool.name}` did not run: the event sink {trouble}, and nothing may run unheard. Repair the sink."
    return Outcome(Status.FAILED, error=text, code="unheard")


def undone(raw: object) -> Outcome:
    """An undo handler succeeds by returning; only a failing ToolOutput says otherwise."""
    output = raw if isinstance(raw, ToolOutput) else None
    if getattr(raw, "success", True) is False:
        error = str(getattr(raw, "error", None) or "undo failed")
        return Outcome(Status.FAILED, error=error, code="undo_failed", output=output)
    return Outcome(Status.COMPLETED, output=output)


def is_exhaustion(error: BaseException) -> bool:
    """Whether an error says that something ran out: memory, disk or open files."""
    return isinstance(error, MemoryError) or is_of_the_machine(error)


def is_of_the_machine(error: BaseException) -> bool:
    """Whether the machine is out of disk, memory or open files, by its own word: that is everybody's trouble.

    A MemoryError is not: a handler that asks for more than there is gets one, and what it holds is given back.
    """
    return isinstance(error, OSError) and error.errno in _EXHAUSTED


def raised(call: Call, doubt: Doubt, error: BaseException, *, began: bool = True) -> Outcome:
    """Return what it means that a handler raised this, or its runner, maybe before the handler began."""
    meaning, text = doubt.of(error, began=began), text_of(error)
    if meaning is Meaning.UNKNOWN:
        kind = type(error).__name__
        said = text if isinstance(error, ToolUnknownOutcomeError) else f"{kind}: {text}" if text != kind else kind
        text = f"The handler of `{call.tool_name}` had started and raised {said.rstrip('.')}. {_SETTLE}"
        return Outcome(Status.UNKNOWN, error=text, code="unknown", cause=error, timed_out=_is_timeout(error))
    return Outcome(Status.FAILED, error=text, code=_code_of(call, error), cause=error)


def _code_of(call: Call, error: BaseException) -> str:
    if call.undo_of is not None:
        return "undo_failed"
    if isinstance(error, ToolDeniedError):
        return "denied"  # a guard refused what the handler was about to touch
    if says_nothing_happened(error):
        return NotExecuted.code
    if _is_timeout(error):
        return "timeout"  # what the handler started was given a time, and ended with it
    return "resource_exhausted" if is_exhaustion(error) else "execution_failed"


def _is_timeout(error: BaseException) -> bool:
    return isinstance(error, ToolTimeoutError)
