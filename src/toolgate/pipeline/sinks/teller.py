"""How one sink is told: a coroutine function on the loop at hand, anything else on a thread that it may block."""

from __future__ import annotations

import asyncio
import inspect
import queue
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from typing import Any, NamedTuple

from toolgate.errors import UsageError
from toolgate.kernel.tool import is_async
from toolgate.ports.sink import Sink

IDLE_S = 10.0
"""How long the thread of a plain sink waits for something to do before it ends."""

Item = tuple["Future[Any]", Callable[[], Any]]


class Telling(NamedTuple):
    """One thing to tell a sink, the number of the event it is about, and how many lost events it stands for."""

    seq: int
    name: str
    data: dict[str, Any]
    missed: int = 0


Taken = Callable[[Telling], None]


class Teller:
    """Tells one sink, one thing after the other."""

    def __init__(self, sink: Sink) -> None:
        self._emit = _way_in(sink)
        self._is_async = is_async(self._emit)
        self._thread = Thread()

    async def tell(self, everything: Iterator[Telling], taken: Taken) -> None:
        """Tell everything in order, and `taken` of each that the sink has taken; raise what the sink raises."""
        if not self._is_async:
            # A thread that hangs cannot be ended, only left alone: nobody but this coroutine waits for it.
            while (left := await self._thread.run(lambda: self._tell_plainly(everything, taken))) is not None:
                telling, rest = left
                await rest
                taken(telling)
            return
        for telling in everything:
            await self._emit(type=telling.name, data=telling.data)
            taken(telling)

    def _tell_plainly(self, everything: Iterator[Telling], taken: Taken) -> tuple[Telling, Awaitable[None]] | None:
        """On the thread: tell until the end, or until the sink returns something that a loop must wait for."""
        for telling in everything:
            said = self._emit(type=telling.name, data=telling.data)
            if inspect.isawaitable(said):
                return telling, said
            taken(telling)
        return None

    def close(self) -> None:
        """Let the thread end, as soon as the sink does."""
        self._thread.close()


def _way_in(sink: Sink) -> Callable[..., Any]:
    """Return a sink's own `try_emit`, else its `emit`; an object that answers to any name has none of its own."""
    has_own = hasattr(type(sink), "try_emit") or "try_emit" in getattr(sink, "__dict__", {})
    way: Callable[..., Any] = sink.try_emit if has_own else sink.emit  # type: ignore[attr-defined]  # looked for above
    if inspect.isgeneratorfunction(way) or inspect.isasyncgenfunction(way):
        raise UsageError(
            "An event sink's `emit` holds a `yield`, so calling it does nothing. Make it a plain function."
        )
    return way


class Thread:
    """A daemon thread that is there while there is something to do: a sink that hangs keeps no program from ending."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._work: queue.SimpleQueue[Item | None] = queue.SimpleQueue()
        self._is_alive = False

    async def run(self, work: Callable[[], Any]) -> Any:
        """Return what `work` returns there. Whoever stops waiting leaves it to end by itself."""
        future: Future[Any] = Future()
        with self._lock:
            self._work.put((future, work))
            if not self._is_alive:
                self._is_alive = True
                threading.Thread(target=self._serve, name="toolgate-sink", daemon=True).start()
        return await asyncio.wrap_future(future)

    def _serve(self) -> None:
        while (item := self._next()) is not None:
            future, work = item
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as error:  # noqa: BLE001  # whoever waits hears of it, and the thread goes on
                    future.set_exception(error if isinstance(error, Exception) else RuntimeError(type(error).__name__))

    def _next(self) -> Item | None:
        """Return what is to be done; None where it is time to end."""
        while True:
            try:
                item = self._work.get(timeout=IDLE_S)
            except queue.Empty:
                item = None
            if item is not None:
                return item
            with self._lock:
                if self._work.empty():
                    self._is_alive = False
                    return None

    def close(self) -> None:
        """Let it end once it has done what it was given."""
        with self._lock:
            if self._is_alive:
                self._work.put(None)
