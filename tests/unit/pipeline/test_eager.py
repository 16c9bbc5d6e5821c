from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any

import pytest

from toolgate.pipeline import eager
from toolgate.testing.patience import PATIENCE_S, until

WHO: ContextVar[str] = ContextVar("who")


STARTS = [eager._start_spare] if eager.start is eager._start_spare else [eager._start_spare, eager._start_native]
"""The way of this Python, and the other one as far as it works here."""
way = STARTS[0]


@pytest.fixture(autouse=True, params=STARTS, ids=lambda way: way.__name__)
def _each_way(request: pytest.FixtureRequest) -> None:
    global way
    way = request.param
    vars(eager._slot).pop("spare", None)  # another test's, maybe of a loop that is closed


def start(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return way(coroutine)


async def value(number: int) -> int:
    return number


async def test_a_coroutine_that_never_waits_gives_its_value_at_once() -> None:
    assert start(value(3)) == 3


async def test_one_that_waits_becomes_a_task_and_its_first_step_is_done() -> None:
    steps: list[str] = []

    async def work() -> str:
        steps.append("first")
        await asyncio.sleep(0)
        steps.append("second")
        return "done"

    task = start(work())
    assert isinstance(task, asyncio.Task)
    assert steps == ["first"]
    assert await eager.finish(task) == "done"


async def test_what_the_first_step_raises_is_raised_here() -> None:
    async def broken() -> None:
        raise LookupError("early")

    with pytest.raises(LookupError, match="early"):
        start(broken())
    assert start(value(1)) == 1


async def test_what_a_later_step_raises_is_raised_by_the_task() -> None:
    async def broken() -> None:
        await asyncio.sleep(0)
        raise LookupError("late")

    with pytest.raises(LookupError, match="late"):
        await eager.finish(start(broken()))


async def test_cancelling_the_wait_leaves_the_work_alone() -> None:
    let_go = asyncio.Event()

    async def work() -> str:
        await let_go.wait()
        return "done"

    task = start(work())
    waiting = asyncio.ensure_future(eager.finish(task))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait({waiting})
    let_go.set()
    assert await eager.finish(task) == "done"


async def test_the_task_is_the_same_before_and_after_waiting() -> None:
    async def work() -> list[Any]:
        first = asyncio.current_task()
        await asyncio.sleep(0)
        second = asyncio.current_task()
        await asyncio.get_running_loop().run_in_executor(None, int)
        return [first, second, asyncio.current_task()]

    caller = asyncio.current_task()
    task = start(work())
    assert asyncio.current_task() is caller
    assert await eager.finish(task) == [task, task, task]


async def test_contextvars_are_the_callers_copied_and_kept_over_waiting() -> None:
    async def work() -> list[str]:
        seen = [WHO.get()]
        WHO.set("inside")
        await asyncio.sleep(0)
        return [*seen, WHO.get()]

    WHO.set("caller")
    assert await eager.finish(start(work())) == ["caller", "inside"]
    assert WHO.get() == "caller"


async def test_contextvars_set_by_one_do_not_reach_the_next() -> None:
    stray: ContextVar[str] = ContextVar("stray", default="clean")

    async def soil() -> None:
        stray.set("soiled")
        WHO.set("soiled")

    async def look() -> tuple[str, str]:
        return stray.get(), WHO.get()

    WHO.set("one")
    start(soil())
    assert start(look()) == ("clean", "one")
    WHO.set("two")
    assert start(look()) == ("clean", "two")


async def test_contextvars_work_where_the_caller_has_none() -> None:
    import contextvars

    def begin() -> Any:
        return start(value(5))

    assert contextvars.Context().run(begin) == 5


async def test_one_may_start_another_and_that_one_a_third() -> None:
    async def inner(number: int, waits: bool) -> tuple[int, Any]:
        if waits:
            await asyncio.sleep(0)
        return number, asyncio.current_task()

    async def outer() -> list[int]:
        me = asyncio.current_task()
        at_once = start(inner(1, waits=False))
        later = start(inner(2, waits=True))
        assert asyncio.current_task() is me
        number, task = await eager.finish(later)
        assert task is later is not me
        return [at_once[0], number]

    assert await eager.finish(start(outer())) == [1, 2]


async def test_a_cancellation_that_arrives_during_the_first_wait_reaches_the_work() -> None:
    seen: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    task = start(work())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await eager.finish(task)
    assert seen == ["cancelled"]


@pytest.mark.parametrize("is_parked", [False, True])
async def test_work_that_cancels_itself_in_its_first_step_is_cancelled(is_parked: bool) -> None:
    async def work() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.Event().wait()

    if is_parked:
        start(value(1))
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await eager.finish(start(work()))


@pytest.mark.parametrize("is_parked", [False, True])
async def test_work_that_cancelled_itself_does_not_cancel_the_next(is_parked: bool) -> None:
    async def careless() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()

    if is_parked:
        start(value(1))
        await asyncio.sleep(0)
    with contextlib.suppress(asyncio.CancelledError):
        start(careless())
    assert await eager.finish(start(asyncio.sleep(0, "unharmed"))) == "unharmed"


async def test_work_may_catch_its_cancellation_and_go_on() -> None:
    async def work() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            return "went on"
        return "never"

    task = start(work())
    task.cancel()
    assert await eager.finish(task) == "went on"


async def test_a_cancellation_in_the_middle_reaches_the_work() -> None:
    async def work() -> None:
        await asyncio.sleep(0)
        await asyncio.Event().wait()

    task = start(work())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await eager.finish(task)


async def test_a_future_may_be_awaited_by_two_tasks_at_once() -> None:
    shared: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def work() -> str:
        return await shared

    tasks = [start(work()), asyncio.ensure_future(work()), start(work())]
    await asyncio.sleep(0)
    shared.set_result("shared")
    assert [await eager.finish(task) for task in tasks] == ["shared"] * 3


async def test_a_future_that_is_done_before_the_task_steps_is_seen() -> None:
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def work() -> str:
        return await ready

    task = start(work())
    ready.set_result("early")
    assert await eager.finish(task) == "early"


async def test_timeouts_and_task_groups_work_inside() -> None:
    async def work() -> list[int]:
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
            tasks = [group.create_task(value(number)) for number in range(3)]
            await asyncio.sleep(0)
        return [task.result() for task in tasks]

    assert await eager.finish(start(work())) == [0, 1, 2]


async def test_a_timeout_inside_the_work_ends_only_the_work() -> None:
    async def work() -> str:
        try:
            async with asyncio.timeout(0.001):
                await asyncio.Event().wait()
        except TimeoutError:
            return "timed out"
        return "never"

    assert await eager.finish(start(work())) == "timed out"


async def test_nothing_that_waits_for_all_tasks_waits_for_a_spare_one() -> None:
    start(value(1))
    with pytest.raises(LookupError):
        start(_raise())
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def _raise() -> None:
    raise LookupError


async def test_work_that_waits_is_among_all_tasks() -> None:
    task = start(asyncio.sleep(0))
    assert task in asyncio.all_tasks()
    await eager.finish(task)


def test_it_works_outside_any_task() -> None:
    seen: list[Any] = []

    async def look() -> None:
        seen.append(asyncio.current_task())

    async def main() -> None:
        done = asyncio.Event()

        def outside() -> None:
            start(look())
            seen.append(asyncio.current_task())
            done.set()

        asyncio.get_running_loop().call_soon(outside)
        await done.wait()

    asyncio.run(main())
    assert isinstance(seen[0], asyncio.Task)
    assert seen[1] is None


def test_it_works_in_several_loops_one_after_another() -> None:
    async def main(number: int) -> list[Any]:
        at_once = start(value(number))
        later = await eager.finish(start(asyncio.sleep(0, number)))
        return [at_once, later]

    assert [asyncio.run(main(number)) for number in range(5)] == [[number, number] for number in range(5)]


def test_it_works_in_several_loops_in_several_threads() -> None:
    results: list[int] = []

    async def main() -> None:
        for number in range(50):
            assert start(value(number)) == number
            results.append(await eager.finish(start(asyncio.sleep(0, number))))

    threads = [threading.Thread(target=lambda: asyncio.run(main())) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == sorted(list(range(50)) * 6)


def test_work_left_behind_by_a_loop_is_cancelled_with_it() -> None:
    seen: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            seen.append("ended")

    async def main() -> None:
        start(work())

    asyncio.run(main())
    assert seen == ["ended"]


def test_a_spare_task_dropped_with_its_loop_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        start(value(1))

    asyncio.run(main())
    vars(eager._slot).pop("spare", None)
    gc.collect()
    assert "toolgate-spare" not in caplog.text


def test_a_spare_task_whose_loop_stopped_early_is_not_used_again() -> None:
    loop = asyncio.new_event_loop()

    async def begin() -> None:
        start(value(1))

    loop.run_until_complete(begin())
    spare = getattr(eager._slot, "spare", None)
    if spare is not None:  # newer versions need none
        spare.task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
    assert loop.run_until_complete(_value_by_start(2)) == 2
    loop.close()


async def _value_by_start(number: int) -> Any:
    return start(value(number))


async def test_a_spare_task_is_driven_by_its_loop_only() -> None:
    spare = eager._Spare(asyncio.get_running_loop(), _context())
    with pytest.raises(RuntimeError, match="event loop only"):
        spare.__await__()
    spare.close()
    work = asyncio.sleep(1)
    spare.work = work
    spare.close()
    with pytest.raises(RuntimeError):
        work.send(None)
    spare.work = None
    spare.task.cancel()
    await until(spare.task.done)


def _context() -> Any:
    import contextvars

    return contextvars.copy_context()


async def test_something_else_than_a_future_may_be_yielded() -> None:
    """A bare yield asks the loop to come back at once; tasks allow it, so must we."""

    class Bare:
        def __await__(self) -> Any:
            yield

    async def work() -> str:
        await Bare()
        return "back"

    assert await eager.finish(start(work())) == "back"


class _Eager:
    """Stands in for a task of a newer Python that starts at once."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], **options: Any) -> None:
        assert options["eager_start"] is True
        self.inner = asyncio.ensure_future(coroutine)
        self.is_done = False

    def done(self) -> bool:
        return self.is_done

    def result(self) -> str:
        return "at once"


@pytest.mark.parametrize("is_done", [True, False])
async def test_newer_versions_start_tasks_by_themselves(monkeypatch: pytest.MonkeyPatch, is_done: bool) -> None:
    made: list[_Eager] = []

    def make(coroutine: Coroutine[Any, Any, Any], **options: Any) -> _Eager:
        made.append(_Eager(coroutine, **options))
        made[0].is_done = is_done
        return made[0]

    monkeypatch.setattr(asyncio, "Task", make)
    begin: Callable[..., Any] = eager._start_native
    started = begin(value(1))
    assert started == ("at once" if is_done else made[0])
    await made[0].inner
