"""What a call would do, found out without doing it: the tool's `prepare` hook, and what it must return."""

from __future__ import annotations

import asyncio
from datetime import datetime

from toolgate.errors import ToolDeniedError, ToolError
from toolgate.kernel.call import Call
from toolgate.kernel.payload import encode
from toolgate.kernel.tool import Prepared, ToolDefinition, is_async
from toolgate.kernel.undo import UndoRecord, UndoState
from toolgate.pipeline import record
from toolgate.pipeline.binding import input_of
from toolgate.pipeline.driver import Driver
from toolgate.pipeline.execute import decode


async def prepare(driver: Driver, call: Call, tool: ToolDefinition, now: datetime) -> tuple[Call, UndoRecord | None]:
    """Run the pure `prepare` hook; its failure ends the call before anybody is asked."""
    assert tool.prepare is not None
    try:
        async with asyncio.timeout(tool.timeout_seconds):
            found = (
                tool.prepare(input_of(call))
                if is_async(tool.prepare)
                else asyncio.to_thread(tool.prepare, input_of(call))
            )
            prepared = await found
        if not isinstance(prepared, Prepared):
            raise TypeError(f"prepare returned {type(prepared).__name__} instead of Prepared")
        preview = driver.veil(call)(decode(encode(prepared.preview, what="preview")))
        preconditions = encode(prepared.preconditions, what="preconditions")
        undo_data = (
            None if prepared.undo_data is None or not tool.undoable else encode(prepared.undo_data, what="undo data")
        )
    except ToolDeniedError:
        raise
    except Exception as error:  # whatever prepare raises, nothing was changed and nothing runs
        why = driver.veil(call).text(str(error)) or type(error).__name__
        failure = ToolError(f"Tool `{tool.name}` could not be prepared: {why}", tool=tool.name)
        failure.code = "prepare_failed"
        raise failure from error
    ready = call.evolve(preview=preview, preconditions=preconditions)
    if undo_data is None or not driver.realm(call.project).keeps_undo:
        return ready, None
    ttl_s = driver.undo_ttl(tool, call.project)
    return ready, record.undo_record(ready, data=undo_data, now=now, ttl_s=ttl_s, state=UndoState.PREPARED)
