"""Remembered answers: look at them, try one out, take one back."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from contextlib import suppress

from toolgate.errors import GrantChangedError
from toolgate.gate.approvals import said, somebody
from toolgate.kernel.context import Principal
from toolgate.kernel.grant import Grant, Remember
from toolgate.kernel.record import evolve
from toolgate.pipeline.driver import Driver
from toolgate.pipeline.evidence import lapse_of, lapse_told
from toolgate.pipeline.people.deciding import Deciding, Foresight
from toolgate.ports.store import GrantQuery


class Grants:
    """`gate.grants`. One is made with `gate.decide(..., remember=...)`."""

    def __init__(self, driver: Driver, deciding: Deciding, check_open: Callable[[], None]) -> None:
        self._driver = driver
        self._deciding = deciding
        self._check_open = check_open

    async def list(self, query: GrantQuery) -> builtins.list[Grant]:
        """Return the remembered answers that fit, oldest first, each with its uses.

        Where one counts as not there, whatever its row says, `invalid_because` says why.
        """
        return [await self._looked_at(grant) for grant in await self._driver.store.grants(query)]

    async def preview(
        self, approval_id: str, remember: Remember, *, by: str | Principal, project: str | None = None
    ) -> Foresight:
        """Say which past calls a grant from this question would have covered; nothing is decided or kept."""
        self._check_open()
        return await self._deciding.foresee(said(approval_id, by, None, None, project), remember)

    async def revoke(
        self, grant_id: str, *, by: str | Principal, reason: str | None = None, project: str | None = None
    ) -> Grant:
        """Take a remembered answer back: nothing starts because of it any more."""
        self._check_open()
        revoked = await self._deciding.revoke(grant_id, by=somebody(by), reason=reason, project=project)
        return await self._looked_at(revoked)

    async def _looked_at(self, grant: Grant) -> Grant:
        driver = self._driver
        lapse = await lapse_of(driver, grant)
        if lapse is None and grant.is_live(driver.now()):
            with suppress(GrantChangedError):  # it was as it was read
                lapse = await lapse_told(driver.store, grant)
        return grant if lapse is None else evolve(grant, invalid_because=lapse)
