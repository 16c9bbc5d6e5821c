"""Calls over the network: make one, wait for it, look, report what ran here, cancel, undo, settle."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Literal

import orjson
import uuid_utils

from toolgate.errors import ConflictError, ServerError, StaleFenceError, text_of
from toolgate.interfaces.client.base import Part
from toolgate.interfaces.client.connection import given, is_uncertain
from toolgate.interfaces.client.waiting import LOOK_S, CallWaiters
from toolgate.wire.claims import ClaimAnswer
from toolgate.wire.schemas import (
    Execution,
    ExecutionList,
    ExecutionRecord,
    ResultAnswer,
    ToolInfo,
    ToolList,
)

HOLD_S = 20.0
"""How long one request waits for a call; after it the wait goes on by events."""
FOREVER = float("inf")


class Calls(Part):
    """Tools and their calls."""

    _waiters: CallWaiters

    async def tools(self) -> list[ToolInfo]:
        """The tools that can be called."""
        return (await self._connection.ask(ToolList, "GET", self._path("tools", "available"), repeats=True)).tools

    async def execute(
        self,
        tool_name: str,
        params: Mapping[str, Any] | None = None,
        *,
        session_id: str | None = None,
        run_id: str | None = None,
        behavior: str | None = None,
        call_id: str | None = None,
        claim: str | None = None,
        approval_timeout_s: float | None = None,
        wait: bool | float = True,
    ) -> Execution:
        """Call a tool; return how it ended, or where it stands when `wait` is False or its seconds are over.

        The call has an id from the start (`call_id`, or a new one), and the same id never runs twice: a lost
        connection is simply tried again. Cancelling the wait does not cancel the call.
        """
        hold_s = HOLD_S if wait is True else min(float(wait), HOLD_S)
        body = given(
            tool_name=tool_name,
            tool_params=dict(params or {}),
            session_id=session_id,
            run_id=run_id,
            behavior=behavior,
            tool_id=call_id or str(uuid_utils.uuid7()),
            claim=claim,
            approval_timeout_seconds=approval_timeout_s,
            wait=wait is not False,
            wait_seconds=hold_s,
        )
        made = await self._connection.ask(
            Execution, "POST", self._path("tools", "execute"), body=body, repeats=True, wait_s=hold_s
        )
        if made.is_final or wait is False:
            return made
        if wait is True:
            return await self.wait(made.tool_id)
        with contextlib.suppress(TimeoutError):
            return await self.wait(made.tool_id, timeout=float(wait) - hold_s)
        return await self.call(made.tool_id)

    async def wait(self, call_id: str, timeout: float | None = None) -> ExecutionRecord:
        """Return the call when it is final, however long that takes; raise TimeoutError after `timeout` seconds.

        One that its caller is to run is returned when it is approved: see `run_here`.
        Lost connections and restarts of the server are waited out. Cancelling the wait does not cancel the call.
        """
        async with asyncio.timeout(timeout):
            with self._waiters.of(call_id) as hint:
                while True:
                    hint.clear()
                    async with self._waiters.looking:
                        found = await self._look(call_id, retry_s=FOREVER)
                    if found.is_final or found.waits_for_caller:
                        return found
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(LOOK_S):
                            await hint.wait()

    async def _look(self, call_id: str, *, retry_s: float | None = None) -> ExecutionRecord:
        return await self._connection.ask(
            ExecutionRecord, "GET", self._path("tools", call_id), repeats=True, retry_s=retry_s
        )

    async def call(self, call_id: str) -> ExecutionRecord:
        """One call: masked, but for who asked, who gets the real result."""
        return await self._look(call_id)

    async def calls(
        self,
        *,
        status: str | None = None,
        run_id: str | None = None,
        tool_name: str | None = None,
        requester: str | None = None,
        text: str | None = None,
        since: datetime | None = None,
        order: Literal["oldest", "newest"] | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> ExecutionList:
        """A page of calls, oldest first unless `order` says otherwise; its `next` is the `after` of the next page."""
        query = given(
            status=status,
            run_id=run_id,
            tool_name=tool_name,
            requester=requester,
            text=text,
            since=None if since is None else since.isoformat(),
            order=order,
            after=after,
            limit=limit,
        )
        return await self._connection.ask(ExecutionList, "GET", self._path("tools"), query=query, repeats=True)

    async def result(
        self,
        call_id: str,
        result: Any = None,
        *,
        status: Literal["completed", "failed", "unknown"] = "completed",
        error: str | None = None,
        fence: str | None = None,
        undo: Mapping[str, Any] | None = None,
        artifacts: Sequence[Any] = (),
        retry_s: float | None = None,
    ) -> ResultAnswer:
        """Report what a call that ran here gave, or that nobody knows (`unknown`).

        Reporting again after a lost answer is done for you.

        Raises StaleFenceError where nobody waits for it any more; `tool_status` says where the call stands.
        """
        return await self._tell(
            "result", call_id, result, status, retry_s, error=error, fence=fence, undo=undo, artifacts=artifacts
        )

    async def _tell(
        self, route: str, call_id: str, result: Any, status: str, retry_s: float | None, **more: Any
    ) -> ResultAnswer:
        undo, artifacts = more.pop("undo"), more.pop("artifacts")
        body = given(status=status, undo=None if undo is None else dict(undo), **more)
        body |= {"result": result, "artifacts": list(artifacts)}
        path = self._path("tools", call_id, route)
        report = partial(self._connection.ask, ResultAnswer, "POST", path, body=body, retry_s=retry_s)
        try:
            return await report()
        except ServerError as failed:
            if not is_uncertain(failed):
                raise
        try:
            return await report(repeats=True)
        except StaleFenceError as late:
            ended: Literal["completed", "failed"] = "completed" if status == "completed" else "failed"
            if late.tool_status != ended:
                raise
            return ResultAnswer(success=True, tool_id=call_id, status=ended, message="The first report arrived.")

    async def progress(
        self,
        call_id: str,
        progress: float | None = None,
        message: str | None = None,
        *,
        data: Any = None,
        fence: str | None = None,
    ) -> ResultAnswer:
        """Say how far a call that runs here is, and renew its lease. Saying nothing is a heartbeat."""
        body = given(progress=progress, message=message, data=data, fence=fence)
        return await self._connection.ask(
            ResultAnswer, "POST", self._path("tools", call_id, "progress"), body=body, repeats=True
        )

    async def run_here(self, call_id: str, function: Callable[[dict[str, Any]], Any]) -> ExecutionRecord:
        """Run an approved call of a tool placed at its caller with a function of your own, and report what it did.

        Waits until the call is approved, and calls `function(arguments)` with what was approved, which a person may
        have edited; a plain function runs in a thread. Only one of many who try runs it; the others get the recorded
        result. What it returns or raises is the call's outcome; one who leaves without a word leaves it UNKNOWN.
        """
        while not (found := await self.wait(call_id)).is_final:
            claim_id = secrets.token_urlsafe(24)
            try:
                claimed = await self.claim(call_id, claim_id)
            except ConflictError:
                continue  # somebody else has it, or it was asked about again: wait for what comes of that
            outcome = await _outcome_of(function, claimed.tool_params)
            with contextlib.suppress(StaleFenceError):  # it did not wait for this any more; what stands is read next
                await self.report(call_id, fence=claim_id, retry_s=FOREVER, **outcome)
        return found

    async def claim(self, call_id: str, claim_id: str) -> ClaimAnswer:
        """Take an approved call of your own to run it; `claim_id` is a random token of 16 characters or more.

        Claiming again with the same token is answered alike. Raises ConflictError where it does not wait for you.
        """
        path = self._path("tools", call_id, "claim")
        return await self._connection.ask(ClaimAnswer, "POST", path, body={"claim_id": claim_id}, repeats=True)

    async def report(
        self,
        call_id: str,
        result: Any = None,
        *,
        fence: str,
        status: Literal["completed", "failed", "unknown"] = "completed",
        error: str | None = None,
        undo: Mapping[str, Any] | None = None,
        artifacts: Sequence[Any] = (),
        retry_s: float | None = None,
    ) -> ResultAnswer:
        """Report what a claimed call gave; `fence` is the token it was claimed with. See `result`."""
        return await self._tell(
            "report", call_id, result, status, retry_s, error=error, fence=fence, undo=undo, artifacts=artifacts
        )

    async def cancel(self, call_id: str, reason: str | None = None) -> Execution:
        """Cancel a call; what runs may take a while to stop, so the answer may not be final."""
        path = self._path("tools", call_id, "cancel")
        return await self._connection.ask(Execution, "POST", path, body=given(reason=reason))

    async def undo(self, call_id: str, *, force: bool = False) -> Execution:
        """Undo a call. `force` is for admins: undo although the state has changed since."""
        path = self._path("tools", call_id, "undo")
        return await self._connection.ask(Execution, "POST", path, body={"force": force}, wait_s=HOLD_S)

    async def settle(self, call_id: str, *, happened: bool, reason: str) -> Execution:
        """Say what a call of unknown outcome really did."""
        body = {"happened": happened, "reason": reason}
        return await self._connection.ask(Execution, "POST", self._path("tools", call_id, "settle"), body=body)


async def _outcome_of(function: Callable[[dict[str, Any]], Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Run a caller's own function, and put what came of it as a report does."""
    try:
        is_plain = not inspect.iscoroutinefunction(function)
        result = await asyncio.to_thread(function, arguments) if is_plain else function(arguments)
        result = await result if inspect.isawaitable(result) else result
        orjson.dumps(result)
    except Exception as error:  # noqa: BLE001  # whatever it raises is how it failed
        return {"status": "failed", "error": text_of(error)}
    return {"status": "completed", "result": result}
