"""Which policy the gate uses: set by hand, or read again when its files change.

A changed policy is taken whole or not at all. One that cannot be used changes nothing, and the record says so.
"""

from __future__ import annotations

import logging
from time import monotonic
from typing import Protocol

from toolgate.errors import PolicyError, UsageError
from toolgate.kernel.change import Change
from toolgate.kernel.context import SYSTEM_PROJECT
from toolgate.kernel.event import Draft
from toolgate.kernel.policy import Policy
from toolgate.pipeline.driver import Driver

LOOK_AFTER_S = 1.0
"""How old what is known about the files may be when a call is made."""

RELOADER = "policy:files"
log = logging.getLogger("toolgate.policy")


class PolicySource(Protocol):
    """Where a policy comes from. `load` raises PolicyError and then does not report the same change again."""

    def load(self) -> Policy: ...

    def has_changed(self) -> bool: ...


class Policies:
    """Keeps the driver's policy current."""

    def __init__(self, driver: Driver, source: PolicySource | None) -> None:
        self._driver = driver
        self._source = source
        self._looked_at = monotonic()
        if source is not None:
            driver.refresh = self.look

    async def look(self) -> None:
        """Read the policy again if its files changed; asked before calls, at most once a second."""
        source = self._source
        if source is None or monotonic() - self._looked_at < LOOK_AFTER_S:
            return
        self._looked_at = monotonic()
        if source.has_changed():
            try:
                await self.reload(by=RELOADER)
            except PolicyError as error:
                log.error("the changed policy is not used: %s", error)

    async def reload(self, *, by: str) -> Policy:
        """Read the policy again and use it; PolicyError, and an event, where it cannot be used."""
        if self._source is None:
            raise UsageError("This gate's policy comes from no file: use `set_policy`.")
        try:
            policy = self._source.load()
        except PolicyError as error:
            data = {"kept": self._driver.policy.revision, "by": by}
            await self.tell(("policy.refused", None, data, {"problems": str(error)[:2000]}))
            raise
        if policy.revision != self._driver.policy.revision:
            await self.use(policy, by=by)
        return self._driver.policy

    async def use(self, policy: Policy, *, by: str) -> None:
        """Use another policy from now on: recorded first, then in force."""
        driver = self._driver
        data = {"from": driver.policy.revision, "to": policy.revision, "by": by}
        await self.tell(("policy.changed", None, data, None))
        driver.policy = policy

    async def tell(self, event: Draft) -> None:
        """Record an event of the system's own."""
        await self._driver.commit(Change(project=SYSTEM_PROJECT, at=self._driver.now(), events=(event,)))
