"""Calls that run elsewhere: who takes them, how far they are, and what a worker does."""

from __future__ import annotations

from collections.abc import Callable, Collection

from toolgate.gate.approvals import somebody
from toolgate.kernel.call import Call
from toolgate.kernel.context import DEFAULT_PROJECT, Principal
from toolgate.kernel.output import Result
from toolgate.pipeline.remote.leasing import Leases
from toolgate.pipeline.remote.orders import Orders

LEASE_S = 10.0
"""How long a worker's call is its own without a sign of life."""


class Remote:
    """`gate.remote`, for clients and workers; they report with `gate.complete`."""

    def __init__(self, leases: Leases, orders: Orders, check_open: Callable[[], None]) -> None:
        self._leases = leases
        self._orders = orders
        self._check_open = check_open

    async def dispatch(self, call_id: str, *, to: str | Principal, project: str = DEFAULT_PROJECT) -> Call:
        """Give a call that waits for a client or worker to `to`; returns it with its real arguments and fence.

        Durable before it returns, so what is sent next is sent once.
        """
        self._check_open()
        return await self._leases.dispatch(project, call_id, to=Principal.of(to))

    async def claim(self, call_id: str, *, by: str | Principal, fence: str, project: str = DEFAULT_PROJECT) -> Call:
        """Give an approved call to its caller, who runs it in a process of their own and reports with `fence`.

        Returns it with its real arguments; claiming again with the same fence gives the same. Raises NotAllowedError
        for who did not make it, ConflictError where it does not wait for its caller.
        """
        self._check_open()
        return await self._leases.claim(project, call_id, by=Principal.of(by), fence=fence)

    async def progress(
        self,
        call_id: str,
        fraction: float | None = None,
        message: str | None = None,
        data: object = None,
        *,
        by: str | Principal | None = None,
        fence: str | None = None,
        project: str = DEFAULT_PROJECT,
    ) -> Result:
        """Report how far a call on a client or worker is; this renews its lease."""
        self._check_open()
        who = None if by is None else somebody(by)
        return await self._leases.progress(
            project, call_id, by=who, fence=fence, fraction=fraction, message=message, data=data
        )

    async def doubt(
        self,
        call_id: str,
        reason: str,
        *,
        raised: Collection[str] = (),
        fence: str | None = None,
        by: str | Principal | None = None,
        project: str = DEFAULT_PROJECT,
    ) -> Result:
        """Report that whoever ran a call on a client or worker cannot say what it did; as final as a result.

        `raised` are the names of what the error was that ended it, where one did: then it ends as it would have if its
        handler had raised that here.
        """
        self._check_open()
        who = None if by is None else Principal.of(by)
        return await self._leases.doubt(project, call_id, reason, kinds=frozenset(raised), fence=fence, by=who)

    async def work(
        self, call_id: str, *, by: str | Principal, project: str = DEFAULT_PROJECT, lease_s: float = LEASE_S
    ) -> Result:
        """Take a call that waits for a worker, run it in this process and return how it ended.

        Only one of many takes it; the others get a ConflictError. Its lease is renewed while it runs.
        """
        self._check_open()
        return await self._orders.perform(project, call_id, by=Principal.of(by), lease_s=lease_s)
