"""Remembered answers over the network: look at them, try one out, take one back."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from typing import Any

from toolgate.interfaces.client.base import Part
from toolgate.interfaces.client.connection import given
from toolgate.wire.policy import GrantPreviewAnswer
from toolgate.wire.schemas import GrantAnswer, GrantList, GrantRecord


class Grants(Part):
    """`client.grants`. One is made with `client.approvals.approve(..., remember=...)`."""

    async def list(
        self, *, tool_name: str | None = None, live: bool = True, limit: int | None = None
    ) -> builtins.list[GrantRecord]:
        """Remembered answers, oldest first; with `live`, only those that can still be used."""
        query = given(tool_name=tool_name, live=live, limit=limit)
        return (await self._connection.ask(GrantList, "GET", self._path("grants"), query=query, repeats=True)).grants

    async def get(self, grant_id: str) -> GrantRecord:
        """One remembered answer."""
        path = self._path("grants", grant_id)
        return (await self._connection.ask(GrantAnswer, "GET", path, repeats=True)).grant

    async def revoke(self, grant_id: str, reason: str | None = None) -> GrantRecord:
        """Take a remembered answer back."""
        path = self._path("grants", grant_id, "revoke")
        return (await self._connection.ask(GrantAnswer, "POST", path, body=given(reason=reason))).grant

    async def preview(
        self,
        approval_id: str,
        *,
        uses: int | None = None,
        seconds: float | None = None,
        pattern: Mapping[str, Any] | None = None,
    ) -> GrantPreviewAnswer:
        """Which past calls a remembered yes would have covered."""
        body = given(uses=uses, seconds=seconds, pattern=None if pattern is None else dict(pattern))
        path = self._path("approvals", approval_id, "grant-preview")
        return await self._connection.ask(GrantPreviewAnswer, "POST", path, body=body, repeats=True)
