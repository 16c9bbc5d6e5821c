"""Run handlers in this process: async ones on the caller's loop, plain ones on a pool of daemon threads."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import inspect
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from toolgate.ports.runner import Job

MAX_THREADS = 64
IDLE_S = 10.0


class InlineRunner:
    """The default runner. A plain handler that is cancelled goes on in its thread: nothing can stop it."""

    def __init__(self, *, max_threads: int = MAX_THREADS) -> None:
        self._pool = ThreadPool(max_threads)

    def run(self, job: Job) -> Awaitable[object]:
        if job.is_async:
            running: Awaitable[object] = job.hook(*job.args, **job.kwargs)
            return running
        return self._run_in_thread(job)

    async def _run_in_thread(self, job: Job) -> object:
        future = self._pool.submit(contextvars.copy_context().run, job.hook, *job.args, **job.kwargs)
        try:
            value = await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            job.began = not future.cancelled()
            job.stoppable = not job.began
            if job.began and job.late is not None:
                future.add_done_callback(lambda done: job.late and job.late(done.exception()))
            raise
        return await value if inspect.isawaitable(value) else value

    async def close(self) -> None:
        self._pool.close()


Item = tuple["concurrent.futures.Future[Any]", Callable[[], Any]]


class ThreadPool:
    """Daemon threads, made when needed and gone when idle.

    The standard executor joins its threads when the interpreter ends, so one stuck handler would
    keep the whole program from ending.
    """

    def __init__(self, max_threads: int) -> None:
        self._max = max_threads
        self._work: deque[Item] = deque()
        self._ready = threading.Condition()
        self._threads = 0
        self._waiting = 0
        self._closed = False

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> concurrent.futures.Future[Any]:
        """Run a function on one of the threads and return its future."""
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        with self._ready:
            self._work.append((future, lambda: function(*args, **kwargs)))
            if len(self._work) > self._waiting and self._threads < self._max:
                self._threads += 1
                threading.Thread(target=self._serve, name=f"toolgate-handler-{self._threads}", daemon=True).start()
            self._ready.notify()
        return future

    def _serve(self) -> None:
        while (item := self._next()) is not None:
            _settle(*item)

    def _next(self) -> Item | None:
        """Return the next piece of work; None when it is time for this thread to end."""
        with self._ready:
            self._waiting += 1
            try:
                if not self._work and not self._closed:
                    self._ready.wait(IDLE_S)
            finally:
                self._waiting -= 1
            if self._work:
                return self._work.popleft()
            self._threads -= 1
            return None

    def close(self) -> None:
        """Let idle threads end; busy ones end with their handler."""
        with self._ready:
            self._closed = True
            self._ready.notify_all()


def _settle(future: concurrent.futures.Future[Any], work: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = work()
    except StopIteration as error:  # a loop's future refuses it, and whoever waits would wait in vain
        carried = RuntimeError("the handler raised StopIteration")
        carried.__cause__ = error
        future.set_exception(carried)
    except BaseException as error:  # noqa: BLE001  # the future carries it to whoever waits
        future.set_exception(error)
    else:
        future.set_result(result)
