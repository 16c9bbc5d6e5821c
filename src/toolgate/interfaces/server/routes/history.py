"""Looking back: the timeline and the whole record of a call, and the chain its events stand in."""

from __future__ import annotations

from toolgate.gate.drawing import draw_all
from toolgate.interfaces.server import views
from toolgate.interfaces.server.chains import Checked
from toolgate.interfaces.server.operations import Ask, Operation
from toolgate.interfaces.server.timelines import timeline
from toolgate.kernel.call import Call
from toolgate.kernel.event import SALT_BYTES, ChainError, Event, verify
from toolgate.ports.store import ApprovalQuery
from toolgate.wire.history import (
    AuditAnswer,
    CallDetail,
    CallRecord,
    ChainedEvent,
    RowDifference,
    TimelineAnswer,
    VerifyBody,
)

_BASE = "/my/projects/{project_id}"
EVENTS = 1000
"""How many events of a call are shown; one that reports its progress has many."""


async def _events(ask: Ask, call: Call) -> list[Event]:
    return await ask.services.gate.events(project=ask.project, call_id=call.id, limit=EVENTS)


async def show_timeline(ask: Ask) -> TimelineAnswer:
    gate = ask.services.gate
    call = await gate.calls.get(ask.params["tool_id"], project=ask.project)
    events = await _events(ask, call)
    kept = await gate.host.undo_data(call.id, project=ask.project)
    return TimelineAnswer(
        tool_id=call.id, steps=timeline(call, events), is_partial=len(events) == EVENTS, can_undo=kept is not None
    )


async def record(ask: Ask) -> CallRecord:
    gate = ask.services.gate
    call = await gate.calls.get(ask.params["tool_id"], project=ask.project)
    events = await _events(ask, call)
    asked = await gate.approvals.list(ApprovalQuery(project=ask.project, call_id=call.id, limit=100))
    return CallRecord(
        call=views.record(call, is_own=False),  # a page and a file that is passed on: masked for everybody
        decided=CallDetail(
            policy_revision=call.policy_revision,
            reasons=list(call.reasons),
            factors=list(call.factors),
            facts=call.facts,
            level=call.level,
            confidence=call.confidence,
            claim=call.claim,
            definition_hash=call.definition_hash,
            placement=call.placement,
        ),
        approvals=await draw_all(views.approval, asked),
        events=[_chained(event) for event in events],
        is_partial=len(events) == EVENTS,
    )


def _chained(event: Event) -> ChainedEvent:
    try:
        is_sound = verify([event], after=(event.seq - 1, event.prev)) == 1
    except ChainError:
        is_sound = False
    parts = (event.frame, event.content or b"", event.prev, event.hash)
    frame, content, prev, hash = (part if isinstance(part, bytes) else str(part).encode() for part in parts)
    return ChainedEvent(
        seq=event.seq,
        type=event.type,
        at=event.at,
        tool_id=event.call_id,
        data=event.data if is_sound else {},  # what somebody else wrote there need not be JSON
        frame=frame.decode(errors="replace"),
        salt=content[:SALT_BYTES].hex(),
        content=content[SALT_BYTES:].decode(errors="replace"),
        prev=prev.hex(),
        hash=hash.hex(),
        is_sound=is_sound,
    )


async def audit(ask: Ask) -> AuditAnswer:
    return _answer(await ask.services.chains.status(ask.services.gate, ask.project))


async def check(ask: Ask) -> AuditAnswer:
    services, body = ask.services, ask.body
    return _answer(await services.chains.advance(services.gate, ask.project, now=services.now(), restart=body.restart))


def _answer(checked: Checked) -> AuditAnswer:
    return AuditAnswer(
        events=checked.events,
        verified=checked.seq,
        is_whole=checked.is_whole,
        problem=checked.problem,
        head_hash=None if checked.hash is None else checked.hash.hex(),
        checked_at=checked.at,
        differences=[RowDifference(kind=one.kind, id=one.id, what=one.what) for one in checked.differences],
    )


OPERATIONS = (
    Operation(
        method="GET",
        path=_BASE + "/tools/{tool_id}/timeline",
        summary="Show what happened to a call, stage by stage",
        handler=show_timeline,
        returns=TimelineAnswer,
        tag="tools",
    ),
    Operation(
        method="GET",
        path=_BASE + "/tools/{tool_id}/record",
        summary="Show everything kept of a call, with its links in the chain",
        handler=record,
        returns=CallRecord,
        tag="tools",
    ),
    Operation(
        method="GET",
        path=_BASE + "/audit",
        summary="Show how far the chain of events was checked",
        handler=audit,
        returns=AuditAnswer,
        tag="audit",
    ),
    Operation(
        method="POST",
        path=_BASE + "/audit/verify",
        summary="Check the next events of the chain",
        handler=check,
        body=VerifyBody,
        returns=AuditAnswer,
        tag="audit",
    ),
)
