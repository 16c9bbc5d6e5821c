"""Passes one project's events on to a sink, in order, and keeps what the sink would not take until it does.

The store has every event whatever happens here: a sink that fails delays nothing but its own copy, unless the
host said that nothing may run unheard.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any

import orjson

from toolgate.kernel.change import Change
from toolgate.ports.sink import Sink

SPOOL = 10_000
"""How many events wait for a sink that is down; beyond, the oldest are left to the store alone."""

PATIENCE_S = 5.0
"""How long a sink may take over one event before that counts as a failure."""

LOOK_S = 0.05
"""How often the gate looks whether the loop of a helper still lives, while there is one."""

Told = tuple[str, dict[str, Any]]
Rendering = Callable[[str, dict[str, Any]], Told | None]
log = logging.getLogger("toolgate.events")


def as_it_is(name: str, data: dict[str, Any]) -> Told:
    return name, data


class Relay:
    """One sink's queue. `required`: no handler starts before the sink has taken the event that says so."""

    def __init__(
        self,
        sink: Sink,
        spawn: Callable[[Coroutine[Any, Any, Any]], None],
        *,
        required: bool = False,
        render: Rendering = as_it_is,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.required = required
        self._emit = _way_in(sink)
        self._spawn = spawn
        self._render = render
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._spool: deque[Told] = deque()
        self._taken = self._passed = 0
        self._turn: Future[None] | None = None
        self._home: asyncio.AbstractEventLoop | None = None
        self._helpers: set[asyncio.Task[bool]] = set()

    def take(self, change: Change) -> None:
        """Queue the events of a commit, as copies nobody else holds; see that somebody passes them on."""
        told = [self._told(change, name, data) for name, _, data in change.events]
        with self._lock:
            for item in told:
                if item is not None:
                    self._spool.append(item)
                    self._taken += 1
            while len(self._spool) > SPOOL:
                self._spool.popleft()
                self._passed += 1
                log.error("the event sink has been away too long: one event is in the store only")
        self._see_to_it()

    def _told(self, change: Change, name: str, data: dict[str, Any]) -> Told | None:
        copy: dict[str, Any] = orjson.loads(orjson.dumps({**data, "timestamp": change.at}, None, orjson.OPT_UTC_Z))
        return self._render(name, copy)

    def _see_to_it(self) -> None:
        """Pass on what waits soon: on the loop that uses this sink while it lives, else on the gate's own."""
        here = asyncio.get_running_loop()  # whoever commits does so from a loop
        home = self._home
        if home is None or not home.is_running():
            home = self._home = here
        if home is here:
            home.call_soon(self._help, home)
            return
        try:
            home.call_soon_threadsafe(self._help, home)
        except RuntimeError:  # closed just now
            self._spawn(self.flush())

    def _help(self, home: asyncio.AbstractEventLoop) -> None:
        # Usually whoever made the change has passed it on by now.
        if self._spool and self._turn is None:
            task = home.create_task(self.flush(), name="toolgate-sink")
            self._helpers.add(task)
            task.add_done_callback(self._helpers.discard)
            self._spawn(self._inherit(task, home))

    async def _inherit(self, task: asyncio.Task[bool], home: asyncio.AbstractEventLoop) -> None:
        """On the gate's own loop: pass on what a helper leaves behind whose loop ends before it is done."""
        while not task.done() and not home.is_closed():  # noqa: ASYNC110  # a loop tells nobody that it closes
            await asyncio.sleep(LOOK_S)
        if task.done() and not task.cancelled():
            return
        if not task.done():  # nobody will ever go on with it
            self._helpers.discard(task)
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # said here by doing its work
            coroutine = task.get_coro()
            assert coroutine is not None
            with contextlib.suppress(RuntimeError):  # what a sink does at its end may need the loop
                coroutine.close()
        await self.flush()

    async def flush(self) -> bool:
        """Return once the sink has everything that was queued before; False where it would not take it."""
        goal = self._taken
        while self._passed < goal:
            turn = self._take_turn()
            if turn is not None:
                waiting = {asyncio.wrap_future(turn)}  # waited for this way, cancelling leaves the turn alone
                if not (await asyncio.wait(waiting, timeout=2 * self._patience_s))[0]:
                    return False  # whose turn it is hangs, or its loop was left standing
                continue
            try:
                if not await self._pass_on():
                    return False
            finally:
                self._end_turn()
        return True

    def _take_turn(self) -> Future[None] | None:
        """None where it is our turn to pass events on; otherwise the future of the one whose turn it is."""
        with self._lock:
            if self._turn is not None:
                return self._turn
            self._turn = Future()
            return None

    def _end_turn(self) -> None:
        with self._lock:
            turn, self._turn = self._turn, None
        assert turn is not None  # it is ours
        turn.set_result(None)

    async def _pass_on(self) -> bool:
        while self._spool:
            name, data = self._spool[0]
            try:
                async with asyncio.timeout(self._patience_s):
                    said = self._emit(type=name, data=data)
                    if inspect.isawaitable(said):
                        await said
            except (Exception, asyncio.CancelledError) as error:  # whatever it raises, the event is kept
                if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                    raise
                log.error("the event sink failed with %s on %s; it is kept and told again", type(error).__name__, name)
                return False
            with self._lock:
                self._spool.popleft()
                self._passed += 1
        return True


def _way_in(sink: Sink) -> Callable[..., Any]:
    """Return a sink's own `try_emit`, else its `emit`; an object that answers to any name has none of its own."""
    has_own = hasattr(type(sink), "try_emit") or "try_emit" in getattr(sink, "__dict__", {})
    way: Callable[..., Any] = sink.try_emit if has_own else sink.emit  # type: ignore[attr-defined]  # looked for above
    return way


def _is_cancelled() -> bool:
    """Whether somebody cancels this task, rather than a sink raising what looks like it."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
