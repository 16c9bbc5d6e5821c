"""How a call's facts are worded as events: which fields every event carries, for calls and approvals."""

from __future__ import annotations

from typing import Any

from toolgate.kernel.approval import Approval
from toolgate.kernel.call import Call
from toolgate.kernel.context import DEFAULT_CONTEXT, Context
from toolgate.kernel.event import Draft


def tell(call: Call, name: str, data: dict[str, Any], content: dict[str, Any] | None = None) -> Draft:
    """Draft an event about a call. An undo speaks of the call it undoes and names itself beside it.

    `data` are facts, which stay in the clear; `content` is what was given, returned or said.
    """
    context, call_id = call.context, call.id
    data["tool_name"] = call.tool_name
    data["action_id"] = call_id
    data["pipeline_run_id"] = context.run_id
    data["request_id"] = context.request_id
    if call.undo_of is not None:
        data["action_id"] = call.undo_of
        data["undo_call_id"] = call_id
        data |= {said: True for said in ("forced", "unchecked") if getattr(call, said)}
    return (name, call_id, data, content)


def is_plainly_told(call: Call) -> bool:
    """Whether a call's id and what events quote of its context are sure to be written as JSON; the rest of them is."""
    global _last_told
    context, id = call.context, call.id
    known, is_plain = _last_told
    if context is not known:
        quoted = (context.run_id, context.request_id, context.behavior, context.parent_call_id)
        is_plain = all(told is None or (type(told) is str and told.isascii()) for told in quoted)
        _last_told = (context, is_plain)
    return is_plain and type(id) is str and id.isascii()


_last_told: tuple[Context, bool] = (DEFAULT_CONTEXT, True)
"""A context met last, and whether what is quoted of it is plain: the changes of a call share one."""


def invoked(call: Call) -> Draft:
    """Draft the first event of a call, which quotes its masked arguments."""
    data: dict[str, Any] = {"behavior": call.context.behavior}
    if call.context.parent_call_id is not None:
        data["parent_call_id"] = call.context.parent_call_id
    if call.repeat_of is not None:
        data["repeat_of"] = call.repeat_of
    return tell(call, "tool.invoked", data, {"payload_summary": call.quotation})


def tell_approval(approval: Approval, name: str, data: dict[str, Any], content: dict[str, Any] | None = None) -> Draft:
    """Draft an event about an approval; `request_id` is the approval's id."""
    data["request_id"] = approval.id
    data["correlation_request_id"] = approval.correlation_id
    data["pipeline_run_id"] = approval.run_id
    data["action_id"] = approval.call_id
    data["tool_name"] = approval.tool_name
    return (name, approval.call_id, data, content)


def fail_event(call: Call, code: str, message: str) -> Draft:
    """Draft the event of a call that ended without success."""
    if call.undo_of is not None:
        return tell(call, "tool.undo_failed", {"error_code": code}, {"error": message})
    return tell(call, "tool.failed", {"error_code": code}, {"error_message": message})
