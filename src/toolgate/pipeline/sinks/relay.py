"""Tells a project's sink of its events, out of the record: by position, in order, at least once, off the calls' way.

Nothing is kept for a sink here but how far it was told. What it did not take, or was not there to take, is read again
from the store; what the store has not kept any more is told as a gap.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from time import monotonic
from typing import Any

import orjson

from toolgate.errors import StoreError, UsageError
from toolgate.kernel.context import PRIVATE
from toolgate.kernel.event import Event
from toolgate.pipeline import eager
from toolgate.pipeline.sinks.hearing import Allowance, Hearing, Pauses
from toolgate.pipeline.sinks.teller import Teller, Telling
from toolgate.ports.sink import Cursor, Sink
from toolgate.ports.store import Store

NAME_CHARS = 128
GAP = "sink.gap"
"""What a sink is told instead of events that were removed before it heard of them."""
BATCH = 200
QUICK_S = 0.01
"""How long every call may wait for a sink that keeps up."""
MOMENT_S, SHARE = 0.25, 0.01
"""How much longer calls wait for one that does not, all together: so long at once, and then this share of the time."""
REQUIRED_S = 5.0
"""How long a call waits for a sink without which nothing may run."""
OPENING_S = 30.0
POLL_S = 0.05
"""How often a call looks whether another process has told a sink without which nothing may run."""

Told = tuple[str, dict[str, Any]]
Rendering = Callable[[str, dict[str, Any]], Told | None]
Tally = Callable[[str, str, int], None]
"""Counts what went wrong with a sink: its name, `missed` or `failed`, and how often."""
log = logging.getLogger("toolgate.events")


def as_it_is(name: str, data: dict[str, Any]) -> Told:
    return name, data


def check_name(name: str | None, project: str) -> str | None:
    """Return the name of a sink; refuse one that the store could not remember, or would never find again."""
    if name is None:
        return None
    if not (isinstance(name, str) and 0 < len(name) <= NAME_CHARS and name.isprintable()):
        raise UsageError(f"A sink's name is text of 1 to {NAME_CHARS} printable characters.")
    if project.startswith(PRIVATE):
        raise UsageError("A sink with a name needs a project with a name: in a private one nobody finds it again.")
    return name


class Relay:
    """One sink of one project. `required`: no handler starts before the sink has taken the event that says so.

    `mind` is called when somebody has to look after it in the background: see `Minder`.
    """

    def __init__(
        self,
        sink: Sink,
        store: Store,
        project: str,
        *,
        name: str | None = None,
        required: bool = False,
        render: Rendering = as_it_is,
        tally: Tally | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.required = required
        self.required_s = REQUIRED_S
        self.name = name
        self.project = project
        self.is_shared = store.is_shared and not project.startswith(PRIVATE)
        self.is_ours = True
        self.trouble = ""
        self.mind: Callable[[], None] = lambda: None
        self.task: asyncio.Task[None] | None = None
        self.position: int | None = None
        self.is_closed = False
        self.moved_at = 0.0
        """When somebody began to tell the sink, or it was last given something or took it."""
        self.pauses = Pauses(clock)
        self.hearing = Hearing()
        self._teller = Teller(sink)
        self._store = store
        self._render = render
        self._tally = tally
        self._clock = clock
        self._allowance = Allowance(clock, most=MOMENT_S, share=SHARE, free=QUICK_S)
        self._lock = threading.Lock()
        self._home: asyncio.AbstractEventLoop | None = None
        self._is_behind = False
        self._is_overdue = False
        self._saved = 0
        self._turn: Future[None] | None = None

    @property
    def is_open(self) -> bool:
        """Whether it is known where to begin."""
        return self.position is not None

    @property
    def is_settled(self) -> bool:
        """Whether the sink has heard everything that is known to have happened."""
        return self.hearing.is_complete

    @property
    def is_told_now(self) -> bool:
        """Whether somebody is telling the sink."""
        return self._turn is not None

    async def open(self) -> None:
        """Find out where to begin. Awaited ahead of the first commit after attaching, so that none is missed."""
        while not self.is_open:
            turn = self._take_turn()
            if turn is None:
                try:
                    self.go_on(await self._store.open_cursor(self.project, self.name))
                finally:
                    self._end_turn()
            elif not (await asyncio.wait({asyncio.wrap_future(turn)}, timeout=OPENING_S))[0]:
                raise StoreError(
                    "How far the event sink was told could not be read in time; nothing runs until it is known."
                )
        if self.is_shared:
            self.mind()

    def go_on(self, cursor: Cursor) -> None:
        """Go on where a cursor says, if it is ours."""
        self.position, self.is_ours = cursor.seq, cursor.is_ours
        self._saved = cursor.seq
        if cursor.is_ours and cursor.seq < cursor.head:
            self.hearing.note()
            self.mind()

    def stir(self) -> None:
        """Note that something happened, and see that the sink hears of it soon. Called on a loop, after a commit."""
        self.hearing.note()
        if not self._may_be_waited_for or self._turn is not None:
            return  # whoever tells it now, or looks after it, comes to this too
        here = asyncio.get_running_loop()
        home = self._home
        if home is None or not home.is_running():
            home = self._home = here
        if home is here:
            home.call_soon(self._start_if_due)  # usually whoever made the change has had it told by then
        else:
            self.start_at(home)

    @property
    def _may_be_waited_for(self) -> bool:
        """Whether the sink keeps up, as far as is known."""
        return self.is_ours and not self._is_behind and self.pauses.is_over_for_calls

    def _start_if_due(self) -> None:
        if self._may_be_waited_for:
            self.start()

    def start_at_home(self) -> None:
        """Have what waits told on the loop that uses the sink while it runs, else on this one."""
        home = self._home
        if home is None or not home.is_running() or home is asyncio.get_running_loop():
            self.start()
        else:
            self.start_at(home)

    def start_at(self, home: asyncio.AbstractEventLoop) -> None:
        """Have what waits told on a loop of another thread."""
        try:
            home.call_soon_threadsafe(self.start)
        except RuntimeError:  # closed just now
            self.mind()

    def start(self) -> None:
        """Tell what waits, on this loop; in a task of its own from where the sink takes time."""
        if self.is_settled or self.is_closed or not self.is_ours or not self.is_open or self._take_turn() is not None:
            return
        started: object = eager.start(self._serve())
        if isinstance(started, asyncio.Task):
            self.task = started
            self.mind()

    async def _serve(self) -> None:
        turn = self._turn
        self.moved_at = self._clock()  # however long ago it was last told: reading what comes next takes time too
        try:
            while not self.is_settled and self.is_ours and await self._feed():
                pass
        finally:
            self.task = None
            self._end_turn(turn)
            if not self.is_settled:
                self.mind()

    async def _feed(self) -> bool:
        """Tell the next events; False where the sink would not take them or they cannot be read."""
        so_far, self._is_overdue = self.hearing.happened, False
        assert self.position is not None
        try:
            events = await self._store.events(self.project, after=self.position, limit=BATCH)
            self.moved_at = self._clock()
            if events:
                await self._teller.tell(self._tellings(events), self._taken)
                self.position = max(self.position, events[-1].seq)
            if self.name is not None and (self.required or not self.is_shared):
                await self.save()  # others wait for it, or it costs nothing
        except (Exception, asyncio.CancelledError, SystemExit) as error:  # noqa: BLE001  # it is told again
            self.fail(self._trouble_of(error))
            return False
        self.trouble = ""
        self.pauses.end()
        if len(events) < BATCH:
            self.hearing.hear(so_far)
            self._is_behind = self._is_behind and not self.is_settled
        return True

    def _trouble_of(self, error: BaseException) -> str:
        """Say what went wrong; raise a cancellation that is meant for the task rather than raised by the sink."""
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            if not self._is_overdue:
                raise error
            self._is_overdue = False
            task.uncancel()
            return "did not answer in time"
        return str(error) if isinstance(error, StoreError) else f"failed with {type(error).__name__}"

    def give_up(self, task: asyncio.Task[None]) -> None:
        """Count what the sink is busy with as a failure: it takes too long."""
        self._is_overdue, self.moved_at = True, self._clock()
        task.get_loop().call_soon_threadsafe(task.cancel)

    def bury(self, task: asyncio.Task[None]) -> None:
        """End what was being told on a loop that was closed under it: nobody will ever go on with it."""
        turn, coroutine = self._turn, task.get_coro()
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # said here by doing its work
        assert coroutine is not None
        with contextlib.suppress(RuntimeError):  # what a sink does at its end may need the loop
            coroutine.close()
        self.task = None
        self._end_turn(turn)

    def _tellings(self, events: list[Event]) -> Iterator[Telling]:
        """What the events are told as. What a thread that was given up on told meanwhile is left out."""
        assert self.position is not None
        if events[0].seq > self.position + 1:
            yield self._gap(self.position + 1, events[0])
        for event in events:
            if event.seq <= self.position:
                continue
            if self.is_closed:
                return
            body = orjson.loads(event.body)
            data = body["data"]
            data["timestamp"], data["seq"] = body["at"], event.seq
            told = self._render(event.type, data)
            if told is not None:
                yield Telling(event.seq, *told)

    def _gap(self, first: int, event: Event) -> Telling:
        last = event.seq - 1
        missed, at = last - first + 1, orjson.loads(event.body)["at"]
        where = {"project": self.project, "sink": self.name, "from": first, "to": last, "count": missed}
        return Telling(last, GAP, {**where, "timestamp": at, "seq": last}, missed)

    def _taken(self, telling: Telling) -> None:
        self.moved_at = self._clock()
        if telling.missed:
            log.error("the event sink missed %d events of project %s", telling.missed, self.project)
            self._count("missed", telling.missed)
        self.position = max(self.position or 0, telling.seq)

    def _count(self, what: str, times: int = 1) -> None:
        if self._tally is not None:
            self._tally(self.name or "", what, times)

    def fail(self, trouble: str) -> None:
        """Note that the sink did not take an event, or that it could not be read; pause where that goes on."""
        self.trouble = trouble
        level = logging.ERROR if self.pauses.fail() else logging.DEBUG
        log.log(level, "the event sink %s on event %d or after; it is told again", trouble, (self.position or 0) + 1)
        self._count("failed")
        self.hearing.fail()
        self.mind()

    async def moment(self) -> bool:
        """Give the sink a moment to hear what happened so far, if it keeps up; whether it has heard it.

        A call never waits longer than this for a sink that is not required.
        """
        goal = self.hearing.happened
        if self.hearing.heard >= goal or not self._may_be_waited_for:
            return self.hearing.heard >= goal
        failures = self.hearing.failures
        self.start()
        if self.hearing.heard >= goal:
            return True  # as a quick one does, at no cost
        asked = self._clock()
        is_heard = await self._wait(goal, self._allowance.left, failures)
        self._allowance.spend(self._clock() - asked)
        return is_heard

    async def insist(self, timeout_s: float | None = None) -> bool:
        """Wait until the sink has heard what happened so far, trying at once; False with `trouble` where it has not."""
        timeout_s = self.required_s if timeout_s is None else timeout_s
        if not self.is_open and self.name is not None:
            await self.open()
        if self.is_settled:
            return True
        if not self.is_ours:
            return await self._wait_for_others(timeout_s)
        return await self._try(timeout_s)

    async def _try(self, timeout_s: float) -> bool:
        goal, failures = self.hearing.happened, self.hearing.failures
        self.start()
        return await self._wait(goal, timeout_s, failures)

    async def _wait(self, goal: int, timeout_s: float, failures: int) -> bool:
        is_heard = await self.hearing.wait(goal, timeout_s, failures=failures)
        if is_heard is None:
            self._is_behind = True
            self.trouble = f"did not answer within {timeout_s:g} s"
            self.mind()
        return bool(is_heard)

    async def _wait_for_others(self, timeout_s: float) -> bool:
        """Wait until the process that tells the sink has told it what happened so far; take its place if it died."""
        until = self._clock() + timeout_s
        cursor = await self._store.open_cursor(self.project, self.name)
        goal = cursor.head
        while not cursor.is_ours and cursor.seq < goal:
            if self._clock() >= until:
                self.trouble = f"was not told by the process that tells it within {timeout_s:g} s"
                return False
            await asyncio.sleep(POLL_S)
            cursor = await self._store.open_cursor(self.project, self.name)
        if cursor.is_ours:
            self.go_on(cursor)
            return await self._try(max(0.0, until - self._clock()))
        return True

    async def save(self) -> None:
        """Note how far the sink was told, if it has a name: from there it goes on after a restart."""
        position = self.position
        if self.name is None or not self.is_ours or position is None or position == self._saved:
            return
        if await self._store.move_cursor(self.project, self.name, position):
            self._saved = position
        else:
            self.is_ours = False

    async def ask_for_it(self) -> None:
        """Take the sink over where the process that told it is gone."""
        cursor = await self._store.open_cursor(self.project, self.name)
        if cursor.is_ours:
            self.go_on(cursor)

    async def close(self) -> None:
        """Tell the sink no more, and let another process do so."""
        if self.is_closed:
            return
        self.is_closed = True
        task = self.task
        if task is not None and not task.get_loop().is_closed():
            task.get_loop().call_soon_threadsafe(task.cancel)
        self.hearing.fail()
        self._teller.close()
        if self.is_open:
            await self.save()
            await self._store.close_cursor(self.project, self.name)

    def _take_turn(self) -> Future[None] | None:
        """None where it is our turn now; otherwise the future of the one whose turn it is."""
        with self._lock:
            if self._turn is None:
                self._turn = Future()
                return None
            return self._turn

    def _end_turn(self, turn: Future[None] | None = None) -> None:
        """End this turn, or whichever it is; one that was ended already stays so."""
        with self._lock:
            if turn is not None and self._turn is not turn:
                return
            ended, self._turn = self._turn, None
        if ended is not None:
            ended.set_result(None)
