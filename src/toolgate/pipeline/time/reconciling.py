"""Asking tools what their interrupted runs did, again and again with growing pauses, while nobody knows.

One call is asked about by one at a time in a process. Several processes may ask at once: `reconcile` only looks, and
the first commit wins, whoever it is from. A person's word that came first stands.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import Future
from datetime import datetime, timedelta

from toolgate.errors import ConflictError, ToolUnknownOutcomeError, text_of
from toolgate.kernel.call import Call, Status
from toolgate.kernel.output import ToolOutput
from toolgate.kernel.payload import encode
from toolgate.kernel.record import evolve
from toolgate.kernel.tool import ToolDefinition, is_async
from toolgate.pipeline import steps
from toolgate.pipeline.binding import input_of
from toolgate.pipeline.driver import Driver
from toolgate.pipeline.outcome import decode
from toolgate.pipeline.people.answers import settled_undo
from toolgate.ports.store import CallQuery

BATCH = 100
RECONCILER = "reconcile"
SAID = "tool.still_unknown"
FIRST_PAUSE_S = 2.0
LONGEST_PAUSE_S = 3600.0
_DOUBLINGS = 12
_MOST_ORPHANS = 10_000
log = logging.getLogger("toolgate.recovery")
Key = tuple[str, str]


class _Try:
    """One time a tool was asked about one call, and when it may be asked again; `answer` is done when it has ended."""

    __slots__ = ("answer", "next_at", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.next_at: datetime | None = None
        self.answer: Future[None] = Future()
        self.answer.set_running_or_notify_cancel()  # from here on, nobody who stops waiting for it can cancel it

    def is_waiting(self, now: datetime) -> bool:
        return not self.answer.done() or (self.next_at is not None and now < self.next_at)


class Reconciling:
    """Asks about every UNKNOWN call whose tool is held here and has a `reconcile` handler. Safe from any thread."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._lock = threading.Lock()
        self._tries: dict[Key, _Try] = {}
        self._is_passing = False

    def look(self) -> None:
        """Ask whatever may be asked now, in the background: a handler that hangs holds up no deadline."""
        if not self._has_work():
            return
        with self._lock:
            is_needed, self._is_passing = not self._is_passing, True
        if is_needed:
            self._driver.spawn(self._pass())

    def _has_work(self) -> bool:
        realms = (self._driver.home, *self._driver.realms.values())
        return any(tool.reconcile is not None for realm in realms for tool in realm.registry)

    async def _pass(self) -> None:
        try:
            await self.ask_all()
        finally:
            with self._lock:
                self._is_passing = False

    async def ask_all(self) -> None:
        """Ask about every call that may be asked about now; who comes while one is asked waits for its answer."""
        if not self._has_work():
            return
        seen: set[Key] = set()
        last: Call | None = None
        while True:
            query = CallQuery(statuses=frozenset({Status.UNKNOWN}), after=last, limit=BATCH)
            unknown = await self._driver.store.calls(query)
            for call in unknown:
                seen.add((call.project, call.id))
                await self._ask(call)
            if len(unknown) < BATCH:
                break
            last = unknown[-1]
        self._forget_all_but(seen)

    def _forget_all_but(self, seen: set[Key]) -> None:
        """Forget the calls that are unknown no more, and have the others asked about when their pause is over."""
        with self._lock:
            for key in [key for key, one in self._tries.items() if one.answer.done() and key not in seen]:
                del self._tries[key]
            due = [one.next_at for one in self._tries.values() if one.next_at is not None]
        if due and self._driver.on_due is not None:
            self._driver.on_due(min(due))

    async def _ask(self, call: Call) -> None:
        tool = self._driver.realm(call.project).registry.find(call.tool_name)
        if tool is None or tool.reconcile is None or call.undo_of is not None:
            return
        key, now = (call.project, call.id), self._driver.now()
        with self._lock:
            before = self._tries.get(key)
            is_ours = before is None or not before.is_waiting(now)
            mine = _Try(1 if before is None else before.number + 1)
            if is_ours:
                self._tries[key] = mine
        if not is_ours:
            assert before is not None
            await asyncio.wrap_future(before.answer)
            return
        try:
            await self._settle(call, tool)
        except ConflictError:
            log.debug("call %s was settled by somebody else", call.id)
        except BaseException:
            with self._lock:
                del self._tries[key]  # nothing was found out: it is asked again next time
            raise
        finally:
            mine.next_at = self._driver.now() + timedelta(seconds=pause_s(mine.number))
            mine.answer.set_result(None)

    async def _settle(self, call: Call, tool: ToolDefinition) -> None:
        """Ask the tool what its interrupted run did; None or an error leaves it unknown for now."""
        driver = self._driver
        assert tool.reconcile is not None
        try:
            async with asyncio.timeout(tool.timeout_seconds):
                given = input_of(call)
                found = tool.reconcile(given) if is_async(tool.reconcile) else asyncio.to_thread(tool.reconcile, given)
                output = await found
            if output is not None and not isinstance(output, ToolOutput):
                raise TypeError("reconcile returns a ToolOutput or None")
            result = None if output is None else encode(output.data)
        except ToolUnknownOutcomeError as error:
            await self._note(call, driver.masker.text(text_of(error)))
            return
        except Exception as error:  # noqa: BLE001  # whatever it raises, the outcome stays unknown
            log.warning("reconciling call %s failed with %s; it is tried again later", call.id, type(error).__name__)
            return
        if output is None or (not output.success and await self._may_still_run(call)):
            return  # nobody knows yet, or its handler may still be at work: what did not happen may happen yet
        change = steps.settle(
            call,
            now=driver.now(),
            happened=output.success,
            by=RECONCILER,
            reason=driver.masker.text(output.error or "the tool's reconcile handler found out"),
            result=result,
            shown=driver.masker(decode(result)),
        )
        await driver.commit(evolve(change, undo=await settled_undo(driver, call, output.success)))

    async def _note(self, call: Call, found: str) -> None:
        """Write down what a tool found out of a call that stays unknown, unless that was said before."""
        driver = self._driver
        told = await driver.store.events(call.project, call_id=call.id)
        if not any(event.type == SAID and event.data.get("reason") == found for event in told):
            await driver.commit(steps.still_unknown(call, now=driver.now(), by=RECONCILER, reason=found))

    async def _may_still_run(self, call: Call) -> bool:
        """Whether the handler of an unknown call is still at work here, or may be where its process lives on."""
        driver = self._driver
        if call.owner == driver.owner or not driver.store.is_shared:
            return (call.project, call.id) in driver.lingering
        orphans = await driver.store.orphans(status=Status.UNKNOWN, limit=_MOST_ORPHANS)
        return all((one.project, one.id) != (call.project, call.id) for one in orphans)


def pause_s(number: int) -> float:
    """How long to wait after the try of this number: twice as long each time, an hour at most."""
    return min(FIRST_PAUSE_S * 2.0 ** min(number - 1, _DOUBLINGS), LONGEST_PAUSE_S)
