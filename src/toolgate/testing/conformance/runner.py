"""What every runner that runs hooks in this process must do with results, exceptions and cancellation."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar
from typing import Any

import pytest

from toolgate.kernel.call import Status
from toolgate.kernel.tool import ToolDefinition, is_async
from toolgate.ports.runner import Job, Runner
from toolgate.testing.conformance.rows import a_call
from toolgate.testing.patience import PATIENCE_S, until

WHERE: ContextVar[str] = ContextVar("where", default="nowhere")


def a_job(hook: Any, *args: Any, **kwargs: Any) -> Job:
    """A claimed execution of `hook`."""
    tool = ToolDefinition(name="write", handler=hook)
    job = Job(a_call(status=Status.EXECUTING), tool, hook, is_async(hook), None)
    job.args, job.kwargs = args, kwargs
    return job


class RunnerConformance:
    """Subclass it with a fixture `runner` that gives an open runner and closes it."""

    async def test_an_async_hook_gives_its_value(self, runner: Runner) -> None:
        async def add(a: int, *, b: int) -> int:
            await asyncio.sleep(0)
            return a + b

        assert await runner.run(a_job(add, 1, b=2)) == 3

    async def test_a_plain_hook_gives_its_value_without_blocking_the_loop(self, runner: Runner) -> None:
        meanwhile = threading.Event()

        def wait(a: int, *, b: int) -> int:
            assert meanwhile.wait(PATIENCE_S)
            return a + b

        running = asyncio.ensure_future(runner.run(a_job(wait, 1, b=2)))
        await asyncio.sleep(0)
        meanwhile.set()
        assert await running == 3

    async def test_a_plain_hook_that_returns_an_awaitable_is_awaited(self, runner: Runner) -> None:
        async def inner() -> str:
            return "awaited"

        assert await runner.run(a_job(lambda: inner())) == "awaited"

    async def test_what_a_hook_raises_reaches_the_caller(self, runner: Runner) -> None:
        async def broken_async() -> None:
            raise LookupError("async")

        def broken_plain() -> None:
            raise LookupError("plain")

        for hook in (broken_async, broken_plain):
            with pytest.raises(LookupError):
                await runner.run(a_job(hook))

    async def test_a_stop_iteration_ends_the_run_like_any_exception(self, runner: Runner) -> None:
        """A loop cannot carry StopIteration; it must arrive as something, not be waited for in vain."""

        def exhausted() -> None:
            next(iter(()))

        with pytest.raises(RuntimeError):
            await asyncio.wait_for(_as_coroutine(runner.run(a_job(exhausted))), PATIENCE_S)

    async def test_contextvars_of_the_caller_are_visible(self, runner: Runner) -> None:
        async def look_async() -> str:
            return WHERE.get()

        token = WHERE.set("here")
        try:
            assert await runner.run(a_job(look_async)) == "here"
            assert await runner.run(a_job(lambda: WHERE.get())) == "here"
        finally:
            WHERE.reset(token)

    async def test_cancelling_stops_an_async_hook(self, runner: Runner) -> None:
        seen: list[str] = []

        async def wait() -> None:
            seen.append("started")
            try:
                await asyncio.Event().wait()
            finally:
                seen.append("stopped")

        job = a_job(wait)
        running = asyncio.ensure_future(_as_coroutine(runner.run(job)))
        await until(lambda: seen)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert seen == ["started", "stopped"]
        assert job.stoppable

    @pytest.mark.parametrize("error", [None, LookupError("too late")])
    async def test_a_plain_hook_cannot_be_stopped_and_reports_late(
        self, runner: Runner, error: Exception | None
    ) -> None:
        started, release = threading.Event(), threading.Event()
        late: list[BaseException | None] = []

        def wait() -> None:
            started.set()
            release.wait(PATIENCE_S)
            if error is not None:
                raise error

        job = a_job(wait)
        job.late = late.append
        running = asyncio.ensure_future(_as_coroutine(runner.run(job)))
        await until(started.is_set)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert not job.stoppable
        assert late == []
        release.set()
        await until(lambda: late)
        assert late == [error]

    async def test_many_plain_hooks_run_side_by_side(self, runner: Runner) -> None:
        together = threading.Barrier(8, timeout=PATIENCE_S)
        numbers = await asyncio.gather(*(runner.run(a_job(together.wait)) for _ in range(8)))
        assert sorted(numbers) == list(range(8))  # type: ignore[type-var]  # the barrier gives each a number


async def _as_coroutine(running: Any) -> Any:
    return await running
