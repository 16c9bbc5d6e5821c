"""Calls that end with whoever made them: the way of doors whose callers hold the call in their hands."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from toolgate.errors import ConflictError, NotFoundError
from toolgate.gate.parked import Parked
from toolgate.kernel.output import Result
from toolgate.kernel.record import evolve
from toolgate.pipeline import eager
from toolgate.pipeline.background import Background
from toolgate.pipeline.driver import Driver
from toolgate.pipeline.waiting import Key

REASON = "the caller went away"
PATIENCE_S = 0.25
"""How long a call that is being made may take to be stored before making it is given up."""

log = logging.getLogger("toolgate.ownership")


class Ownership:
    """Takes a call from its making to its end, and ends it when the one who made it is cancelled."""

    def __init__(
        self,
        driver: Driver,
        parked: Parked,
        background: Background,
        cancel: Callable[..., Awaitable[Result]],
    ) -> None:
        self._driver = driver
        self._parked = parked
        self._background = background
        self._cancel = cancel

    async def see_through(self, key: Key, submitting: Coroutine[Any, Any, Result]) -> Result:
        """Return the final result; cancelled, leave no call behind that was not there before."""
        started = eager.start(submitting)
        try:
            result = await eager.finish(started) if isinstance(started, asyncio.Task) else started
            if not result.is_final:
                key = (key[0], result.call_id)  # the one it joined, where it did
                await self._parked.settle_in(key)
                joined = result.joined
                result = await self._parked.wait(key)
                result = evolve(result, joined=True) if joined else result
        except asyncio.CancelledError:
            if not _is_joined(started):
                # On the gate's own loop: the caller's may be closing, and may be cancelled again.
                ending = self._background.submit(self._end(key, started))
                await asyncio.wait({asyncio.wrap_future(ending)})
            raise
        return result

    async def _end(self, key: Key, started: Result | asyncio.Task[Result]) -> None:
        project, call_id = key
        try:
            await self._wait_for_row(key, started)
            await self._cancel(call_id, reason=REASON, project=project)
            if isinstance(started, asyncio.Task):  # what still makes it ready has nothing to make ready any more
                _stop(started)
        except NotFoundError:
            log.debug("call %s was given up before it was made", call_id)
        except ConflictError as error:
            log.warning("call %s goes on without its caller: %s", call_id, error)
        relay = self._driver.relay(project)
        if relay is not None:
            await relay.moment()

    async def _wait_for_row(self, key: Key, started: Result | asyncio.Task[Result]) -> None:
        """Give a call that is being made the time to be stored; then stop making it."""
        if not isinstance(started, asyncio.Task):
            return
        left = PATIENCE_S
        while not started.done() and await self._driver.store.call(*key) is None:
            if left <= 0:
                _stop(started)
            await asyncio.sleep(0.01)
            left -= 0.01


def _stop(making: asyncio.Task[Result]) -> None:
    """Cancel from another thread what makes a call, unless its event loop is gone."""
    with contextlib.suppress(RuntimeError):
        making.get_loop().call_soon_threadsafe(making.cancel)


def _is_joined(started: Result | asyncio.Task[Result]) -> bool:
    if not isinstance(started, asyncio.Task):
        return started.joined
    return started.done() and not started.cancelled() and started.exception() is None and started.result().joined
