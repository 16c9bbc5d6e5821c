"""Sinks of every kind: coroutine functions, plain functions that may block, and plain ones that return an awaitable."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable
from typing import Any
from unittest.mock import AsyncMock

import pytest

from toolgate.errors import UsageError
from toolgate.pipeline.sinks import teller as telling
from toolgate.pipeline.sinks.teller import Teller, Telling, Thread
from toolgate.testing.patience import until


def three() -> Any:
    return iter([Telling(seq, f"e{seq}", {"seq": seq}) for seq in (1, 2, 3)])


async def test_a_plain_sink_is_called_on_one_thread_that_is_not_the_loop_s() -> None:
    threads: set[int] = set()

    class Plain:
        def emit(self, *, type: str, data: dict[str, Any]) -> None:
            threads.add(threading.get_ident())

    taken: list[Telling] = []
    teller = Teller(Plain())
    await teller.tell(three(), taken.append)
    await teller.tell(three(), taken.append)
    teller.close()
    assert [one.seq for one in taken] == [1, 2, 3, 1, 2, 3]
    assert len(threads - {threading.get_ident()}) == len(threads) == 1


async def test_a_plain_sink_may_return_something_to_wait_for() -> None:
    told: list[str] = []

    async def later(name: str) -> None:
        await asyncio.sleep(0)
        told.append(name)

    class Mixed:
        def emit(self, *, type: str, data: dict[str, Any]) -> Awaitable[None] | None:
            if type == "e2":
                return later(type)
            told.append(type)
            return None

    taken: list[Telling] = []
    teller = Teller(Mixed())
    await teller.tell(three(), taken.append)
    teller.close()
    assert told == ["e1", "e2", "e3"]
    assert len(taken) == 3


async def test_a_stand_in_that_is_awaited_is_called_on_the_loop() -> None:
    sink = AsyncMock()
    await Teller(sink).tell(three(), lambda _one: None)
    assert sink.emit.await_count == 3


@pytest.mark.parametrize(("raised", "seen"), [(OSError("down"), OSError), (SystemExit(1), RuntimeError)])
async def test_what_a_plain_sink_raises_reaches_who_tells_it(raised: BaseException, seen: type[Exception]) -> None:
    class Broken:
        def emit(self, *, type: str, data: dict[str, Any]) -> None:
            raise raised

    teller = Teller(Broken())
    with pytest.raises(seen):
        await teller.tell(three(), lambda _one: None)
    with pytest.raises(seen):  # the thread is still there
        await teller.tell(three(), lambda _one: None)
    teller.close()


async def test_what_nobody_waits_for_any_more_is_not_begun() -> None:
    thread, go, done = Thread(), threading.Event(), []
    first = asyncio.ensure_future(thread.run(go.wait))
    second = asyncio.ensure_future(thread.run(lambda: done.append(1)))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    go.set()
    await first
    await thread.run(lambda: done.append(2))
    thread.close()
    assert done == [2]


async def test_the_thread_ends_when_idle_and_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "IDLE_S", 0.01)
    thread = Thread()
    assert await thread.run(lambda: 1) == 1
    await until(lambda: not thread._is_alive)
    thread.close()
    assert await thread.run(lambda: 2) == 2
    await until(lambda: not thread._is_alive)


async def test_what_comes_after_the_end_is_done_first() -> None:
    thread, go = Thread(), threading.Event()
    first = asyncio.ensure_future(thread.run(go.wait))
    await asyncio.sleep(0)
    thread.close()
    second = asyncio.ensure_future(thread.run(lambda: 2))
    await asyncio.sleep(0)
    go.set()
    assert (await first, await second) == (True, 2)
    thread.close()


def test_a_sink_that_yields_would_hear_nothing_and_is_refused() -> None:
    class Lazy:
        def emit(self, *, type: str, data: dict[str, Any]) -> Any:
            yield type

    class LazyAsync:
        async def emit(self, *, type: str, data: dict[str, Any]) -> Any:
            yield type

    for sink in (Lazy(), LazyAsync()):
        with pytest.raises(UsageError, match="holds a `yield`"):
            Teller(sink)
