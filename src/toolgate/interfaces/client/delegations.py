"""Lent votes over the network: give one's own, look at them, end one."""

from __future__ import annotations

import builtins
from collections.abc import Collection

from toolgate.interfaces.client.base import Part
from toolgate.interfaces.client.connection import given
from toolgate.wire.delegations import DelegationAnswer, DelegationList, DelegationRecord


class Delegations(Part):
    """`client.delegations`. One is used with `client.approvals.approve(..., on_behalf_of=...)`."""

    async def list(
        self,
        *,
        giver: str | None = None,
        delegate: str | None = None,
        live: bool = True,
        limit: int | None = None,
    ) -> builtins.list[DelegationRecord]:
        """Lent votes, oldest first; with `live`, only those that are neither over nor ended."""
        query, path = given(giver=giver, delegate=delegate, live=live, limit=limit), self._path("delegations")
        return (await self._connection.ask(DelegationList, "GET", path, query=query, repeats=True)).delegations

    async def give(
        self, to: str, *, seconds: float, tools: Collection[str] = (), reason: str | None = None
    ) -> DelegationRecord:
        """Lend one's own vote to another person; with `tools`, for these alone."""
        body = {"to": to, "seconds": seconds, "tools": [*tools]} | given(reason=reason)
        return (await self._connection.ask(DelegationAnswer, "POST", self._path("delegations"), body=body)).delegation

    async def end(self, delegation_id: str, reason: str | None = None) -> DelegationRecord:
        """End a delegation, as who gave it or as an admin."""
        path = self._path("delegations", delegation_id, "end")
        return (await self._connection.ask(DelegationAnswer, "POST", path, body=given(reason=reason))).delegation
