"""Waiting for a condition in a test, without guessing how long it takes."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import cast

PATIENCE_S = 10.0
_PAUSE_S = 0.001


async def until(condition: Callable[[], object | Awaitable[object]], *, within_s: float = PATIENCE_S) -> None:
    """Return once `condition()` is true, letting everything else run meanwhile; TimeoutError where it never is."""
    deadline = monotonic() + within_s
    while not await _ask(condition):
        if monotonic() > deadline:
            raise TimeoutError(f"The condition did not come true within {within_s:g} s.")
        await asyncio.sleep(_PAUSE_S)


def until_sync(condition: Callable[[], object], *, within_s: float = PATIENCE_S) -> None:
    """The same for plain threads."""
    deadline = monotonic() + within_s
    pause = threading.Event()
    while not condition():
        if monotonic() > deadline:
            raise TimeoutError(f"The condition did not come true within {within_s:g} s.")
        pause.wait(_PAUSE_S)


async def _ask(condition: Callable[[], object | Awaitable[object]]) -> object:
    said = condition()
    return await cast(Awaitable[object], said) if inspect.isawaitable(said) else said
