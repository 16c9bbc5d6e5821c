"""Start a coroutine at once, in a task of its own only if it has to wait.

A governed call must outlive the caller who stops waiting for it, so it cannot simply be awaited; but
a task for every call costs more than all of governance when the handler never waits. Python 3.12
starts tasks eagerly. For 3.11 this file does the same with a spare task per event loop: the first
step runs as if inside that task (same task identity, same contextvars), and only if the coroutine
suspends is the spare task given the rest of it.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Coroutine
from contextvars import Context, copy_context
from typing import Any, Final, TypeVar

T = TypeVar("T")


def _start_native(coroutine: Coroutine[Any, Any, T]) -> T | asyncio.Task[T]:
    options: dict[str, Any] = {"eager_start": True}  # unknown to 3.11, whose signature is checked here
    task: asyncio.Task[T] = asyncio.Task(coroutine, loop=asyncio.get_running_loop(), context=copy_context(), **options)
    return task.result() if task.done() else task


_NOTHING: Final = object()


async def finish(work: asyncio.Future[T]) -> T:
    """Return the result of a future or task; cancelling this wait leaves it alone."""
    await asyncio.wait({work})
    return work.result()


class _Spare(Coroutine[Any, Any, Any]):
    """The coroutine of a parked task, and that task: lends its identity to first steps, takes over the rest.

    It is a coroutine object rather than an `async def` so that a cancellation which arrives before
    the task's own first step reaches the work and not this class.
    """

    __slots__ = ("context", "gate", "loop", "pending", "task", "work")

    def __init__(self, loop: asyncio.AbstractEventLoop, context: Context) -> None:
        self.loop = loop
        self.context = context
        self.gate: asyncio.Future[None] = loop.create_future()
        self.work: Coroutine[Any, Any, Any] | None = None
        self.pending: Any = _NOTHING
        self.task: asyncio.Task[Any] = loop.create_task(self, name="toolgate-spare", context=context)
        # A spare that was never needed may be dropped with its loop; that is not an accident to report.
        self.task._log_destroy_pending = False  # type: ignore[attr-defined]  # asyncio's own switch for this
        _unregister_task(self.task)  # nobody's work yet: whoever waits for all tasks must not wait for this one

    def send(self, value: Any) -> Any:
        if self.work is None:
            self.gate._asyncio_future_blocking = True
            return self.gate
        if self.pending is _NOTHING:
            return self.work.send(value)
        pending, self.pending = self.pending, _NOTHING
        if hasattr(pending, "_asyncio_future_blocking"):
            pending._asyncio_future_blocking = True
        return pending

    def throw(self, error: Any, *rest: Any) -> Any:
        self.pending = _NOTHING
        if self.work is None:
            raise error
        return self.work.throw(error)

    def close(self) -> None:
        if self.work is not None:
            self.work.close()

    def __await__(self) -> Any:
        raise RuntimeError("a spare task is driven by its event loop only")

    def suits(self, loop: asyncio.AbstractEventLoop, caller: Context) -> bool:
        """Take the caller's contextvars; False where this spare cannot serve (other loop, stray variables)."""
        if self.loop is not loop or self.task.cancelling():
            return False
        context = self.context
        if caller:
            for variable, value in caller.items():
                if context.get(variable, self) is not value:
                    context.run(variable.set, value)
        return len(context) == len(caller)

    def take_over(self, work: Coroutine[Any, Any, Any], pending: Any) -> asyncio.Task[Any]:
        """Let the task run the rest of `work`, whose first step yielded `pending`."""
        self.work, self.pending = work, pending
        if hasattr(pending, "_asyncio_future_blocking"):
            pending._asyncio_future_blocking = False  # raised again in `send`; meanwhile others may await it too
        _register_task(self.task)
        if not self.gate.done():
            self.gate.set_result(None)
        return self.task


_slot = threading.local()
_get_loop = asyncio.get_running_loop
_current: dict[Any, Any] = asyncio.tasks._current_tasks  # type: ignore[attr-defined]  # by loop, as 3.11 keeps them
_register_task = asyncio.tasks._register_task
_unregister_task = asyncio.tasks._unregister_task


def _start_spare(coroutine: Coroutine[Any, Any, T]) -> T | asyncio.Task[T]:
    loop = _get_loop()
    caller = copy_context()
    mine = _slot.__dict__  # this thread's own
    spare: _Spare | None = mine.pop("spare", None)
    if spare is None or not spare.suits(loop, caller):
        spare = _Spare(loop, caller)
    current = _current.get(loop)
    _current[loop] = spare.task
    try:
        pending = spare.context.run(coroutine.send, None)
    except StopIteration as stop:
        mine["spare"] = spare
        value: T = stop.value
        return value
    finally:
        if current is not None:
            _current[loop] = current
        else:
            del _current[loop]
    return spare.take_over(coroutine, pending)


start = _start_native if sys.version_info >= (3, 12) else _start_spare
"""Run `coroutine` until it ends or first waits: its value, which is no task, or the task that runs the rest.

What the coroutine raises before it first waits is raised here.
"""
