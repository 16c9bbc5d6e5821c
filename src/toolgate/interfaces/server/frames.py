"""How events look to those who listen: document 004's names and bare data on a chat stream, our own elsewhere."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

import orjson

from toolgate.errors import NotFoundError
from toolgate.gate import Gate
from toolgate.gate.drawing import draw
from toolgate.interfaces.server import views
from toolgate.kernel.approval import Approval
from toolgate.kernel.artifact import deed_of
from toolgate.kernel.call import Call
from toolgate.kernel.event import Event

HEARTBEAT = b": heartbeat\n\n"
_OPTIONS = orjson.OPT_UTC_Z


class Frame(NamedTuple):
    """One event, encoded once for everybody. `approval_id` names the question it asks, if it asks one."""

    seq: int
    data: bytes
    approval_id: str | None = None


Encoder = Callable[[Gate, Event], Awaitable[Frame]]


def sse(name: str, data: bytes, *, id: int | None = None) -> bytes:
    """One server-sent event. JSON holds no line breaks, so the data is one line."""
    head = b"" if id is None else b"id: %d\n" % id
    return b"%bevent: %b\ndata: %b\n\n" % (head, name.encode(), data)


def dumps(value: Any) -> bytes:
    return orjson.dumps(value, None, _OPTIONS)


def now_text() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def request_data(approval: Approval) -> dict[str, Any]:
    """The data of `tool.approval_request`."""
    timeout = (approval.expires_at - approval.created_at).total_seconds()
    return {
        "approval_id": approval.id,
        "tool_id": approval.call_id,
        "tool_name": approval.tool_name,
        "risk_level": views.risk(approval.risk),
        "timeout_seconds": timeout,
        "timeout": timeout,
        "description": deed_of(approval),
        "timestamp": approval.created_at,
        "expires_at": approval.expires_at,
        "level": approval.level,
        "digest": approval.digest,
        "arguments": approval.arguments,
        "preview": approval.preview,
        "facts": approval.facts,
        "session_id": approval.session_id,
        "requires_reason": approval.requires_reason,
    }


def request_frame(approval: Approval, *, id: int | None = None) -> bytes:
    return sse("tool.approval_request", dumps(request_data(approval)), id=id)


def mode_frame(gate: Gate, project: str) -> bytes:
    """The modes over a project and in it: everybody's is no event of any project but the system's own."""
    return sse("inbox.mode", dumps({**brakes_data(gate, project), "timestamp": now_text()}))


def policy_frame(gate: Gate, project: str, held: str | None) -> bytes:
    """Which policy a project answers to, and which revision waits for a person's word: that is the system's, too."""
    data = {"revision": gate.host.policy(project).revision, "held": held, "timestamp": now_text()}
    return sse("inbox.policy", dumps(data))


def brakes_data(gate: Gate, project: str) -> dict[str, Any]:
    """Everybody's mode, and the brakes that people of a project see."""
    return views.brakes(gate, project).model_dump(mode="json", include={"mode", "brakes"})


def signal_frame(call: Call, timeout_s: float) -> bytes:
    """The execution signal: real parameters, for one connection, kept nowhere. An undo has a name of its own."""
    real = orjson.Fragment(call.arguments)
    data: dict[str, Any] = {"tool_id": call.id, "tool_name": call.tool_name}
    if call.undo_of is None:
        data |= {"tool_params": real, "effect_key": call.effect_key}
    else:
        data |= {"undo_of": call.undo_of, "undo_data": real}
    data |= {"timestamp": now_text(), "fence": call.fence, "attempt": call.attempt, "timeout_seconds": timeout_s}
    return sse("tool.execution_signal" if call.undo_of is None else "tool.undo_signal", dumps(data))


def cancel_frame(call_id: str, reason: str) -> bytes:
    return sse("tool.cancel_signal", dumps({"tool_id": call_id, "reason": reason, "timestamp": now_text()}))


async def chat_frame(gate: Gate, event: Event) -> Frame:
    """An event on a chat stream: questions and acknowledgements as document 004 names them, the rest by its own."""
    data = event.data
    if event.type == "approval.requested":
        try:
            asked = await gate.approvals.get(data["request_id"], project=event.project)
        except NotFoundError:  # forgotten by a store that keeps only so many
            return Frame(event.seq, sse(event.type, dumps(_plain(event, data)), id=event.seq))
        return Frame(event.seq, await draw(request_frame, asked, id=event.seq), asked.id)
    frame = sse(event.type, dumps(_plain(event, data)), id=event.seq)
    if event.type in ("tool.completed", "tool.failed") and await _ran_at_client(gate, event):
        ack = {"tool_id": event.call_id, "status": "received", "timestamp": event.at}
        frame = sse("tool.result_ack", dumps(ack)) + frame
    return Frame(event.seq, frame)


async def _ran_at_client(gate: Gate, event: Event) -> bool:
    try:
        call = await gate.calls.get(event.call_id or "", project=event.project)
    except NotFoundError:
        return False
    return call.runner is not None and call.error_code not in ("timeout", "no_runner", "unknown")


def _plain(event: Event, data: dict[str, Any]) -> dict[str, Any]:
    return {"tool_id": event.call_id, "timestamp": event.at, **data}


async def event_frame(_gate: Gate, event: Event) -> Frame:
    """An event on the event stream: its exact body under its own name."""
    return Frame(event.seq, sse(event.type, event.body, id=event.seq))


async def socket_frame(gate: Gate, event: Event) -> Frame:
    """An event on a WebSocket: one JSON message. A question carries what its `ApprovalArtifact` does."""
    message: dict[str, Any] = {
        "type": event.type,
        "id": event.seq,
        "project_id": event.project,
        "action_id": event.call_id,
        "timestamp": event.at,
        **event.data,
    }
    return Frame(
        event.seq, dumps(message) + b"\n", event.data["request_id"] if event.type == "approval.requested" else None
    )


def asked_message(approval: Approval) -> bytes:
    """A question that was asked before a socket subscribed."""
    message = {
        "type": "approval.requested",
        "project_id": approval.project,
        "action_id": approval.call_id,
        "request_id": approval.id,
        "tool_name": approval.tool_name,
        "message": approval.message,
        "risk_level": approval.risk,
        "level": approval.level,
        "digest": approval.digest,
        "expires_at": approval.expires_at,
        "options": ["approve", "deny"],
    }
    return dumps(message)
