"""What is looked after in the background: retries, sinks that take too long, other processes, and letting go."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from toolgate.adapters.memory.bus import MemoryBus
from toolgate.adapters.memory.store import MemoryStore
from toolgate.errors import StoreError
from toolgate.kernel.call import Status
from toolgate.kernel.change import Change
from toolgate.kernel.event import Draft, Event
from toolgate.pipeline.background import Background
from toolgate.pipeline.sinks import minder as minding
from toolgate.pipeline.sinks.hearing import Allowance
from toolgate.pipeline.sinks.minder import Minder
from toolgate.pipeline.sinks.relay import Relay
from toolgate.ports.bus import LOOK_AGAIN, Hint
from toolgate.ports.sink import Cursor
from toolgate.testing.patience import until

AT = datetime(2026, 1, 2, tzinfo=UTC)
PATIENCE_S = 60.0


class Sink:
    def __init__(self) -> None:
        self.told: list[int] = []
        self.fails = 0
        self.go: threading.Event | None = None

    async def emit(self, *, type: str, data: dict[str, Any]) -> None:
        if self.fails:
            self.fails -= 1
            raise OSError("down")
        while self.go is not None and not self.go.is_set():  # noqa: ASYNC110  # set from any loop
            await asyncio.sleep(0.001)
        self.told.append(data["seq"])


class Shared(MemoryStore):
    """A store of several processes, one of which can be made to hold the name."""

    is_shared = True
    is_elsewhere = False
    is_away = False

    async def open_cursor(self, project: str, sink: str | None) -> Cursor:
        if self.is_away:
            raise StoreError("away")
        cursor = await super().open_cursor(project, sink)
        return cursor._replace(is_ours=not self.is_elsewhere)


@pytest.fixture
def background() -> Iterator[Background]:
    background = Background("toolgate-minding-test")
    yield background
    background.close()


def happen(store: MemoryStore, count: int = 1) -> None:
    events: tuple[Draft, ...] = tuple(("tool.progress", "c", {}, None) for _ in range(count))
    store.commit(Change(project="p", at=AT, events=events))


async def settled(relay: Relay) -> None:
    await until(lambda: relay.is_settled, within_s=PATIENCE_S)


async def test_a_sink_that_failed_is_told_again_though_nobody_calls(background: Background) -> None:
    sink, store = Sink(), MemoryStore()
    sink.fails = 8
    relay = Relay(sink, store, "p")
    Minder(relay, background.spawn, MemoryBus(), is_wanted=lambda: True)
    await relay.open()
    happen(store)
    relay.stir()
    assert not await relay.moment()
    sink.fails = 1
    await settled(relay)
    assert sink.told == [1]


async def test_a_sink_that_takes_too_long_over_one_event_has_failed(background: Background) -> None:
    sink, store = Sink(), MemoryStore()
    sink.go = threading.Event()
    relay = Relay(sink, store, "p")
    Minder(relay, background.spawn, MemoryBus(), is_wanted=lambda: True, patience_s=0.01)
    await relay.open()
    happen(store)
    relay.stir()
    await until(lambda: relay.trouble == "did not answer in time", within_s=PATIENCE_S)
    sink.go.set()
    await settled(relay)
    assert sink.told == [1]


async def test_a_sink_that_had_nothing_to_do_for_long_is_not_late_while_its_next_event_is_read() -> None:
    class Slow(MemoryStore):
        read = asyncio.Event()

        async def events(self, project: str, **options: Any) -> list[Event]:
            await self.read.wait()
            return await super().events(project, **options)

    sink, store = Sink(), Slow()
    relay = Relay(sink, store, "p", clock=lambda: 3600.0)
    minder = Minder(relay, lambda run: run.close(), MemoryBus(), is_wanted=lambda: True, clock=lambda: 3600.0)
    await relay.open()
    happen(store)
    relay.hearing.note()
    relay.start()
    await minder._look()
    store.read.set()
    assert await relay.insist(PATIENCE_S)
    assert (sink.told, relay.trouble) == ([1], "")


async def test_nobody_looks_after_a_sink_that_keeps_up(background: Background) -> None:
    class Quick:
        async def emit(self, *, type: str, data: dict[str, Any]) -> None: ...

    store = MemoryStore()
    spawned: list[Any] = []
    relay = Relay(Quick(), store, "p")
    Minder(relay, spawned.append, MemoryBus(), is_wanted=lambda: True)
    await relay.open()
    happen(store)
    relay.stir()
    assert await relay.moment()
    assert spawned == []


async def test_what_other_processes_do_is_told_with_a_hint_or_without(
    background: Background, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink, store, bus = Sink(), Shared(), MemoryBus()
    relay = Relay(sink, store, "p")
    minder = Minder(relay, background.spawn, bus, is_wanted=lambda: True)
    await relay.open()
    happen(store)
    await until(lambda: sink.told == [1], within_s=PATIENCE_S)  # found by looking
    monkeypatch.setattr(minding, "NEWS_S", 3600.0)
    for hint in (Hint("p", "c", Status.COMPLETED), LOOK_AGAIN):
        happen(store)
        count = len(sink.told) + 1
        bus.publish(Hint("other", "c", Status.COMPLETED))
        assert not minder._has_news
        bus.publish(hint)
        await until(lambda count=count: len(sink.told) == count, within_s=PATIENCE_S)  # type: ignore[misc]  # bound now
    await minder.close()
    bus.publish(LOOK_AGAIN)
    assert not minder._has_news


async def test_how_far_a_named_sink_is_is_written_down_now_and_then(
    background: Background, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(minding, "SAVE_S", 0.0)
    store = Shared()
    relay = Relay(Sink(), store, "p", name="audit")
    Minder(relay, background.spawn, MemoryBus(), is_wanted=lambda: True).wake()
    await until(lambda: relay.is_open, within_s=PATIENCE_S)
    happen(store, 3)
    await until(lambda: store._cursors == {("p", "audit"): 3}, within_s=PATIENCE_S)


async def test_a_named_sink_is_taken_over_from_a_process_that_is_gone(
    background: Background, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(minding, "TAKEOVER_S", 0.0)
    sink, store = Sink(), Shared()
    store.is_elsewhere = True
    relay = Relay(sink, store, "p", name="audit")
    minder = Minder(relay, background.spawn, MemoryBus(), is_wanted=lambda: True)
    minder.wake()
    await until(lambda: relay.is_open, within_s=PATIENCE_S)
    happen(store, 2)
    store.is_elsewhere = False
    await until(lambda: sink.told == [1, 2], within_s=PATIENCE_S)
    assert relay.is_ours


async def test_a_name_that_another_process_holds_is_asked_for_seldom(background: Background) -> None:
    now, asked = [0.0], []

    class Counting(Shared):
        async def open_cursor(self, project: str, sink: str | None) -> Cursor:
            asked.append(now[0])
            return await super().open_cursor(project, sink)

    store = Counting()
    store.is_elsewhere = True
    relay = Relay(Sink(), store, "p", name="audit")
    minder = Minder(relay, background.spawn, MemoryBus(), is_wanted=lambda: True, clock=lambda: now[0])
    await relay.open()
    await minder._follow_others()
    assert len(asked) == 1
    now[0] += 10
    await minder._follow_others()
    assert len(asked) == 2


async def test_a_store_that_is_away_is_asked_again(background: Background) -> None:
    sink, store = Sink(), Shared()
    store.is_away = True
    relay = Relay(sink, store, "p", name="audit")
    Minder(relay, background.spawn, MemoryBus(), is_wanted=lambda: True).wake()
    await until(lambda: relay.trouble == "away", within_s=PATIENCE_S)
    store.is_away = False
    await until(lambda: relay.is_open, within_s=PATIENCE_S)


@pytest.mark.parametrize("fails", [0, 1000])
async def test_a_sink_nobody_wants_any_more_is_let_go_of(background: Background, fails: int) -> None:
    sink, store, wanted = Sink(), MemoryStore(), [True]
    relay = Relay(sink, store, "p")
    minder = Minder(relay, background.spawn, MemoryBus(), is_wanted=lambda: bool(wanted))
    await relay.open()
    sink.fails = fails
    happen(store)
    relay.stir()
    wanted.clear()
    minder.wake()
    await until(lambda: relay.is_closed, within_s=PATIENCE_S)
    assert sink.told == ([] if fails else [1])
    await until(lambda: store._listening == {}, within_s=PATIENCE_S)


@pytest.mark.parametrize("problem", [StoreError("away"), TimeoutError()])
async def test_letting_go_ends_whatever_the_store_says(
    background: Background, caplog: pytest.LogCaptureFixture, problem: Exception
) -> None:
    class Away(MemoryStore):
        async def close_cursor(self, project: str, sink: str | None) -> None:
            raise problem

    relay = Relay(Sink(), Away(), "p")
    minder = Minder(relay, background.spawn, MemoryBus(), is_wanted=lambda: True)
    await relay.open()
    await minder.close()
    assert relay.is_closed
    assert "could not be noted" in caplog.text


async def test_what_is_left_untold_at_the_end_is_said(background: Background, caplog: pytest.LogCaptureFixture) -> None:
    sink, store = Sink(), MemoryStore()
    sink.fails = 1000
    relay = Relay(sink, store, "p")
    minder = Minder(relay, background.spawn, MemoryBus(), is_wanted=lambda: True)
    await relay.open()
    happen(store)
    relay.stir()
    await minder.close()
    assert "was not told of everything in project p" in caplog.text


def test_calls_may_wait_a_little_each_and_not_much_together() -> None:
    now = [0.0]
    clock: Callable[[], float] = lambda: now[0]  # noqa: E731
    allowance = Allowance(clock, most=1.0, share=0.1, free=0.2)
    assert allowance.left == 1.2
    allowance.spend(0.2)
    assert allowance.left == 1.2
    allowance.spend(2.2)
    assert allowance.left == 0.2
    now[0] += 15
    assert allowance.left == pytest.approx(0.7)
    now[0] += 1000
    assert allowance.left == 1.2
