"""Which policy the gate uses: set by hand, or read again when its files change.

A changed policy is taken whole or not at all. One that cannot be used changes nothing, and the record says so.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from time import monotonic
from typing import Any, Protocol, TypeVar

from toolgate.errors import GateClosedError, PolicyError, UsageError
from toolgate.kernel.change import Change
from toolgate.kernel.context import SYSTEM_PROJECT
from toolgate.kernel.event import Draft
from toolgate.kernel.policy import Policy
from toolgate.pipeline.driver import Driver
from toolgate.pipeline.lane import Lane

T = TypeVar("T")
Submit = Callable[[Coroutine[Any, Any, Any]], Future[Any]]

LOOK_AFTER_S = 1.0
"""How old what is known about the files may be when a call is made."""

RELOADER = "policy:files"
log = logging.getLogger("toolgate.policy")


class PolicySource(Protocol):
    """Where a policy comes from. `load` raises PolicyError and then does not report the same change again."""

    def load(self) -> Policy: ...

    def has_changed(self) -> bool: ...


class Policies:
    """Keeps the driver's policy current. `submit` runs a coroutine on a loop of the gate's own."""

    def __init__(self, driver: Driver, source: PolicySource | None, submit: Submit) -> None:
        self._driver = driver
        self._source = source
        self._submit = submit
        self._lane = Lane()
        self._turn = asyncio.Lock()
        self._following: Future[None] | None = None
        self._looked_at = monotonic()
        if source is not None:
            driver.refresh = self.look

    async def look(self) -> None:
        """Read the policy again if its files changed; asked before calls, at most once a second.

        Who asks while it is read waits for it: a stricter policy counts for every call from the moment it is seen.
        """
        following = self._following
        if following is None:
            source = self._source
            if source is None or monotonic() - self._looked_at < LOOK_AFTER_S:
                return
            self._looked_at = monotonic()
            if not source.has_changed():
                return
            following = self._following = self._submit(self._follow())
        await _outcome(following)

    async def _follow(self) -> None:
        try:
            await self._reload(RELOADER)
        except PolicyError as error:
            log.error("the changed policy is not used: %s", error)
        finally:
            self._following = None

    async def reload(self, *, by: str) -> Policy:
        """Read the policy again and use it; PolicyError, and an event, where it cannot be used."""
        return await _outcome(self._submit(self._reload(by)))

    async def _reload(self, by: str) -> Policy:
        """Read and compile on a thread, which takes seconds for the largest; whoever asked may be gone by then."""
        if self._source is None:
            raise UsageError("This gate's policy comes from no file: use `set_policy`.")
        async with self._turn:
            try:
                policy = await asyncio.wrap_future(self._lane.submit(self._source.load))
            except PolicyError as error:
                data = {"kept": self._driver.policy.revision, "by": by}
                await self.tell(("policy.refused", None, data, {"problems": str(error)[:2000]}))
                raise
            if _changes(self._driver.policy, policy):
                await self.use(policy, by=by)
        return self._driver.policy

    async def use(self, policy: Policy, *, by: str) -> None:
        """Use another policy from now on: recorded first, also where a project has its own, then in force."""
        driver = self._driver
        changes = _changes(driver.policy, policy) or {SYSTEM_PROJECT: (driver.policy.revision, policy.revision)}
        for project, (before, after) in changes.items():
            await self.tell(("policy.changed", None, {"from": before, "to": after, "by": by}, None), project)
        driver.policy = policy

    async def tell(self, event: Draft, project: str = SYSTEM_PROJECT) -> None:
        """Record an event of the system's own, or of what holds in a project."""
        await self._driver.commit(Change(project=project, at=self._driver.now(), events=(event,)))


def _changes(old: Policy, new: Policy) -> dict[str, tuple[str, str]]:
    """Return the revisions before and after of every project that has a policy of its own, and of all the others."""
    revisions = {SYSTEM_PROJECT: (old.revision, new.revision)}
    for project in sorted(old.projects.keys() | new.projects.keys()):
        revisions[project] = (old.in_project(project).revision, new.in_project(project).revision)
    return {project: both for project, both in revisions.items() if both[0] != both[1]}


async def _outcome(work: Future[T]) -> T:
    """Wait for work on the gate's own loop, which goes on when whoever waits is cancelled."""
    try:
        return await asyncio.shield(asyncio.wrap_future(work))
    except asyncio.CancelledError:
        if work.cancelled():
            raise GateClosedError("This gate is closed; open a new one.") from None
        raise
