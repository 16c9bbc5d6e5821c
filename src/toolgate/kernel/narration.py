"""How a call's facts are worded as events: which fields every event carries, for calls and approvals."""

from __future__ import annotations

from typing import Any

from toolgate.kernel.approval import Approval
from toolgate.kernel.call import Call
from toolgate.kernel.event import Draft


def tell(call: Call, name: str, data: dict[str, Any]) -> Draft:
    """Draft an event about a call. An undo speaks of the call it undoes and names itself beside it."""
    context, call_id = call.context, call.id
    data["tool_name"] = call.tool_name
    data["action_id"] = call_id
    data["pipeline_run_id"] = context.run_id
    data["request_id"] = context.request_id
    if call.undo_of is not None:
        data["action_id"] = call.undo_of
        data["undo_call_id"] = call_id
    return (name, call_id, data)


def tell_approval(approval: Approval, name: str, data: dict[str, Any]) -> Draft:
    """Draft an event about an approval; `request_id` is the approval's id."""
    data["request_id"] = approval.id
    data["correlation_request_id"] = approval.correlation_id
    data["pipeline_run_id"] = approval.run_id
    data["action_id"] = approval.call_id
    data["tool_name"] = approval.tool_name
    return (name, approval.call_id, data)


def fail_event(call: Call, code: str, message: str) -> Draft:
    """Draft the event of a call that ended without success."""
    if call.undo_of is not None:
        return tell(call, "tool.undo_failed", {"error": message, "error_code": code})
    return tell(call, "tool.failed", {"error_code": code, "error_message": message})
