"""Calls that run here, over the network: take one, say how far it is, report what it gave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

from toolgate.errors import ServerError, StaleFenceError
from toolgate.interfaces.client.base import Part
from toolgate.interfaces.client.connection import given, is_uncertain
from toolgate.wire.claims import ClaimAnswer, ResultAnswer


class Remote(Part):
    """`client.remote`, for who runs calls."""

    async def claim(self, call_id: str, claim_id: str, *, retry_s: float | None = None) -> ClaimAnswer:
        """Take an approved call of your own to run it; `claim_id` is a random token of 16 characters or more.

        Claiming again with the same token is answered alike. Raises ConflictError where it does not wait for you.
        """
        path, body = self._path("tools", call_id, "claim"), {"claim_id": claim_id}
        return await self._connection.ask(ClaimAnswer, "POST", path, body=body, repeats=True, retry_s=retry_s)

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
        raised: Sequence[str] = (),
        retry_s: float | None = None,
    ) -> ResultAnswer:
        """Report what a call that ran here gave, or that nobody knows (`unknown`).

        Reporting again after a lost answer is done for you. `raised` are, with `unknown`, the names of what the error
        was that ended it: the server knows what they mean.

        Raises StaleFenceError where nobody waits for it any more; `tool_status` says where the call stands.
        """
        told = {"error": error, "fence": fence, "undo": undo, "artifacts": artifacts, "raised": raised}
        return await self._tell("result", call_id, result, status, retry_s, **told)

    async def _tell(
        self, route: str, call_id: str, result: Any, status: str, retry_s: float | None, **more: Any
    ) -> ResultAnswer:
        undo, artifacts, raised = more.pop("undo"), more.pop("artifacts"), list(more.pop("raised"))
        body = given(status=status, undo=None if undo is None else dict(undo), raised=raised or None, **more)
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
        raised: Sequence[str] = (),
        retry_s: float | None = None,
    ) -> ResultAnswer:
        """Report what a claimed call gave; `fence` is the token it was claimed with. See `result`."""
        told = {"error": error, "fence": fence, "undo": undo, "artifacts": artifacts, "raised": raised}
        return await self._tell("report", call_id, result, status, retry_s, **told)
