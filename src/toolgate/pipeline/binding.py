"""What hooks are given: a handler's input, an undo handler's metadata, a state's fingerprint."""

from __future__ import annotations

from typing import Any

from toolgate.kernel.call import Call
from toolgate.kernel.context import Caller
from toolgate.kernel.input import Action, ToolInput
from toolgate.kernel.payload import LARGE, SCALARS, encode
from toolgate.kernel.tool import ToolDefinition, is_async
from toolgate.kernel.undo import UndoMetadata, UndoRecord
from toolgate.pipeline.lane import insist
from toolgate.pipeline.outcome import decode

_NOBODY = ("policy:", "grant:")
"""What stands before the name of what is no person, where it allowed a call."""


def input_of(call: Call, arguments: dict[str, Any] | None = None) -> ToolInput:
    """Return a handler's input with its own copy of the arguments and the caller's own context object.

    `arguments` is such a copy, where there is one that nobody else holds.
    """
    context, payload = call.context, decode(call.arguments) if arguments is None else arguments
    kept = call.preconditions
    key = call.effect_key or call.held_key or None
    host, by = context.host, call.approved_by
    people = None if by is None or by.startswith(_NOBODY) else by
    if type(host) is Caller:
        own = Action(id=host.action.id, type=host.action.type, payload=payload)
        return ToolInput(
            own.id,
            call.tool_name,
            payload,
            host.ctx,
            action=own,
            context=context,
            effect_key=key,
            approver=people,
            prepared=kept,
        )
    ctx = context if host is None else host
    return ToolInput(
        call.id, call.tool_name, payload, ctx, context=context, effect_key=key, approver=people, prepared=kept
    )


def copy_flat(values: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a copy of arguments that shares only what nobody can change; None where they hold more than scalars.

    Reading a megabyte from its bytes once more takes half a millisecond.
    """
    return values.copy() if values is not None and SCALARS.issuperset(map(type, values.values())) else None


def metadata_of(undo: UndoRecord, call: Call | None = None) -> UndoMetadata:
    """Return what undo hooks get; the action's id is the one the caller of the undo gave, where there is one."""
    host = None if call is None else call.context.host
    action_id = host.action.id if type(host) is Caller else undo.call_id
    return UndoMetadata(action_id, undo.tool_name, decode(undo.data), undo.created_at)


async def take_fingerprint(tool: ToolDefinition, undo: UndoRecord) -> bytes:
    """Return what the tool says of the state its effect left; a hook that fails leaves a mark no state equals.

    Where there is much to undo, a plain hook is likely to read as much, so it runs on a thread of its own.
    """
    hook = tool.fingerprint
    assert hook is not None
    try:
        if is_async(hook):
            value = await hook(metadata_of(undo))
        elif len(undo.data) <= LARGE:
            value = hook(metadata_of(undo))
        else:
            value = await insist(lambda: hook(metadata_of(undo)))
        return encode(value, what="fingerprint")
    except Exception as error:  # noqa: BLE001  # without a fingerprint the undo needs to be forced
        return f"failed: {type(error).__name__}".encode()


async def is_unchanged(tool: ToolDefinition, undo: UndoRecord) -> bool:
    """Whether the state the effect left is still there; False where that cannot be told."""
    now = await take_fingerprint(tool, undo)
    return now == undo.fingerprint and not now.startswith(b"failed:")
