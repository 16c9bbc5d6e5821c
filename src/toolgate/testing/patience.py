"""Waiting for a condition in a test, without guessing how long it takes."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Iterator
from time import monotonic
from typing import cast

PATIENCE_S = 120.0
"""How long a test waits for what must come. A wait ends when it comes, so only a failure takes this long."""

_FIRST_PAUSE_S = 0.001
_LAST_PAUSE_S = 0.02


async def until(condition: Callable[[], object | Awaitable[object]], *, within_s: float = PATIENCE_S) -> None:
    """Return once `condition()` is true, letting everything else run meanwhile; TimeoutError where it never is."""
    for pause_s in _pauses(within_s):
        if await _ask(condition):
            return
        await asyncio.sleep(pause_s)


def until_sync(condition: Callable[[], object], *, within_s: float = PATIENCE_S) -> None:
    """The same for plain threads."""
    nothing = threading.Event()
    for pause_s in _pauses(within_s):
        if condition():
            return
        nothing.wait(pause_s)


def _pauses(within_s: float) -> Iterator[float]:
    """Pauses between two looks: longer and longer ones, since looking often makes a busy machine busier."""
    deadline, pause_s = monotonic() + within_s, _FIRST_PAUSE_S
    while True:
        is_late = monotonic() > deadline  # read before the last look, so that it is taken after the whole time
        yield pause_s
        if is_late:
            raise TimeoutError(f"The condition did not come true within {within_s:g} s.")
        pause_s = min(pause_s * 1.25, _LAST_PAUSE_S)


async def _ask(condition: Callable[[], object | Awaitable[object]]) -> object:
    said = condition()
    return await cast(Awaitable[object], said) if inspect.isawaitable(said) else said
