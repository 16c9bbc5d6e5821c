"""What time does to calls: approvals are warned about and expire, approved ones are offered again, leases end."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from toolgate.errors import ConflictError
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change
from toolgate.kernel.context import Mode
from toolgate.pipeline import approve, record
from toolgate.pipeline.driver import Driver
from toolgate.pipeline.lockdown import Lockdown
from toolgate.pipeline.recovery import Recovery
from toolgate.ports.store import ApprovalQuery

BATCH = 100
LOOK_AFTER_S = 2.0
"""How often a shared store is searched for the calls of dead processes."""

log = logging.getLogger("toolgate.sweeper")


class Sweeper:
    """Does what has come due. Several sweepers on one store do no harm: the first commit wins."""

    def __init__(
        self, driver: Driver, offer: Callable[[Call], None], recovery: Recovery, lockdown: Lockdown | None = None
    ) -> None:
        self._driver = driver
        self._lockdown = lockdown
        self._offer = offer
        self._recovery = recovery

    async def sweep(self) -> datetime | None:
        """Handle everything due now; return when to look again."""
        store = self._driver.store
        if store.is_shared:
            await self._recovery.recover()
        next_at = await self._handle_due()
        if store.is_shared and store.mode is Mode.LOCKDOWN and self._lockdown is not None:
            self._lockdown.enforce()  # another process may have set it
        if not store.is_shared:
            return next_at
        again = self._driver.now() + timedelta(seconds=LOOK_AFTER_S)
        return again if next_at is None else min(again, next_at)

    async def _handle_due(self) -> datetime | None:
        while True:
            due = await self._driver.store.due(self._driver.now(), limit=BATCH)
            for call in due.calls:
                await self._handle(call)
            if len(due.calls) < BATCH:
                return due.next_at

    async def _handle(self, call: Call) -> None:
        try:
            await self._driver.commit(await self._change(call))
        except ConflictError:
            log.debug("call %s moved on before its deadline was handled", call.id)

    async def _change(self, call: Call) -> Change:
        if call.status is Status.AWAITING_APPROVAL:
            return await self._approval(call)
        now = self._driver.now()
        if call.status is Status.APPROVED:
            self._offer(call)
            later = now + timedelta(seconds=approve.DISPATCH_GRACE_S)
            return Change.make(project=call.project, at=now, call=call.stay(due_at=later), expect=call.version)
        if call.has_effects and not call.idempotent:
            error = "Nobody reported a result in time; whether the effect happened is unknown."
            return record.failed(call, now=now, status=Status.UNKNOWN, code="unknown", error=error)
        return record.failed(
            call, now=now, status=Status.FAILED, code="timeout", error="Nobody reported a result in time."
        )

    async def _approval(self, call: Call) -> Change:
        found = await self._driver.store.approvals(ApprovalQuery(project=call.project, id=call.approval_id))
        approval, now = found[0], self._driver.now()
        if now >= approval.expires_at:
            return approve.expire(call, approval, now=now)
        return approve.warn(call, approval, now=now)
