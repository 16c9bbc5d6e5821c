"""How a project's events reach its sink: in order, at least once, from any loop, and never instead of the record."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Coroutine, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from toolgate.kernel.change import Change
from toolgate.pipeline import relay as relays
from toolgate.pipeline.background import Background
from toolgate.pipeline.relay import LOOK_S, Relay, as_it_is
from toolgate.testing.patience import PATIENCE_S


class Sink:
    def __init__(self, *, fails: int = 0, hangs: bool = False) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.loops: set[asyncio.AbstractEventLoop] = set()
        self.fails = fails
        self.hangs = hangs

    async def emit(self, *, type: str, data: dict[str, Any]) -> None:
        self.loops.add(asyncio.get_running_loop())
        if self.fails:
            self.fails -= 1
            raise OSError("down")
        if self.hangs:
            await asyncio.sleep(60)
        await asyncio.sleep(0)
        self.told.append((type, data))


@pytest.fixture
def background() -> Iterator[Background]:
    """The gate's own loop."""
    background = Background("toolgate-relay-test")
    yield background
    background.close()


def nowhere(coroutine: Coroutine[Any, Any, Any]) -> None:
    """A gate without a loop of its own: the loop at hand must do."""
    coroutine.close()


def change(*names: str, **data: Any) -> Change:
    events = tuple((name, "c", dict(data)) for name in names)
    return Change(project="p", at=datetime(2026, 1, 2, tzinfo=UTC), events=events)


async def test_events_are_passed_on_in_order_as_plain_copies() -> None:
    sink = Sink()
    relay = Relay(sink, nowhere)
    data = {"at": datetime(2026, 1, 1, tzinfo=UTC), "list": [1]}
    relay.take(change("a", "b", **data))
    data["list"].append(2)  # type: ignore[attr-defined]  # the caller's own
    assert await relay.flush()
    told = {"at": "2026-01-01T00:00:00Z", "list": [1], "timestamp": "2026-01-02T00:00:00Z"}
    assert sink.told == [("a", told), ("b", told)]


async def test_a_rendering_chooses_names_and_what_is_told() -> None:
    sink = Sink()
    relay = Relay(sink, nowhere, render=lambda name, data: None if name == "a" else (name.upper(), data))
    relay.take(change("a", "b"))
    assert await relay.flush()
    assert [name for name, _ in sink.told] == ["B"]
    assert as_it_is("x", {}) == ("x", {})


async def test_nobody_needs_to_ask_for_what_waits(background: Background) -> None:
    sink = Sink()
    Relay(sink, background.spawn).take(change("a"))
    async with asyncio.timeout(PATIENCE_S):
        while not sink.told:  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0)


async def test_what_a_sink_refuses_is_told_first_when_it_listens_again() -> None:
    sink = Sink(fails=2)
    relay = Relay(sink, nowhere)
    relay.take(change("a"))
    assert not await relay.flush()
    relay.take(change("b"))
    assert not await relay.flush()
    assert await relay.flush()
    assert [name for name, _ in sink.told] == ["a", "b"]


async def test_a_sink_that_never_returns_counts_as_failing() -> None:
    relay = Relay(Sink(hangs=True), nowhere, patience_s=0.01)
    relay.take(change("a"))
    assert not await relay.flush()


async def test_those_who_flush_together_take_turns() -> None:
    sink = Sink()
    relay = Relay(sink, nowhere)
    relay.take(change("a", "b", "c"))
    assert await asyncio.gather(*(relay.flush() for _ in range(5))) == [True] * 5
    assert [name for name, _ in sink.told] == ["a", "b", "c"]


async def test_the_next_in_turn_goes_on_where_one_was_cancelled() -> None:
    sink = Sink()
    relay = Relay(sink, nowhere)
    relay.take(change("a", "b"))
    first = asyncio.ensure_future(relay.flush())
    await asyncio.sleep(0)
    waiting = asyncio.ensure_future(relay.flush())
    leaving = asyncio.ensure_future(relay.flush())
    await asyncio.sleep(0)
    leaving.cancel()
    first.cancel()
    assert await waiting
    assert [name for name, _ in sink.told] == ["a", "b"]


async def test_a_sink_that_is_away_too_long_is_told_the_newest(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(relays, "SPOOL", 2)
    sink = Sink(fails=1)
    relay = Relay(sink, nowhere)
    relay.take(change("a", "b", "c"))
    assert "in the store only" in caplog.text
    assert not await relay.flush()
    assert await relay.flush()
    assert [name for name, _ in sink.told] == ["b", "c"]


async def test_a_change_made_elsewhere_is_told_on_the_loop_that_uses_the_sink(background: Background) -> None:
    sink = Sink()
    relay = Relay(sink, background.spawn)
    relay.take(change("a"))
    await relay.flush()

    async def elsewhere() -> None:
        relay.take(change("b"))

    await asyncio.to_thread(asyncio.run, elsewhere())
    async with asyncio.timeout(PATIENCE_S):
        while len(sink.told) < 2:  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0)
    assert sink.loops == {asyncio.get_running_loop()}


def test_a_sink_outlives_the_loop_that_used_it() -> None:
    sink = Sink()
    relay = Relay(sink, nowhere)

    async def use() -> None:
        relay.take(change("a"))
        await relay.flush()

    asyncio.run(use())
    asyncio.run(use())
    assert len(sink.told) == 2
    assert len(sink.loops) == 2


def test_a_loop_that_closes_just_now_leaves_it_to_the_gate() -> None:
    spawned: list[Coroutine[Any, Any, Any]] = []
    relay = Relay(Sink(), spawned.append)

    class Closing:
        def is_running(self) -> bool:
            return True

        def call_soon_threadsafe(self, *_what: object) -> None:
            raise RuntimeError("closed")

    relay._home = Closing()  # type: ignore[assignment]  # a loop in its last moment

    async def use() -> None:
        relay.take(change("a"))

    asyncio.run(use())
    assert len(spawned) == 1
    spawned[0].close()


def run_and_close(what: Coroutine[Any, Any, None]) -> None:
    """Use a loop and drop what still runs on it, as a host does that does not tidy up."""
    loop = asyncio.new_event_loop()
    loop.run_until_complete(what)
    loop.close()


async def nothing() -> None:
    """Let the loop turn a few times."""
    for _ in range(3):
        await asyncio.sleep(0)


@pytest.mark.parametrize("run", [asyncio.run, run_and_close], ids=["in order", "in disorder"])
@pytest.mark.parametrize("rest", [[], [nothing]], ids=["before it began", "in the middle"])
def test_what_an_ending_loop_leaves_is_passed_on_by_the_gate(
    background: Background, run: Callable[[Any], None], rest: list[Callable[[], Any]]
) -> None:
    told = threading.Event()
    home: list[asyncio.AbstractEventLoop] = []

    class Slow:
        """Takes longer than its first loop lives, and needs that loop to end well."""

        async def emit(self, *, type: str, data: dict[str, Any]) -> None:
            if asyncio.get_running_loop() is home[0]:
                try:
                    await asyncio.sleep(60)
                finally:
                    home[0].call_soon(list)  # raises where it is closed
            told.set()

    relay = Relay(Slow(), background.spawn)

    async def use() -> None:
        home.append(asyncio.get_running_loop())
        relay.take(change("a"))
        for one in rest:
            await one()

    run(use())
    assert told.wait(PATIENCE_S)
    assert asyncio.run(relay.flush())
    gc.collect()  # what was dropped without a word would be told here


def test_a_sink_that_failed_is_not_told_again_by_the_gate_at_once(background: Background) -> None:
    sink = Sink(fails=1)
    relay = Relay(sink, background.spawn)

    async def use() -> None:
        relay.take(change("a"))
        await nothing()

    asyncio.run(use())
    background.submit(asyncio.sleep(2 * LOOK_S)).result(PATIENCE_S)
    assert sink.told == []
    assert asyncio.run(relay.flush())


def test_many_threads_use_one_sink() -> None:
    told: list[int] = []

    class Quick:
        def try_emit(self, *, type: str, data: dict[str, Any]) -> None:
            told.append(data["number"])

        def emit(self, *, type: str, data: dict[str, Any]) -> None:
            raise AssertionError("not this one")

    relay = Relay(Quick(), nowhere)

    async def use(number: int) -> None:
        relay.take(change("a", number=number))
        assert await relay.flush()

    work: list[Callable[[], None]] = [lambda number=number: asyncio.run(use(number)) for number in range(8)]  # type: ignore[misc]  # bound now
    threads = [threading.Thread(target=one) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(told) == list(range(8))


async def test_a_sink_that_raises_a_cancellation_of_its_own_is_a_failing_sink() -> None:
    class Confused(Sink):
        async def emit(self, *, type: str, data: dict[str, Any]) -> None:
            raise asyncio.CancelledError

    relay = Relay(Confused(), nowhere)
    relay.take(change("a"))
    assert not await relay.flush()


async def test_nobody_waits_for_ever_for_a_turn_that_never_ends() -> None:
    relay = Relay(Sink(), nowhere, patience_s=0.01)
    assert relay._take_turn() is None  # a loop that was left standing
    relay.take(change("a"))
    assert not await relay.flush()
    relay._end_turn()
    assert await relay.flush()
