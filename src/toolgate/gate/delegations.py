"""Votes that people lend to others for a while: give one, look at them, end one."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection

from toolgate.gate.approvals import somebody
from toolgate.kernel.context import DEFAULT_PROJECT, Principal
from toolgate.kernel.delegation import Delegation
from toolgate.pipeline.people.delegating import Delegating
from toolgate.ports.store import DelegationQuery


class Delegations:
    """`gate.delegations`. One is used with `gate.decide(..., on_behalf_of=...)`."""

    def __init__(self, delegating: Delegating, check_open: Callable[[], None]) -> None:
        self._delegating = delegating
        self._check_open = check_open

    async def give(
        self,
        to: str | Principal,
        *,
        by: str | Principal,
        seconds: float,
        tools: Collection[str] = (),
        reason: str | None = None,
        project: str = DEFAULT_PROJECT,
    ) -> Delegation:
        """Lend the vote of `by` to another person for so long, at most 14 days; with `tools`, for these alone."""
        self._check_open()
        return await self._delegating.give(
            somebody(by), somebody(to), project=project, seconds=seconds, tools=tools, reason=reason
        )

    async def list(self, query: DelegationQuery) -> builtins.list[Delegation]:
        """Return the delegations that fit, oldest first.

        Where one counts as not there, whatever its row says, `invalid_because` says why.
        """
        return await self._delegating.list(query)

    async def end(
        self, delegation_id: str, *, by: str | Principal, reason: str | None = None, project: str | None = None
    ) -> Delegation:
        """End a delegation, as who gave it or as an admin: nothing is decided by it any more."""
        self._check_open()
        ended = await self._delegating.end(delegation_id, by=somebody(by), reason=reason, project=project)
        return await self._delegating.looked_at(ended)
