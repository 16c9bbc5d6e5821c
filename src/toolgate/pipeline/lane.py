"""Work on large values, off the event loop: one thread for the whole process, one piece of work after the other.

A second thread would make nothing faster, since most of this work holds the interpreter's lock, and everybody else
would wait for both. What is small is never sent here: going there and back costs more than the work itself.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextvars import copy_context
from functools import partial
from threading import Condition, Lock, Thread
from typing import Any, ParamSpec, TypeVar

from toolgate.kernel.payload import LARGE

P = ParamSpec("P")
T = TypeVar("T")

LINGER_S = 0.05
"""How long the thread waits for more: one call comes here several times, and starting a thread holds up the loop."""
_BOX = 16
"""What an entry of a dict or list counts for, beside its text."""
_DEEPEST = 64
"""Deeper nesting is large whatever it holds: going down further could exhaust the stack."""


def is_large(value: object, most: int = LARGE) -> bool:
    """Whether working on JSON takes long enough to be done aside; a quick look that stops where it is sure."""
    kind = type(value)
    if kind is str or kind is bytes:
        return len(value) > most  # type: ignore[arg-type]  # it has a length
    if kind is dict or kind is list:
        return _left(value, most, _DEEPEST) < 0
    return False


def _left(box: Any, room: int, depth: int) -> int:
    """What is left of `room` when a dict or list has taken its part; less than nothing where that is too much."""
    room -= _BOX * len(box)
    if room < 0 or depth == 0:
        return -1
    for item in box.values() if type(box) is dict else box:
        kind = type(item)
        if kind is str:
            room -= len(item)
        elif kind is dict or kind is list:
            room = _left(item, room, depth - 1)
        if room < 0:
            return room
    return room


class Lane:
    """Does one piece of work at a time, on a thread that is there only while there is some, and a moment longer."""

    def __init__(self) -> None:
        self._changed = Condition(Lock())
        self._work: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._is_served = False

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Return the future of a piece of work; cancelling it before its turn means that it is never done."""
        future: Future[T] = Future()
        with self._changed:
            self._work.append((future, work))
            if self._is_served:
                self._changed.notify()
            else:
                self._is_served = True
                Thread(target=self._serve, name="toolgate-large", daemon=True).start()
        return future

    def _serve(self) -> None:
        while True:
            with self._changed:
                if not self._changed.wait_for(lambda: self._work, LINGER_S):
                    self._is_served = False
                    return
                future, work = self._work.popleft()
            if future.set_running_or_notify_cancel():
                _settle(future, work)
            del future, work  # megabytes, which the next may wait for long to replace


def _settle(future: Future[Any], work: Callable[[], Any]) -> None:
    try:
        result = work()
    except StopIteration as error:  # a future of asyncio refuses it, and who waits would wait forever
        future.set_exception(RuntimeError(f"work on a large value ended with {error!r}"))
    except BaseException as error:  # noqa: BLE001  # the future carries it to whoever waits
        future.set_exception(error)
    else:
        future.set_result(result)


_lane = Lane()


def _begin_anew() -> None:
    global _lane
    _lane = Lane()  # the thread of the old one is the parent's


os.register_at_fork(after_in_child=_begin_anew)


def aside(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
    """Do this on the thread for large work, with the caller's context variables, and wait for it."""
    return asyncio.wrap_future(_lane.submit(partial(copy_context().run, work, *args, **kwargs)))


async def insist(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do what `aside` does for what must be done whoever stops waiting.

    Who is cancelled meanwhile does it at once, and the cancellation is used up: what follows must be written down.
    """
    try:
        return await aside(work, *args, **kwargs)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        assert task is not None, "only a task can be cancelled"
        task.uncancel()
        return work(*args, **kwargs)
