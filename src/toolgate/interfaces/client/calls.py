"""The rows of calls over the network: look one up, or look through them."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from toolgate.interfaces.client.base import Part
from toolgate.interfaces.client.connection import given
from toolgate.wire.schemas import ExecutionList, ExecutionRecord


class Calls(Part):
    """`client.calls`. `client.get` returns what a caller needs of one."""

    async def get(self, call_id: str, *, retry_s: float | None = None) -> ExecutionRecord:
        """Everything a reader may see of a call: masked, but for who asked, who gets the real result."""
        return await self._connection.ask(
            ExecutionRecord, "GET", self._path("tools", call_id), repeats=True, retry_s=retry_s
        )

    async def list(
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
