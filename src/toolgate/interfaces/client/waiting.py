"""Wakes those who wait for a call: one event stream for all of them, open while anybody waits.

It only hints: whoever is woken reads the call itself, and reads it now and then without a hint.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from toolgate.errors import ToolgateError
from toolgate.interfaces.client.stream import READY, EventStream

LOOK_S = 15.0
"""How long to wait for a hint before looking all the same, and before opening a refused stream again."""
AT_ONCE = 16
"""How many look at the same time."""
_IDLE = frozenset({"tool.progress"})


class CallWaiters:
    """Everybody of one client who waits for a call."""

    def __init__(self, open_stream: Callable[[], EventStream]) -> None:
        self._open = open_stream
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._task: asyncio.Task[None] | None = None
        self.looking = asyncio.Semaphore(AT_ONCE)

    @contextmanager
    def of(self, call_id: str) -> Iterator[asyncio.Event]:
        """An event that is set whenever something may have happened to the call."""
        hint = asyncio.Event()
        self._waiting.setdefault(call_id, set()).add(hint)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="toolgate-client-waiters")
        try:
            yield hint
        finally:
            hints = self._waiting[call_id]
            hints.discard(hint)
            if not hints:
                del self._waiting[call_id]
            if not self._waiting:
                self.close()

    def close(self) -> None:
        """Listen no more, and have everybody look once."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self._wake(None)

    def _wake(self, call_id: str | None) -> None:
        found = self._waiting if call_id is None else {call_id} & self._waiting.keys()
        for one in list(found):
            for hint in self._waiting[one]:
                hint.set()

    async def _run(self) -> None:
        while True:
            try:
                async with self._open() as stream:
                    async for event in stream:
                        if event.name == READY:
                            self._wake(None)
                        elif event.name not in _IDLE:
                            call_id = event.data.get("call_id")
                            self._wake(call_id if isinstance(call_id, str) else None)
            except ToolgateError:
                # Those who wait look by themselves, and are told then what is wrong.
                await asyncio.sleep(LOOK_S)
