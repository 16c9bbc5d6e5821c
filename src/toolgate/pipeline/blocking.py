"""Faces for plain threads: each method is the async one, run on a background loop and waited for."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator
from concurrent.futures import CancelledError
from contextlib import suppress
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from toolgate.errors import GateClosedError, UsageError
from toolgate.pipeline.background import Background

P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F", bound="Blocking")


class Blocking:
    """Blocks the calling thread until the answer of `target` is there. Any number of threads may share one."""

    _closed = "This gate is closed; open a new one."
    _closed_meanwhile = "The gate was closed while this waited."
    _ours = "`gate.sync` would wait for itself here; use the async method."
    _error: type[Exception] = GateClosedError

    def __init__(self, target: Any, background: Background) -> None:
        self._target = target
        self._background = background

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        if self._background.is_closed or self._background.is_current:
            coroutine.close()
            if self._background.is_closed:
                raise self._error(self._closed)
            raise UsageError(self._ours)
        try:
            future = self._background.submit(coroutine)
        except GateClosedError:
            raise self._error(self._closed) from None
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise
        except CancelledError:
            raise self._error(self._closed_meanwhile) from None


def waited(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[Any, P], T]:
    """Return the method of a face that waits for this one."""

    @wraps(method)
    def blocking(self: Blocking, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._wait(method(self._target, *args, **kwargs))

    return blocking


def iterated(
    method: Callable[Concatenate[Any, P], AsyncIterator[T]],
) -> Callable[Concatenate[Any, P], Generator[T, None, None]]:
    """Return the method of a face whose items come one by one, in a plain loop."""

    @wraps(method)
    def blocking(self: Blocking, /, *args: P.args, **kwargs: P.kwargs) -> Generator[T, None, None]:
        items = method(self._target, *args, **kwargs)
        try:
            while True:
                try:
                    item = self._wait(next_of(items))
                except StopAsyncIteration:
                    return
                yield item
        finally:
            if isinstance(items, AsyncGenerator) and not self._background.is_closed:
                with suppress(RuntimeError):  # it is ending already: whoever read it was interrupted
                    self._wait(items.aclose())

    return blocking


async def next_of(items: AsyncIterator[T]) -> T:
    return await anext(items)
