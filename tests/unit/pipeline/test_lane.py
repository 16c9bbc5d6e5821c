"""What counts as large, and the one thread that works on it."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar
from functools import partial
from typing import Any

import pytest

from toolgate.kernel.payload import LARGE
from toolgate.pipeline import lane
from toolgate.pipeline.lane import Lane, aside, insist, is_large
from toolgate.testing.patience import PATIENCE_S, until


def nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


def cyclic() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    "value",
    [
        "x" * LARGE,
        b"x" * LARGE,
        {"text": "x" * 60_000},
        [1] * 4000,
        {"a": {"b": ["x"]}},
        10**100,
        None,
        object(),
        nested(60),
    ],
)
def test_what_is_quickly_worked_on_is_not_large(value: Any) -> None:
    assert not is_large(value)


@pytest.mark.parametrize(
    "value",
    [
        "x" * (LARGE + 1),
        b"x" * (LARGE + 1),
        {"text": "x" * LARGE},
        ["x" * 10_000] * 7,
        {"a": {"b": ["x" * LARGE]}},
        [1] * 5000,
        [[[]] * 100] * 100,
        nested(5000),
        cyclic(),
    ],
    ids=range(9),
)
def test_what_takes_long_is_large_whatever_makes_it_so(value: Any) -> None:
    assert is_large(value)


async def test_work_is_done_one_after_the_other_on_another_thread() -> None:
    at_once, most, threads = 0, 0, set()

    def work(number: int) -> int:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        threads.add(threading.current_thread().name)
        at_once -= 1
        return number

    assert await asyncio.gather(*(aside(work, number) for number in range(50))) == list(range(50))
    assert (most, threads) == (1, {"toolgate-large"})


async def test_the_thread_is_there_only_while_there_is_work() -> None:
    await aside(int)
    await until(lambda: all(thread.name != "toolgate-large" for thread in threading.enumerate()))
    assert await aside(int) == 0


async def test_what_the_work_raises_is_raised_to_who_waits() -> None:
    with pytest.raises(ZeroDivisionError):
        await aside(lambda: 1 / 0)
    with pytest.raises(RecursionError):
        await insist(lambda: (_ for _ in ()).throw(RecursionError))
    assert await aside(int) == 0, "the thread lives on"


variable: ContextVar[str] = ContextVar("variable")


async def test_the_work_sees_the_callers_context_variables() -> None:
    variable.set("mine")
    assert await aside(variable.get) == "mine"


async def test_work_cancelled_before_its_turn_is_never_done() -> None:
    go_on, done = threading.Event(), list[int]()
    first = asyncio.ensure_future(aside(go_on.wait, PATIENCE_S))
    second = asyncio.ensure_future(aside(done.append, 1))
    second.cancel()
    await asyncio.sleep(0)
    go_on.set()
    assert await first
    assert await aside(int) == 0
    assert done == []


async def test_what_must_be_done_is_done_by_who_is_cancelled() -> None:
    go_on = threading.Event()
    held = asyncio.ensure_future(aside(go_on.wait, PATIENCE_S))
    task = asyncio.ensure_future(insist(threading.current_thread))
    await asyncio.sleep(0)
    task.cancel()
    assert (await task, task.cancelling()) == (threading.current_thread(), 0)
    go_on.set()
    assert await held


async def test_a_forked_child_begins_with_a_lane_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    stuck = Lane()
    stuck._is_served = True  # as a child sees it: the thread that would serve it is the parent's
    monkeypatch.setattr(lane, "_lane", stuck)
    lane._begin_anew()
    assert await aside(int) == 0


async def test_work_that_ends_an_iteration_keeps_nobody_waiting() -> None:
    with pytest.raises(RuntimeError, match="StopIteration"):
        await asyncio.wait_for(asyncio.ensure_future(aside(partial(next, iter(())))), PATIENCE_S)
