"""Carries questions to the channels and brings their answers back."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import logging
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from toolgate.errors import DecisionConflictError, DeliveryError
from toolgate.kernel.approval import SHOWN_JSON, Approval
from toolgate.kernel.change import Change
from toolgate.kernel.narration import tell_approval
from toolgate.kernel.record import evolve
from toolgate.pipeline.driver import Driver
from toolgate.pipeline.people.deciding import Deciding, Said
from toolgate.ports.channel import Channel, Decision

log = logging.getLogger("toolgate.channels")
ENDING_S = 5.0
"""How long an event loop that cancelled a question has to close before the question is asked elsewhere anyway."""


class Messenger:
    """Asks every channel about every approval, on the loop of the call that needs it."""

    def __init__(
        self,
        channels: Iterable[Channel],
        deciding: Deciding,
        driver: Driver,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._channels = list(channels)
        self._deciding = deciding
        self._driver = driver
        self._spawn = spawn
        self._asking: set[asyncio.Task[None]] = set()
        self._is_closed = False

    @property
    def has_channels(self) -> bool:
        return bool(self._channels)

    def carry(self, approval: Approval) -> None:
        """Ask each channel in a task of its own; the first answer decides."""
        for channel in (*self._channels, *self._driver.realm(approval.project).channels):
            # A copy: a channel that changes what it was shown changes nothing anybody else sees.
            shown = evolve(approval, **{name: copy.deepcopy(getattr(approval, name)) for name in SHOWN_JSON})
            task = asyncio.get_running_loop().create_task(self._ask(channel, shown), name="toolgate-ask")
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)

    async def _ask(self, channel: Channel, approval: Approval) -> None:
        try:
            answer = await channel.ask(approval)
            if answer is None:
                return
            said = Said(
                approval_id=approval.id,
                by=answer.by,
                reason=answer.reason,
                digest=approval.digest,
                project=approval.project,
            )
            await self._deciding.decide(said, approve_it=answer.decision is Decision.APPROVE)
        except asyncio.CancelledError:
            # The loop the question was asked on ends; the question does not.
            if not self._is_closed:
                self._spawn(self._ask_again(asyncio.get_running_loop(), channel, approval))
            raise
        except DeliveryError as error:
            await self._record(channel, approval, error)
        except DecisionConflictError as error:
            log.debug("the answer to approval %s came second: %s", approval.id, error.code)
        except Exception as error:  # noqa: BLE001  # a broken channel must not lose the question: it stays open
            log.error(
                "channel %s failed on approval %s with %s; the call stays parked",
                type(channel).__name__,
                approval.id,
                type(error).__name__,
            )

    async def _record(self, channel: Channel, approval: Approval, error: DeliveryError) -> None:
        """Put into the audit that a channel gave up, so that somebody sees it; the question stays open."""
        log.error("channel %s gave up on approval %s; the call stays parked", type(channel).__name__, approval.id)
        told = {
            "channel": type(channel).__name__,
            "attempts": error.attempts,
        }
        said = {"error": self._driver.masker.text(str(error))}
        event = tell_approval(approval, "approval.undelivered", told, said)
        change = Change(project=approval.project, at=self._driver.now(), events=(event,))
        await self._driver.commit(change)

    async def _ask_again(self, ending: asyncio.AbstractEventLoop, channel: Channel, approval: Approval) -> None:
        """Ask once the loop that ends is gone: an answer before would send the call back to it."""
        with contextlib.suppress(TimeoutError):  # somebody cancelled the question on a loop that lives on
            async with asyncio.timeout(ENDING_S):
                while not ending.is_closed():  # noqa: ASYNC110  # a loop tells nobody that it is closed
                    await asyncio.sleep(0.01)
        await self._ask(channel, approval)

    def close(self) -> None:
        """Stop asking; the questions stay open."""
        self._is_closed = True
        for task in tuple(self._asking):
            if not task.get_loop().is_closed():
                task.get_loop().call_soon_threadsafe(task.cancel)
