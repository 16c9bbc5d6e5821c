"""The changes that end a call, and those that tell of one that runs: every final status outside an approval."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change, Durability
from toolgate.kernel.context import Context
from toolgate.kernel.event import Draft
from toolgate.kernel.narration import fail_event, is_plainly_told, tell
from toolgate.kernel.record import evolve
from toolgate.kernel.undo import UndoRecord, UndoState
from toolgate.pipeline.steps.running import first

_COMPLETED = Status.COMPLETED


def complete(
    call: Call,
    *,
    now: datetime,
    duration_ms: float,
    result: bytes | None,
    shown: Any,
    summary: Any,
    artifacts: tuple[Any, ...] = (),
    artifact_type: str | None = None,
    undo: UndoRecord | None = None,
    undo_stored: bool = False,
) -> Change:
    """A handler returned success. `shown` is JSON that nobody else holds."""
    ended = evolve(
        call,
        status=call.next(_COMPLETED),
        version=call.version + 1,
        completed_at=now,
        duration_ms=duration_ms,
        result=result,
        shown_result=shown,
        due_at=None,
        artifacts=artifacts,
    )
    data: dict[str, Any] = {"duration_ms": duration_ms, "success": True}
    content = None
    if call.undo_of is None:
        content = {"output_summary": summary}
        if artifacts or artifact_type is not None:
            data["artifacts_count"] = len(artifacts)
            data["artifact_type"] = artifact_type
    event = tell(ended, "tool.completed" if call.undo_of is None else "tool.undone", data, content)
    return Change(
        project=call.project,
        at=now,
        call=ended,
        expect=call.version,
        events=(event,),
        undo=undo,
        undo_stored=undo_stored,
        durability=Durability.COMMITTED,
        lasting=is_plainly_told(call),
    )


def fail(
    call: Call,
    *,
    now: datetime,
    status: Status,
    code: str,
    error: str,
    duration_ms: float | None = None,
    result: bytes | None = None,
    shown: Any = None,
    undo: UndoRecord | None = None,
    undo_stored: bool = False,
    reason: str | None = None,
    timed_out: bool = False,
) -> Change:
    """A call ended without success: FAILED, DENIED, CANCELLED or UNKNOWN. `error` is masked already."""
    ended = evolve(
        call.to(status),
        completed_at=now,
        due_at=None,
        duration_ms=duration_ms,
        error=error[:1000],
        error_code=code,
        timed_out=timed_out,
        result=result,
        shown_result=shown,
    )
    return Change(
        project=call.project,
        at=now,
        call=ended,
        expect=call.version or None,
        events=(*first(call), _last_word(ended, code, error[:1000], reason, duration_ms)),
        undo=undo,
        undo_stored=undo_stored,
        durability=Durability.COMMITTED,
    )


def _last_word(call: Call, code: str, error: str, reason: str | None, duration_ms: float | None) -> Draft:
    if call.undo_of is not None or call.status not in (Status.DENIED, Status.CANCELLED):
        draft = fail_event(call, code, error)
        if duration_ms is not None:
            draft[2]["duration_ms"] = duration_ms
        return draft
    name = "tool.denied" if call.status is Status.DENIED else "tool.cancelled"
    return tell(call, name, {}, {"reason": reason or code, "message": error})


def settle(
    call: Call,
    *,
    now: datetime,
    happened: bool,
    by: str,
    reason: str,
    result: bytes | None = None,
    shown: Any = None,
) -> Change:
    """Somebody found out what an unknown outcome was."""
    status = Status.COMPLETED if happened else Status.FAILED
    error = None if happened else f"Settled by {by}: it did not happen ({reason})."
    ended = evolve(
        call.to(status),
        completed_at=now,
        error=error,
        error_code=None if happened else "settled_failed",
        result=result,
        shown_result=shown,
        settled_by=by,
    )
    event = tell(ended, "tool.settled", {"outcome": status.value, "settled_by": by}, {"reason": reason})
    return Change(project=call.project, at=now, call=ended, expect=call.version, events=(event,))


def still_unknown(call: Call, *, now: datetime, by: str, reason: str) -> Change:
    """Somebody looked and could not tell what an unknown outcome was; the row stays as it is."""
    event = tell(call, "tool.still_unknown", {"said_by": by}, {"reason": reason})
    return Change(project=call.project, at=now, events=(event,))


def late(call: Call, *, now: datetime, summary: dict[str, Any]) -> Change:
    """A handler that lost its claim came back; the row stays as it is."""
    event = tell(call, "tool.late_result", summary)
    return Change(project=call.project, at=now, events=(event,), durability=Durability.COMMITTED)


def progress(call: Call, *, now: datetime, data: dict[str, Any]) -> Change:
    """A handler reported progress."""
    event = tell(call, "tool.progress", {}, data)
    return Change(project=call.project, at=now, events=(event,), durability=Durability.BEHIND)


def undo_record(
    call: Call,
    *,
    data: bytes,
    now: datetime,
    ttl_s: float,
    state: UndoState,
) -> UndoRecord:
    """Return the record that lets this call be undone until its time is over."""
    return UndoRecord(
        project=call.project,
        call_id=call.id,
        tool_name=call.tool_name,
        data=data,
        created_at=now,
        expires_at=now + timedelta(seconds=ttl_s),
        state=state,
    )


def adopt(
    context: Context,
    *,
    id: str,
    tool_name: str,
    data: bytes,
    kept_since: datetime,
    now: datetime,
    ttl_s: float,
    policy_revision: str,
) -> Change:
    """Bring in a call that was made and completed elsewhere, with the undo data that was kept of it."""
    call = Call(
        id=id,
        project=context.project,
        tool_name=tool_name,
        context=context,
        created_at=now,
        completed_at=now,
        status=Status.COMPLETED,
        version=1,
        policy_revision=policy_revision,
    )
    undo = undo_record(call, data=data, now=now, ttl_s=ttl_s, state=UndoState.AVAILABLE)
    event = tell(call, "tool.adopted", {"kept_since": kept_since})
    return Change(project=call.project, at=now, call=call, undo=evolve(undo, created_at=kept_since), events=(event,))
