"""Calls over the network: make one, wait for it, run it here, cancel, undo, settle. The verbs are those of a Gate."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import secrets
from collections.abc import Callable, Mapping
from typing import Any

import uuid_utils

from toolgate.errors import ConflictError, StaleFenceError, ToolInputError, UsageError, text_of
from toolgate.interfaces.client.base import Part
from toolgate.interfaces.client.calls import Calls
from toolgate.interfaces.client.connection import given
from toolgate.interfaces.client.remote import Remote
from toolgate.interfaces.client.results import result_of
from toolgate.interfaces.client.waiting import LOOK_S, CallWaiters
from toolgate.kernel.call import Status
from toolgate.kernel.doubt import carried_kinds
from toolgate.kernel.output import Result, ToolOutput
from toolgate.kernel.payload import plain
from toolgate.kernel.record import evolve
from toolgate.kernel.text.canonical import MAX_DEPTH, Limits, read_arguments
from toolgate.kernel.tool import Placement
from toolgate.wire.schemas import ExecuteAnswer, Execution, ExecutionRecord, ToolInfo, ToolList, UndoAnswer

HOLD_S = 20.0
"""How long one request waits for a call; after it the wait goes on by events."""
FOREVER = float("inf")
_UNANSWERED = (Status.PENDING, Status.AWAITING_APPROVAL)
MOST_SENT = Limits(max_bytes=2**28, max_depth=MAX_DEPTH)
"""How large arguments may be to be sent; what is too large for the server, it says."""


class Calling(Part):
    """Tools and what is done with calls of them."""

    _waiters: CallWaiters
    calls: Calls
    remote: Remote

    async def tools(self) -> list[ToolInfo]:
        """The tools that can be called."""
        return (await self._connection.ask(ToolList, "GET", self._path("tools", "available"), repeats=True)).tools

    async def call(
        self,
        tool: str,
        arguments: str | bytes | Mapping[str, Any] | None = None,
        *,
        session_id: str | None = None,
        run_id: str | None = None,
        step_id: str | None = None,
        behavior: str | None = None,
        call_id: str | None = None,
        wait: bool | float = True,
        approval_timeout_s: float | None = None,
        claim: str | None = None,
        repeat_of: str | None = None,
        distinct: bool = False,
    ) -> Result:
        """Return the call's final result, waiting for approval and execution; or where it stands when `wait` is False
        or its seconds are over.

        Governed ends (denied, rejected, failed...) are results, not exceptions: see `Result.unwrap`. The call has an
        id from the start (`call_id`, or a new one), and the same id never runs twice: a lost connection is simply
        tried again. Cancelling the wait does not cancel the call.

        One that was made before, by its effect key or in the same run while its question is open, is joined: the
        result is that call's, under its id (`Result.joined`). `step_id` names the turn of the run: two alike of one
        step are two. `distinct` joins none. `repeat_of` is a call of yours that has ended and whose effect is to be had
        again, on purpose. EffectHeldError where another call has the effect. Arguments that JSON would change on their
        way are a UsageError, and nothing is called.
        """
        hold_s = HOLD_S if wait is True else min(float(wait), HOLD_S)
        body = given(
            tool_name=tool,
            tool_params=_as_sent({} if arguments is None else arguments),
            session_id=session_id,
            run_id=run_id,
            step_id=step_id,
            behavior=behavior,
            tool_id=str(uuid_utils.uuid7()) if call_id is None else call_id,
            claim=claim,
            repeat_of=repeat_of,
            distinct=distinct or None,
            approval_timeout_seconds=approval_timeout_s,
            wait=wait is not False,
            wait_seconds=hold_s,
        )
        made = await self._connection.ask(
            ExecuteAnswer, "POST", self._path("tools", "execute"), body=body, repeats=True, wait_s=hold_s
        )
        if made.is_final or wait is False:
            return result_of(made)
        ended = self.wait(made.tool_id) if wait is True else self._within(made.tool_id, wait - hold_s)
        return evolve(await ended, joined=made.joined)

    async def _within(self, call_id: str, seconds: float) -> Result:
        """How a call ended, or where it stands when the seconds are over."""
        with contextlib.suppress(TimeoutError):
            return await self.wait(call_id, timeout=seconds)
        return await self.get(call_id)

    async def wait(self, call_id: str, timeout: float | None = None) -> Result:
        """Return the result of a call when it is final, however long that takes; raise TimeoutError after `timeout`
        seconds.

        One that its caller is to run is returned when it is approved: see `run_here`.
        Lost connections and restarts of the server are waited out. Cancelling the wait does not cancel the call.
        """
        async with asyncio.timeout(timeout):
            return result_of(await self._ended(call_id))

    async def _ended(self, call_id: str, *, at_caller: bool = False) -> ExecutionRecord:
        with self._waiters.of(call_id) as hint:
            while True:
                hint.clear()
                async with self._waiters.looking:
                    found = await self.calls.get(call_id, retry_s=FOREVER)
                if at_caller and found.placement != Placement.CALLER:
                    raise UsageError(f"Call {call_id[:64]} runs in placement '{found.placement}', not at its caller.")
                if found.is_final or found.waits_for_caller:
                    return found
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S):
                        await hint.wait()

    async def get(self, call_id: str) -> Result:
        """Where a call stands; `calls.get` has everything that is kept of it."""
        return result_of(await self.calls.get(call_id))

    async def run_here(self, call_id: str, function: Callable[[dict[str, Any]], Any], *, wait: bool = True) -> Result:
        """Run an approved call of a tool placed at its caller with a function of your own, and report what it did.

        Waits until the call is approved (without `wait`, returns where it stands if a person has yet to answer), and
        calls `function(arguments)` with what was approved, which a person may have edited; a plain function runs in a
        thread. Only one of many who try runs it; the others get the recorded
        result. What it returns or raises is the call's outcome; one who leaves without a word leaves it UNKNOWN.
        """
        if not callable(function):
            raise UsageError(f"`run_here` takes a function of the arguments, not {type(function).__name__}.")
        refused = None
        while True:
            if not wait and (standing := await self.get(call_id)).status in _UNANSWERED:
                return standing
            if (found := await self._ended(call_id, at_caller=True)).is_final:
                return result_of(found)
            claim_id = secrets.token_urlsafe(24)
            try:
                claimed = await self.remote.claim(call_id, claim_id, retry_s=FOREVER)
            except ConflictError:
                asked = (found.approval_id, found.approved_at)
                if asked == refused:
                    raise  # the same yes is refused again: nobody has it, and the server cannot give it
                refused = asked
                continue  # somebody else has it, or it was asked about again: wait for what comes of that
            outcome = await _outcome_of(function, claimed.tool_params)
            with contextlib.suppress(StaleFenceError):  # it did not wait for this any more; what stands is read next
                await self.remote.report(call_id, fence=claim_id, retry_s=FOREVER, **outcome)

    async def cancel(self, call_id: str, reason: str | None = None) -> Result:
        """Cancel a call; what runs may take a while to stop, so the answer may not be final."""
        path = self._path("tools", call_id, "cancel")
        return result_of(await self._connection.ask(Execution, "POST", path, body=given(reason=reason)))

    async def undo(self, call_id: str, *, force: bool = False) -> Result:
        """Undo a call. `force` is for admins: undo although the state has changed since."""
        path = self._path("tools", call_id, "undo")
        return result_of(await self._connection.ask(UndoAnswer, "POST", path, body={"force": force}, wait_s=HOLD_S))

    async def settle(self, call_id: str, *, happened: bool | None, reason: str) -> Result:
        """Say what a call of unknown outcome really did; None where that is not known yet."""
        body = {"happened": happened, "reason": reason}
        return result_of(
            await self._connection.ask(Execution, "POST", self._path("tools", call_id, "settle"), body=body)
        )


def _as_sent(arguments: str | bytes | Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as a gate reads them; UsageError for NaN, dates and whatever else JSON would change."""
    try:
        return read_arguments(arguments, limits=MOST_SENT).value
    except ToolInputError as error:
        raise UsageError(str(error)) from None


async def _outcome_of(function: Callable[[dict[str, Any]], Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Run a caller's own function, and put what came of it as a report does."""
    try:
        is_plain = not inspect.iscoroutinefunction(function)
        result = await asyncio.to_thread(function, arguments) if is_plain else function(arguments)
        result = await result if inspect.isawaitable(result) else result
        return _report_of(result)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever it raises is how it failed
        # What that means for a tool with effects is for the gate to say.
        return {"status": "unknown", "error": text_of(error), "raised": sorted(carried_kinds(error))}


def _report_of(result: Any) -> dict[str, Any]:
    """What a function returned, read as a gate reads it: a ToolOutput says itself whether it succeeded."""
    if not isinstance(result, ToolOutput):
        return {"status": "completed", "result": plain(result)}
    kept = result.to_dict()
    return {
        "status": "completed" if result.success else "failed",
        "result": kept["data"],
        "error": None if result.success else result.error or "The function did not say why it failed.",
        "undo": kept["undo_metadata"],
        "artifacts": kept["artifacts"],
    }
