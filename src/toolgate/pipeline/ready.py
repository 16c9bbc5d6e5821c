"""Getting a call ready: what its tool prepares before anybody is asked, and again before it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from toolgate.errors import SandboxError, ToolDeniedError, ToolError, ToolUndoError, text_of
from toolgate.kernel.call import Call
from toolgate.kernel.payload import encode
from toolgate.kernel.record import evolve
from toolgate.kernel.tool import Placement, Prepared, ToolDefinition, is_async
from toolgate.kernel.undo import UndoRecord, UndoState
from toolgate.pipeline import steps
from toolgate.pipeline.binding import copy_flat, input_of, is_unchanged
from toolgate.pipeline.driver import Driver
from toolgate.pipeline.lane import aside, is_large
from toolgate.pipeline.outcome import decode
from toolgate.ports.confinement import Confinable
from toolgate.ports.runner import Job

PENDING_AFTER_S = 0.05
"""How long preparing a new call may take before it is stored, so that it is seen and outlives its process."""


class Made(NamedTuple):
    """A new call and how preparing it went."""

    call: Call
    undo: UndoRecord | None = None
    error: ToolError | None = None
    asks: str | None = None


class Ready(NamedTuple):
    """A call as its tool prepared it. `undo` is made durable with its claim, `asks` is why a person must be asked."""

    call: Call
    undo: UndoRecord | None = None
    asks: str | None = None


async def prepare_new(
    driver: Driver,
    call: Call,
    tool: ToolDefinition,
    now: datetime,
    go_on: Callable[[], Coroutine[Any, Any, None]],
    values: dict[str, Any] | None = None,
) -> Made:
    """Have the tool prepare a new call; where that takes time, the call is stored as PENDING meanwhile.

    Who is cancelled then leaves the call behind, and `go_on` is run for it. `values` are its arguments, where they are
    at hand. Raises ConflictError where its id is taken.
    """
    preparing = asyncio.get_running_loop().create_task(prepare(driver, call, tool, now, values))
    is_storing = False
    try:
        await asyncio.wait({preparing}, timeout=PENDING_AFTER_S)
        if is_storing := not preparing.done():
            change = steps.pending(call, now=now, owner=driver.owner)
            await driver.commit(change)
            call = change.call or call
            await asyncio.wait({preparing})
        ready = preparing.result()
    except ToolError as error:
        return Made(call, error=error)
    except asyncio.CancelledError:
        if is_storing:
            driver.spawn(go_on())
        raise
    finally:
        preparing.cancel()
    made = evolve(call, preview=ready.call.preview, preconditions=ready.call.preconditions)
    return Made(made, ready.undo, asks=ready.asks)


async def refresh(driver: Driver, call: Call, tool: ToolDefinition) -> Ready:
    """Return the call as the current definition and world would have it, with what is claimed along."""
    fresh = call if call.definition_hash == tool.hash else evolve(call, definition_hash=tool.hash)
    if call.undo_of is not None:
        undo = await driver.store.undo(call.project, call.undo_of)
        if undo is None or undo.state is not UndoState.AVAILABLE or undo.is_expired(driver.now()):
            raise ToolUndoError(not_undone(call, "it can no longer be undone"), tool=tool.name)
        if undo.fingerprint is not None and not call.forced and not await is_unchanged(tool, undo):
            conflict = ToolUndoError(not_undone(call, "the state has changed since"), tool=tool.name)
            conflict.code = "undo_conflict"
            raise conflict
        return Ready(fresh, evolve(undo, state=UndoState.CLAIMED, claimed_by=call.id))
    if tool.prepare is None:
        return Ready(fresh)
    return await prepare(driver, fresh, tool, driver.now())


async def prepare(
    driver: Driver, call: Call, tool: ToolDefinition, now: datetime, values: dict[str, Any] | None = None
) -> Ready:
    """Run the pure `prepare` hook; its failure ends the call before anybody is asked."""
    assert tool.prepare is not None
    try:
        async with asyncio.timeout(tool.timeout_seconds):
            prepared = await _prepared(driver, call, tool, copy_flat(values))
        if not isinstance(prepared, Prepared):
            raise TypeError(f"prepare returned {type(prepared).__name__} instead of Prepared")
        kept = (prepared.preview, prepared.undo_data, prepared.preconditions)
        is_long = any(map(is_large, kept)) or (call.hides and is_large(call.arguments))
        made = (driver, call, tool, prepared)
        preview, preconditions, undo_data = await aside(_kept, *made) if is_long else _kept(*made)
    except ToolDeniedError:
        raise
    except Exception as error:  # whatever prepare raises, nothing was changed and nothing runs
        why = driver.masker_of(call).text(text_of(error))
        failure = ToolError(f"Tool `{tool.name}` could not be prepared: {why}", tool=tool.name)
        failure.code = "prepare_failed"
        raise failure from error
    ready = evolve(call, preview=preview, preconditions=preconditions)
    asks = None if prepared.asks is None else driver.masker_of(call).text(prepared.asks)
    if undo_data is None or not driver.realm(call.project).keeps_undo:
        return Ready(ready, asks=asks)
    ttl_s = driver.undo_ttl(tool, call.context)
    undo = steps.undo_record(ready, data=undo_data, now=now, ttl_s=ttl_s, state=UndoState.PREPARED)
    return Ready(ready, undo, asks)


async def _prepared(driver: Driver, call: Call, tool: ToolDefinition, values: dict[str, Any] | None) -> object:
    """Return what the hook gives: called here, or, where it plans what runs in the sandbox first, by its runner."""
    hook = tool.prepare
    assert hook is not None
    if isinstance(hook, Confinable):
        runner = driver.runners.get(Placement.SANDBOX.value)
        if runner is None:
            raise SandboxError(f"`{tool.name}` is prepared in the sandbox, and this gate has none; nothing ran.")
        job = Job(call, tool, hook, False, None)
        job.args = (input_of(call, values),)
        job.sandbox = driver.plan_of(tool, call.context).stance.sandbox
        return await runner.run(job)
    given = partial(input_of, call, values)
    return await (hook(given()) if is_async(hook) else asyncio.to_thread(lambda: hook(given())))


def _kept(driver: Driver, call: Call, tool: ToolDefinition, prepared: Prepared) -> tuple[Any, bytes, bytes | None]:
    """Return what is kept of what a tool prepared: its preview, masked, and what it rests on and undoes with."""
    preview = encode(prepared.preview, what="preview")
    keeps_undo = prepared.undo_data is not None and tool.undoable
    return (
        driver.masker_of(call, room=len(preview)).of(decode(preview), preview),
        encode(prepared.preconditions, what="preconditions"),
        encode(prepared.undo_data, what="undo data") if keeps_undo else None,
    )


def not_undone(call: Call, reason: str) -> str:
    """Say that an undo call did not undo its original, and why."""
    return f"Call {call.undo_of} (`{call.tool_name}`) was not undone: {reason}."
