"""Tell the pieces of a stream apart: what belongs to a call that is still being written, and what is whole.

A piece must never run and must never vanish: a program that passes pieces gets each of them back as a call that is not
complete. Events that carry a whole message, or no call at all, are said to do so.
"""

from __future__ import annotations

from typing import Any, Final

from toolgate.kernel.text.formats.look import Found, field, items

_WITHIN: Final = {
    "message_start": "message",
    "response.completed": "response",
    "response.incomplete": "response",
    "response.failed": "response",
    "response.created": "response",
    "response.in_progress": "response",
}
"""Events that hold a message or response, and where."""
_PIECES: Final = (
    "response.function_call_arguments.",
    "response.custom_tool_call_input.",
    "response.mcp_call_arguments.",
)
"""What the names of events begin with that carry a part of a call's arguments."""
_BLOCKS: Final = (
    ("contentBlockStart", "start"),
    ("contentBlockDelta", "delta"),
    ("messageStart", None),
    ("messageStop", None),
    ("contentBlockStop", None),
)
"""Bedrock's events, and where a part of a call stands in them."""


def within(payload: Any) -> Any:
    """Return the message or response that an event of a stream holds; None where it holds none."""
    kind = _kind(payload)
    return field(payload, _WITHIN[kind]) if kind in _WITHIN else None


def find_pieces(payload: Any) -> list[Found] | None:
    """Return the calls in a piece of a stream, each marked as one; None for what is no piece."""
    for look in (_choice, _anthropic, _responses, _bedrock):
        found = look(payload)
        if found is not None:
            return found
    return None


def piece(item: Any) -> Found:
    """Mark an item as a piece of a call."""
    return Found(item, is_piece=True)


def _kind(payload: Any) -> str:
    kind = field(payload, "type")
    return kind if isinstance(kind, str) else ""


def _choice(payload: Any) -> list[Found] | None:
    """A choice of a chunk, which has a `delta` where a whole one has its message."""
    delta = field(payload, "delta")
    if delta is None or _kind(payload) or field(payload, "message") is not None:
        return None
    calls = field(delta, "tool_calls")
    listed = [] if calls is None else items(calls)
    legacy = field(delta, "function_call")
    found = [calls] if listed is None else listed  # not a list: one call, or nothing that can be read
    return [piece(item) for item in (*found, *([] if legacy is None else [legacy]))]


def _anthropic(payload: Any) -> list[Found] | None:
    kind = _kind(payload)
    if kind == "content_block_start":
        block = field(payload, "content_block")
        return [piece(block)] if _kind(block) == "tool_use" else []
    if kind == "content_block_delta":
        return [piece(payload)] if _kind(field(payload, "delta")) == "input_json_delta" else []
    return None


def _responses(payload: Any) -> list[Found] | None:
    kind = _kind(payload)
    if kind.startswith(_PIECES):
        return [] if kind.startswith("response.mcp_") else [piece(payload)]  # those the provider runs itself
    if kind == "response.output_item.added":
        return [Found(field(payload, "item"), is_content=True, is_piece=True)]
    if kind == "response.output_item.done":
        return [Found(field(payload, "item"), is_content=True)]
    return None


def _bedrock(payload: Any) -> list[Found] | None:
    for event, inside in _BLOCKS:
        held = field(payload, event)
        if held is None:
            continue
        part = None if inside is None else field(field(held, inside), "toolUse")
        return [] if part is None else [piece({"toolUse": part})]
    return None
