"""Claim a call and make sense of what its handler did. The commit of the claim comes before the first effect."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

import orjson

from toolgate.errors import ToolOutputError
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change, Durability, Reservation, step
from toolgate.kernel.context import Mode
from toolgate.kernel.event import Draft
from toolgate.kernel.narration import tell, tell_birth
from toolgate.kernel.output import ToolOutput
from toolgate.kernel.payload import encode
from toolgate.kernel.record import evolve
from toolgate.kernel.schema import Schema
from toolgate.kernel.tool import Placement, ToolDefinition
from toolgate.kernel.undo import UndoRecord, UndoState

HOUR_S = 3600.0
REMOTE = frozenset({Placement.CLIENT.value, Placement.WORKER.value})
"""The placements whose results come from outside this process."""
OFFER_AGAIN_S = 10.0
"""How long a call for a worker waits before its order is sent again: it may have been lost."""
BY_POLICY = "policy:auto"
"""Who approved a call nobody had to be asked about."""

# Bound once, for every call comes through here: an enum's attributes are slow to look up.
_EXECUTING, _COMPLETED = Status.EXECUTING, Status.COMPLETED
_outcome = tuple.__new__


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


def claim(
    call: Call,
    tool: ToolDefinition,
    *,
    now: datetime,
    owner: str,
    mode: Mode,
    first: tuple[Draft, ...] = (),
    undo: UndoRecord | None = None,
    reservations: tuple[Reservation, ...] = (),
    fence: str | None = None,
    due_at: datetime | None = None,
) -> Change:
    """The change that gives one owner the right to run this call once.

    `undo` is, for an undo call, the claimed record of the original; otherwise data that `prepare`
    made and that must be durable before the effect. `reservations` are what it uses of the
    policy's rates and budgets. `fence` and `due_at` are for a call whose result
    comes from elsewhere: who may report it, and until when.
    """
    approver = call.approved_by or BY_POLICY
    claimed = evolve(
        call.to(_EXECUTING),
        owner=owner,
        attempt=call.attempt + 1,
        started_at=now,
        approved_by=approver,
        approved_at=call.approved_at or now,  # where nobody was asked, the policy or a grant approves it now
        fence=fence,
        due_at=due_at,
    )
    change = step(claimed, call.version or None, now, (*first, _started(claimed)), durability_of(tool), mode)
    if undo is None and tool.rate_limit_per_hour is None and not reservations:
        return change
    expected = UndoState.AVAILABLE if undo is not None and call.undo_of is not None else None
    return evolve(change, undo=undo, undo_expect=expected, reservations=_rates(call, tool) + reservations)


def claim_at_birth(call: Call, now: datetime, mode: Mode, durability: Durability) -> Change:
    """The claim of a call that is stored for the first time as EXECUTING, since nobody had to be asked.

    The caller vouches that the call's id and what is told of its context are text: the change is lasting.
    """
    return step(call, None, now, tell_birth(call), durability, mode, True)


def _started(call: Call) -> Draft:
    told = {"approved_by": call.approved_by, "approval_id": call.approval_id, "attempt": call.attempt}
    return tell(call, "tool.started" if call.undo_of is None else "tool.undo_started", told)


def durability_of(tool: ToolDefinition) -> Durability:
    """How safe a claim must be before the tool's effect may begin."""
    return Durability.COMMITTED if tool.can_retry else Durability.FSYNCED


def reclaim(
    call: Call, *, now: datetime, owner: str, mode: Mode, fence: str | None = None, due_at: datetime | None = None
) -> Change:
    """The change that takes a call over from whoever died running it: another attempt, same call.

    Only for what may be run again or was never sent; the version of the row decides who takes it over.
    """
    attempt = call.attempt + 1
    taken = evolve(call.stay(), owner=owner, attempt=attempt, started_at=now, fence=fence, due_at=due_at, runner=None)
    told = {"approved_by": call.approved_by, "approval_id": call.approval_id, "attempt": attempt}
    event = tell(taken, "tool.started", told)
    return step(taken, call.version, now, (event,), Durability.COMMITTED, mode)


def offer_s(placement: str, tool: ToolDefinition) -> float:
    """How long a call waits for somebody who runs it before its deadline is looked at."""
    return OFFER_AGAIN_S if placement == Placement.WORKER else tool.timeout_seconds


def _rates(call: Call, tool: ToolDefinition) -> tuple[Reservation, ...]:
    if tool.rate_limit_per_hour is None or call.undo_of is not None:
        return ()
    return (Reservation(key=f"tool:{tool.name}", limit=tool.rate_limit_per_hour, window_s=HOUR_S),)


def interpret(tool: ToolDefinition, raw: object) -> Outcome:
    """Return what a handler's return value means; raise ToolOutputError where it is unusable."""
    if isinstance(raw, ToolOutput):
        return _from_output(tool, raw)
    if tool.function is None:
        raise ToolOutputError(
            f"The handler of `{tool.name}` returned {type(raw).__name__} instead of ToolOutput.",
            tool=tool.name,
        )
    result = encode(raw)
    if tool.result_schema is not None:
        _verify(tool, tool.result_schema, result)
    return _outcome(Outcome, (_COMPLETED, result, None, None, b"{}" if tool.undoable else None, None, None, False))


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
        )
    if tool.result_schema is not None:
        _verify(tool, tool.result_schema, result)
    undo = None
    if tool.undoable:
        undo = encode(output.undo_metadata if output.undo_metadata is not None else {}, what="undo metadata")
    return Outcome(_COMPLETED, result, undo=undo, artifacts=artifacts)


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


def interrupted(tool: ToolDefinition, *, why: str, stopped: bool, detail: str | None = None) -> Outcome:
    """Return what may honestly be said of a handler that was cut short.

    One that stopped, or that only reads, failed or was cancelled. One with effects that could not be
    stopped may still be at work: nobody knows.
    """
    if why == "timeout":
        return _timed_out(tool, stopped=stopped, detail=detail)
    reason = _WHY[why] if detail is None else f"{_WHY[why]} ({detail})"
    if not stopped and tool.has_effects:
        text = f"The handler of `{tool.name}` could not be stopped: {reason}. Whether its effect happened is unknown."
        return Outcome(Status.UNKNOWN, error=text, code="unknown")
    return Outcome(Status.CANCELLED, error=f"The handler of `{tool.name}` was stopped: {reason}.", code="cancelled")


_WHY = {
    "cancelled": "the call was cancelled",
    "shutdown": "the gate or its event loop was shut down",
}


def _timed_out(tool: ToolDefinition, *, stopped: bool, detail: str | None) -> Outcome:
    """A timeout is told as one, also where nobody knows what the handler did or still does."""
    text = f"The handler of `{tool.name}` timed out after {tool.timeout_seconds:g} s" + (
        "" if detail is None else f" ({detail})"
    )
    if not stopped and tool.has_effects:
        text = f"{text} and could not be stopped. Whether its effect happened is unknown."
        return Outcome(Status.UNKNOWN, error=text, code="unknown", timed_out=True)
    left = "was stopped" if stopped else "could not be stopped, but it only reads"
    return Outcome(Status.FAILED, error=f"{text} and {left}.", code="timeout", timed_out=True)
