from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from toolgate.adapters.runners import inline
from toolgate.adapters.runners.inline import InlineRunner, ThreadPool
from toolgate.testing.conformance.runner import a_job
from toolgate.testing.patience import PATIENCE_S, until, until_sync


@pytest.fixture
def pool() -> Iterator[ThreadPool]:
    pool = ThreadPool(2)
    yield pool
    pool.close()


def handlers() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("toolgate-handler")]


def test_threads_are_made_when_needed_and_used_again(pool: ThreadPool) -> None:
    first = {pool.submit(threading.get_ident).result(PATIENCE_S) for _ in range(1)}
    until_sync(lambda: pool._waiting == 1)
    assert {pool.submit(threading.get_ident).result(PATIENCE_S)} == first


def test_no_more_threads_are_made_than_allowed(pool: ThreadPool) -> None:
    release = threading.Event()
    futures = [pool.submit(release.wait, 10) for _ in range(6)]
    assert len(handlers()) == 2
    release.set()
    assert [future.result(PATIENCE_S) for future in futures] == [True] * 6


def test_idle_threads_go_away(monkeypatch: pytest.MonkeyPatch, pool: ThreadPool) -> None:
    monkeypatch.setattr(inline, "IDLE_S", 0.01)
    pool.submit(int).result(PATIENCE_S)
    until_sync(lambda: not handlers())
    assert pool.submit(int).result(PATIENCE_S) == 0


def test_threads_are_daemons_and_never_keep_the_program_from_ending(pool: ThreadPool) -> None:
    assert pool.submit(lambda: threading.current_thread().daemon).result(PATIENCE_S)


def test_work_that_was_cancelled_before_it_began_is_skipped(pool: ThreadPool) -> None:
    release, ran = threading.Event(), threading.Event()
    busy = [pool.submit(release.wait, 10) for _ in range(2)]
    skipped = pool.submit(ran.set)
    assert skipped.cancel()
    release.set()
    for future in busy:
        future.result(PATIENCE_S)
    pool.submit(int).result(PATIENCE_S)
    assert not ran.is_set()


def test_closing_ends_idle_threads_and_lets_busy_ones_finish(pool: ThreadPool) -> None:
    release = threading.Event()
    busy = pool.submit(release.wait, 10)
    pool.submit(int).result(PATIENCE_S)
    pool.close()
    until_sync(lambda: len(handlers()) == 1)
    release.set()
    assert busy.result(PATIENCE_S)
    until_sync(lambda: not handlers())


async def test_a_hook_nobody_wants_to_hear_of_late_is_simply_left() -> None:
    runner, started, release = InlineRunner(), threading.Event(), threading.Event()

    def stuck() -> None:
        started.set()
        release.wait(PATIENCE_S)

    job = a_job(stuck)
    running = asyncio.ensure_future(runner.run(job))
    await until(started.is_set)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not job.stoppable
    release.set()
    await runner.close()


async def test_a_hook_that_had_not_begun_counts_as_stopped() -> None:
    runner, release = InlineRunner(max_threads=1), threading.Event()
    busy = asyncio.ensure_future(runner.run(a_job(lambda: release.wait(PATIENCE_S))))
    await asyncio.sleep(0)
    job = a_job(lambda: None)
    waiting = asyncio.ensure_future(runner.run(job))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert job.stoppable
    release.set()
    assert await busy
    await runner.close()
