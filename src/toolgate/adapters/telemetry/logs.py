"""Structured log records of every call: `tool_call_started`, `_completed`, `_failed` and `_blocked`.

The record's message is its name; what it tells are attributes of the record (`extra`), so that any
formatter of the standard `logging` can render them. Everything told is masked.
"""

from __future__ import annotations

import logging
from typing import Any

from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change

log = logging.getLogger("toolgate.calls")


def write_log(change: Change) -> None:
    """Write the record of a change that starts or ends a call."""
    call = change.call
    if call is None or call.undo_of is not None:
        return
    if call.status is Status.EXECUTING:
        if any(name == "tool.started" for name, *_ in change.events):
            log.info("tool_call_started", extra=_told(call, arguments=call.shown))
    elif call.status is Status.COMPLETED:
        log.info("tool_call_completed", extra=_told(call, success=True, latency_ms=call.duration_ms))
    elif call.status.is_final and call.started_at is None:
        log.warning("tool_call_blocked", extra=_told(call, reason=call.error))
    elif call.status.is_final or call.status is Status.UNKNOWN:
        log.error("tool_call_failed", extra=_told(call, error=call.error, latency_ms=call.duration_ms))


def _told(call: Call, **facts: Any) -> dict[str, Any]:
    context = call.context
    return {
        "tool_name": call.tool_name,
        "call_id": call.id,
        "trace_id": context.trace_id,
        "span_id": context.span_id,
        **facts,
    }
