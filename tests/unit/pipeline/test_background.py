from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import threading
from collections.abc import Iterator

import pytest

from toolgate.errors import GateClosedError
from toolgate.pipeline.background import Background
from toolgate.testing.patience import PATIENCE_S, until_sync


@pytest.fixture
def background() -> Iterator[Background]:
    background = Background("toolgate-test")
    yield background
    background.close()


def test_it_starts_no_thread_before_it_is_needed(background: Background) -> None:
    before = threading.active_count()
    assert not background.is_current
    background.close()
    assert threading.active_count() == before


def test_it_runs_coroutines_on_its_own_thread(background: Background) -> None:
    async def where() -> tuple[str, bool]:
        return threading.current_thread().name, background.is_current

    assert background.submit(where()).result(PATIENCE_S) == ("toolgate-test", True)


def test_what_spawned_work_raises_is_logged_by_name(background: Background, caplog: pytest.LogCaptureFixture) -> None:
    async def broken() -> None:
        raise LookupError("secret words")

    background.spawn(broken())
    until_sync(lambda: caplog.records)
    assert caplog.messages == ["background work failed: LookupError"]


def test_spawned_work_that_ends_well_says_nothing(background: Background, caplog: pytest.LogCaptureFixture) -> None:
    done = threading.Event()

    async def fine() -> None:
        done.set()

    background.spawn(fine())
    assert done.wait(PATIENCE_S)
    background.close()
    assert caplog.records == []


def test_closing_cancels_what_runs(background: Background, caplog: pytest.LogCaptureFixture) -> None:
    started, ended = threading.Event(), threading.Event()

    async def wait() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    background.spawn(wait())
    assert started.wait(PATIENCE_S)
    gc.collect()  # nobody but the background holds it
    assert not ended.is_set()
    background.close()
    assert ended.is_set()
    assert caplog.records == []


def test_closed_it_takes_no_work(background: Background) -> None:
    async def never() -> None:
        raise AssertionError

    background.close()
    background.spawn(never())
    background.close()


def test_it_can_be_closed_from_its_own_thread(background: Background) -> None:
    async def close() -> None:
        background.close()

    background.spawn(close())
    until_sync(background.loop.is_closed)
    background.close()


def test_work_offered_while_it_closes_is_done_or_refused_and_never_lost(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(20):
        background = Background("toolgate-test")
        ends: list[str] = []
        background.submit(asyncio.sleep(0)).result(PATIENCE_S)
        closing = threading.Event()

        def work(background: Background = background, ends: list[str] = ends) -> None:
            try:
                while True:
                    background.submit(asyncio.sleep(0)).result(PATIENCE_S)
            except (GateClosedError, concurrent.futures.CancelledError) as error:
                ends.append(type(error).__name__)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        closing.wait(0.002)
        background.close()
        for thread in threads:
            thread.join(PATIENCE_S)
        assert len(ends) == 4
    assert caplog.records == []
