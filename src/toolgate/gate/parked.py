"""Those who go along with a call: who waits for it, and who runs it once it is approved.

A waiter runs its own call. A call nobody waits for runs on the loop that made it while that loop
lives, else on the gate's own. However many try, the claim lets one through.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from toolgate.errors import GateClosedError, NotFoundError, StoreError, UsageError
from toolgate.kernel.approval import Approval
from toolgate.kernel.call import Call, Status
from toolgate.kernel.context import Context
from toolgate.kernel.output import Result, result_of
from toolgate.pipeline import Pipeline
from toolgate.pipeline.background import Background
from toolgate.pipeline.driver import MODE_CHANGED, Driver
from toolgate.pipeline.flight import Flights, Taker
from toolgate.pipeline.outcome import decode
from toolgate.pipeline.waiting import Key, Waiters
from toolgate.ports.bus import LOOK_AGAIN, Hint
from toolgate.ports.store import ApprovalQuery

T = TypeVar("T")
_APPROVED = Status.APPROVED
_UNKNOWN = Status.UNKNOWN
_UNANSWERED = (Status.PENDING, Status.AWAITING_APPROVAL)
LOOK_AFTER_S = 0.25
"""How often the gate looks whether the loop of a call nobody waits for is still there."""
IDLE_LOOKS = 8
"""How often it looks in vain before it stops, until there is another: starting it wakes a thread."""


class Parked:
    """Waits for calls and runs approved ones."""

    def __init__(self, driver: Driver, pipeline: Pipeline, flights: Flights, background: Background) -> None:
        self._driver = driver
        self._pipeline = pipeline
        self._flights = flights
        self._background = background
        self._waiters = Waiters()
        self._onlookers = Waiters()
        self._homes: dict[Key, asyncio.AbstractEventLoop] = {}
        self._minded: dict[Key, asyncio.AbstractEventLoop] = {}
        """The loops on which calls nobody waits for run; looked at in the background."""
        self._is_minding = False
        self._resuming: dict[Key, bool] = {}
        """The calls this process is about to run, and whether their end was heard of meanwhile.

        One attempt is enough: the claim would let only one through."""
        self._strays: set[asyncio.Task[None]] = set()
        self.is_closed = False
        self._unsubscribe = driver.bus.subscribe(self._on_hint)  # last: others may be told of something at once

    async def settle_in(self, key: Key) -> None:
        """Remember the running loop as the one a parked call came from, unless the call ended meanwhile."""
        self._homes[key] = asyncio.get_running_loop()
        if self._driver.store.known(*key) is None and (await self._driver.read(*key)).is_final:
            self._homes.pop(key, None)

    async def wait_for(self, key: Key, wait: bool | float) -> Result:
        """Wait for a call's end, or for so many seconds; then return where it stands."""
        if wait is not True:
            with contextlib.suppress(TimeoutError):
                return await self.wait_within(key, wait)
            return result_of(await self._driver.read(*key))
        return await self.wait(key)

    async def wait_within(self, key: Key, timeout: float | None) -> Result:
        """Wait for a call's end; TimeoutError after so many seconds."""
        if timeout is None:
            return await self.wait(key)
        async with asyncio.timeout(timeout):
            return await self.wait(key)

    async def wait(self, key: Key) -> Result:
        """Wait for a call's end, running it here once it is approved; to its caller, where they run it."""
        driver = self._driver
        while True:
            future = self._waiters.add(key)
            try:
                call = driver.store.known(*key) or await driver.read(*key)
                if call.is_final:
                    self._homes.pop(key, None)
                    return result_of(call, data=decode(call.result))
                if call.waits_for_caller:
                    return result_of(call)
                is_here = call.tool_name in driver.realm(call.project).registry
                if call.status is _APPROVED and is_here and driver.is_free(call) and not self._is_taken_up(key):
                    result = await self._resume(key, call)
                    if result.is_final:
                        self._homes.pop(key, None)
                        return result
                if self.is_closed:
                    raise GateClosedError(f"The gate was closed; call {key[1]} stays {call.status}.")
                del call  # thousands may wait here for hours
                given = await future
                if given is not None:
                    return given
            except asyncio.CancelledError:
                if not self._waiters.discard(key, future):
                    self._dispatch(key)  # a wake-up may have reached only the one who leaves: pass it on
                raise
            finally:
                self._waiters.discard(key, future)

    def _is_taken_up(self, key: Key) -> bool:
        """Whether this process is about to run a call, on a loop that goes on."""
        home = self._minded.get(key)
        return key in self._resuming and (home is None or home.is_running())

    async def _resume(self, key: Key, call: Call) -> Result:
        self._resuming[key] = False
        try:
            return await self._pipeline.resume(call)
        finally:
            self._resuming.pop(key, None)
            self._waiters.wake_one(key, None)  # somebody who left it to this attempt may have to go on themselves

    async def carry(
        self,
        name: str,
        arguments: Mapping[str, object] | bytes,
        context: Context,
        function: Callable[[dict[str, Any]], Any],
        *,
        call_id: str | None,
    ) -> Result:
        """Make a call and run it with the caller's function, if nobody has to be asked; else say where it stands."""
        return await self._pipeline.run(name, arguments, context, call_id=call_id, taker=Taker(function))

    async def run_here(self, key: Key, function: Callable[[dict[str, Any]], Any], *, wait: bool) -> Result:
        """Run a call of a tool placed at its caller once it is approved; without `wait` only if it is by now."""
        call = await self._driver.read(*key)
        if call.approved_for_s is None:
            raise UsageError(f"Call {key[1][:64]} runs in placement '{call.placement}', not at its caller.")
        taker = Taker(function)
        while True:
            if call.waits_for_caller:
                result = await self._pipeline.take(*key, taker)
            elif not wait and call.status in _UNANSWERED:
                return result_of(call)
            else:
                result = await self.wait(key)
            if result.is_final:
                return result
            call = await self._driver.read(*key)

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine on the gate's own loop for a thread that waits for it."""
        if self._background.is_current:
            coroutine.close()
            raise UsageError("This would wait for itself: a plain function was called on the gate's own thread.")
        return self._background.submit(coroutine)

    async def answer(self, approval_id: str, project: str | None) -> Approval:
        """Return an approval once it is decided or closed. Looking on runs nothing."""
        query = ApprovalQuery(id=approval_id, project=project)
        while True:
            approval = await self._asked(query)
            key = (approval.project, approval.call_id)
            future = self._onlookers.add(key)
            try:
                approval = await self._asked(query)
                if not approval.is_pending:
                    return approval
                if self.is_closed:
                    raise GateClosedError(f"The gate was closed; approval {approval_id} stays undecided.")
                await future
            finally:
                self._onlookers.discard(key, future)

    async def _asked(self, query: ApprovalQuery) -> Approval:
        found = await self._driver.store.approvals(query)
        if not found:
            raise NotFoundError(f"There is no approval {str(query.id)[:64]}.")
        return found[0]

    def _on_hint(self, hint: Hint) -> None:
        if hint is LOOK_AGAIN:
            self._driver.store.forget()
            self._waiters.wake_all()
            self._onlookers.wake_all()
            return
        if hint == MODE_CHANGED and self._driver.on_due is not None:
            self._driver.on_due(self._driver.now())  # a sweep reads the mode, and enforces it
            return
        self._driver.store.forget(hint.project, hint.call_id, hint.version)
        self._onlookers.wake(hint)
        if hint.status is Status.EXECUTING:
            return  # whoever waits for its end waits on
        if hint.status is _UNKNOWN and self._driver.on_due is not None:
            self._driver.on_due(self._driver.now())  # a sweep asks its tool what happened
        if hint.status.is_final:
            key = (hint.project, hint.call_id)
            self._homes.pop(key, None)
            self._minded.pop(key, None)
            if key in self._resuming:
                self._resuming[key] = True
                return  # whoever runs it gives its result to who waits for it
        if not self._waiters.wake(hint) and hint.status is _APPROVED and self._holds(hint):
            self._dispatch((hint.project, hint.call_id))

    def _holds(self, hint: Hint) -> bool:
        """Whether the call may be run here; where tool and owner are not told, whoever reads the call finds out."""
        if hint.owner not in (None, self._driver.owner):
            return False  # it is another process's to run; where that is dead, recovery takes it over
        return hint.tool_name is None or hint.tool_name in self._driver.realm(hint.project).registry

    def offer(self, call: Call) -> None:
        """Take up a call here, unless somebody waits for it and will: an approved one wakes them."""
        key = (call.project, call.id)
        is_waited_for = call.status is Status.APPROVED and key in self._waiters
        if not is_waited_for and self._driver.can_run(call):
            self._dispatch(key)

    def _dispatch(self, key: Key) -> None:
        """Run an approved call nobody waits for: on the loop that made it, or on the gate's own."""
        if self.is_closed or key in self._resuming:
            return
        self._resuming[key] = False
        home = self._homes.pop(key, None)
        if home is None or not home.is_running():
            self._background.spawn(self._take_up(key))
            return
        with contextlib.suppress(RuntimeError):  # it was closed just now
            is_here = asyncio._get_running_loop() is home
            (home.call_soon if is_here else home.call_soon_threadsafe)(self._start_at_home, home, key)
        self._minded[key] = home
        if not self._is_minding:
            self._is_minding = True
            self._background.spawn(self._look_after())

    def _start_at_home(self, home: asyncio.AbstractEventLoop, key: Key) -> None:
        task = home.create_task(self._take_up(key), name=f"toolgate-call-{key[1]}")
        self._strays.add(task)
        task.add_done_callback(self._strays.discard)

    async def _look_after(self) -> None:
        """Take over from loops that are closed before their calls are through: one that is ending still looks alive."""
        idle = 0
        while idle < IDLE_LOOKS and not self.is_closed:
            await asyncio.sleep(LOOK_AFTER_S)
            for key, home in tuple(self._minded.items()):
                if home.is_closed():
                    self._minded.pop(key, None)
                    if not await self._flights.bury(*key):
                        await self._take_up(key)
            idle = 0 if self._minded else idle + 1
            if idle == IDLE_LOOKS:
                self._is_minding = False  # whoever comes from here on starts it again
                if self._minded:
                    self._is_minding, idle = True, 0

    async def _take_up(self, key: Key) -> None:
        result = None
        try:
            result = await self._go_on(self._driver.store.known(*key) or await self._driver.read(*key))
        except StoreError:
            if not self.is_closed:  # then it stays approved, for whoever opens the store next
                raise
        finally:
            is_under_way = result is not None and not result.is_final
            has_ended = self._resuming.pop(key, False)
            if has_ended or not is_under_way:
                self._waiters.wake_one(key, None if is_under_way else result)

    async def _go_on(self, call: Call) -> Result | None:
        """Take a parked call further, if it is to go on here; again, where its row changed under that.

        Returns its result where it was claimed here.
        """
        driver, tried = self._driver, 0
        while call.status is Status.APPROVED and driver.is_free(call) and call.version != tried:
            tried = call.version
            result = await self._pipeline.resume(call)
            if result.is_final or result.status is Status.EXECUTING:
                return result
            call = await driver.read(call.project, call.id)
        if call.status is Status.PENDING and call.owner == driver.owner:
            await self._pipeline.restart(call)
        return None

    def close(self) -> None:
        """Wake everybody who waits, so that they notice."""
        self.is_closed = True
        self._unsubscribe()
        self._waiters.wake_all()
        self._onlookers.wake_all()
