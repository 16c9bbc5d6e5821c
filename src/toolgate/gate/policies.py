"""Which policy the gate uses: set by hand, or read again when its files change.

A changed policy is taken whole or not at all. One that cannot be used changes nothing, and the record says so; nor does
one that a run in the sandbox may have written, until a person accepts it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from time import monotonic
from typing import Any, Protocol, TypeVar

from toolgate.errors import GateClosedError, PolicyError, PolicyHeldError, ToolgateError, UsageError
from toolgate.gate.windows import Held, PolicyWindows, revision_of
from toolgate.kernel.call import Call
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

    def __init__(
        self, driver: Driver, source: PolicySource | None, submit: Submit, windows: PolicyWindows | None = None
    ) -> None:
        self._driver = driver
        self._source = source
        self._windows = windows
        self._waiting: Policy | None = None
        """What the files say, where a person must accept it first."""
        self._submit = submit
        self._lane = Lane()
        self._turn = asyncio.Lock()
        self._following: Future[None] | None = None
        self._looked_at = monotonic()
        if source is not None:
            driver.refresh = self.look
        if windows is not None:
            windows.commit = driver.write
            driver.on_recovered = self.settle

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
            if not source.has_changed() and not await self._is_moved():
                return
            following = self._following = self._submit(self._follow())
        await _outcome(following)

    async def _is_moved(self) -> bool:
        """Whether anything was said of a policy that waits for a word, perhaps by another process."""
        if self._waiting is None or self._windows is None:
            return False
        seen = self._windows.seq
        await self._windows.read()
        return self._windows.seq != seen

    async def _follow(self) -> None:
        try:
            await self._reload(RELOADER)
        except (PolicyError, PolicyHeldError) as error:
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
            policy = await self._load(by)
            files = await self._windows.doubted(policy) if self._windows is not None else ()
            self._waiting = policy if files else None
            if files:
                raise PolicyHeldError(revision_of(policy), files)
            if _changes(self._driver.policy, policy):
                await self.use(policy, by=by)
        return self._driver.policy

    async def _load(self, by: str) -> Policy:
        assert self._source is not None
        try:
            return await asyncio.wrap_future(self._lane.submit(self._source.load))
        except PolicyError as error:
            data = {"kept": self._driver.policy.revision, "by": by}
            await self.tell(("policy.refused", None, data, {"problems": str(error)[:2000]}))
            raise

    async def held(self) -> Held | None:
        """Return what a person must look at before the policy files take effect; None where nothing waits."""
        await self.look()
        waiting = self._waiting
        return None if waiting is None or self._windows is None else await self._windows.held(waiting)

    async def held_revision(self) -> str | None:
        """Return the revision that waits for a person's word; cheap enough to be asked every second."""
        await self.look()
        return None if self._waiting is None else revision_of(self._waiting)

    async def accept(self, revision: str, *, by: str) -> Policy:
        """Follow what the files say, as somebody looked at it; ConflictError where they say another thing by now."""
        return await _outcome(self._submit(self._accept(revision, by)))

    async def _accept(self, revision: str, by: str) -> Policy:
        if self._source is None or self._windows is None:
            raise UsageError("This gate's policy comes from no file, so none is held: use `set_policy`.")
        async with self._turn:
            policy = await self._load(by)
            await self._windows.accept(policy, revision, by=by)
            self._waiting = None
            if _changes(self._driver.policy, policy):
                await self.use(policy, by=by)
        return policy

    async def settle(self) -> None:
        """Close the windows that dead processes left open."""
        if self._windows is not None:
            await _outcome(self._submit(self._windows.settle()))

    @contextmanager
    def window(self, call: Call, writable: Sequence[str], kept: Sequence[str]) -> Iterator[None]:
        """Be around a run that may write beneath `writable` but for what is `kept` from it; called off the event loop.

        It does not begin before it is on record which policy files it could write.
        """
        windows = self._windows
        if windows is None or not windows.exposed(self._driver.policy, writable, kept):
            yield
            return
        if self._source is not None and self._source.has_changed():
            self._submit(self._follow()).result()  # what a person wrote before the run is not the run's
        policy = self._driver.policy
        files = windows.exposed(policy, writable, kept)
        opened = self._submit(windows.open(call, policy, files)).result()
        try:
            yield
        finally:
            try:
                self._submit(windows.close(opened)).result()
            except ToolgateError as error:  # it stays open, and keeps the files as they were, until it can be closed
                log.error("the end of a run that could write policy files is not recorded: %s", error)

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
