"""How a sink is told out of the record: in order, at least once, from any loop, and a gap as a gap."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Any

import pytest

from toolgate.adapters.memory.bus import MemoryBus
from toolgate.adapters.memory.store import EVENTS_PER_CALL, MemoryStore
from toolgate.errors import StoreError, UsageError
from toolgate.kernel.change import Change
from toolgate.kernel.event import Draft, Event
from toolgate.pipeline.background import Background
from toolgate.pipeline.sinks import relay as relays
from toolgate.pipeline.sinks.minder import Minder
from toolgate.pipeline.sinks.relay import Relay, as_it_is, check_name
from toolgate.ports.sink import Cursor
from toolgate.testing.patience import until, until_sync

AT = datetime(2026, 1, 2, tzinfo=UTC)


class Sink:
    def __init__(self, *, fails: int = 0) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.loops: set[asyncio.AbstractEventLoop] = set()
        self.fails = fails

    async def emit(self, *, type: str, data: dict[str, Any]) -> None:
        self.loops.add(asyncio.get_running_loop())
        if self.fails:
            self.fails -= 1
            raise OSError("down")
        await asyncio.sleep(0)
        self.told.append((type, data))

    @property
    def numbers(self) -> list[int]:
        return [data["seq"] for _, data in self.told]


class Stuck(Sink):
    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()

    async def emit(self, *, type: str, data: dict[str, Any]) -> None:
        await self.go.wait()
        await super().emit(type=type, data=data)


@pytest.fixture
def background() -> Iterator[Background]:
    """The gate's own loop."""
    background = Background("toolgate-relay-test")
    yield background
    background.close()


def happen(store: MemoryStore, relay: Relay, count: int = 1, **data: Any) -> None:
    """What the driver does: write, then stir."""
    events: tuple[Draft, ...] = tuple(("tool.progress", "c", {}, dict(data)) for _ in range(count))
    store.commit(Change(project="p", at=AT, events=events))
    relay.stir()


def looked_after(relay: Relay, background: Background, **options: Any) -> Minder:
    return Minder(relay, background.spawn, MemoryBus(), is_wanted=lambda: True, **options)


async def opened(sink: Any, store: Any, **options: Any) -> Relay:
    relay = Relay(sink, store, "p", **options)
    await relay.open()
    return relay


async def test_events_are_told_in_order_with_their_time_and_number() -> None:
    sink, store = Sink(), MemoryStore()
    relay = await opened(sink, store)
    happen(store, relay, 2, at="noon")
    assert await relay.moment()
    told = {"at": "noon", "timestamp": "2026-01-02T00:00:00Z"}
    assert sink.told == [("tool.progress", {**told, "seq": 1}), ("tool.progress", {**told, "seq": 2})]


async def test_a_rendering_chooses_names_and_what_is_told() -> None:
    sink, store = Sink(), MemoryStore()
    relay = await opened(sink, store, render=lambda name, data: None if data["seq"] == 2 else (name.upper(), data))
    happen(store, relay, 2)
    assert await relay.moment()
    assert [name for name, _ in sink.told] == ["TOOL.PROGRESS"]
    assert relay.position == 2
    assert as_it_is("x", {}) == ("x", {})


async def test_a_sink_begins_with_what_happens_after_it_came() -> None:
    sink, store = Sink(), MemoryStore()
    store.commit(Change(project="p", at=AT, events=(("tool.progress", "c", {}, None),)))
    relay = await opened(sink, store)
    happen(store, relay)
    assert await relay.moment()
    assert sink.numbers == [2]


async def test_nobody_needs_to_ask_for_what_waits() -> None:
    sink, store = Sink(), MemoryStore()
    relay = await opened(sink, store)
    happen(store, relay)
    await until(lambda: sink.told)


async def test_what_a_sink_refuses_is_told_first_when_it_listens_again(caplog: pytest.LogCaptureFixture) -> None:
    sink, store, counted = Sink(fails=2), MemoryStore(), []
    relay = await opened(sink, store, tally=lambda *what: counted.append(what))
    happen(store, relay)
    assert not await relay.moment()
    happen(store, relay)
    assert not await relay.moment()
    assert await relay.moment()
    assert sink.numbers == [1, 2]
    assert counted == [("", "failed", 1)] * 2
    assert caplog.text.count("the event sink failed with OSError on event 1") == 1
    assert await relay.moment()


async def test_a_sink_that_keeps_failing_is_left_alone_but_for_who_insists() -> None:
    now = [0.0]
    sink, store = Sink(fails=7), MemoryStore()
    relay = await opened(sink, store, clock=lambda: now[0])
    happen(store, relay)
    for _ in range(10):
        await relay.moment()
    assert sink.fails == 1
    happen(store, relay)  # leaves it alone, too
    await asyncio.sleep(0)
    assert sink.fails == 1
    assert not await relay.insist()
    assert relay.trouble == "failed with OSError"
    now[0] += 60
    assert await relay.moment()
    assert sink.numbers == [1, 2]


async def test_who_waits_in_vain_is_the_last_who_waits_until_the_sink_has_caught_up() -> None:
    sink, store = Stuck(), MemoryStore()
    relay = await opened(sink, store)
    happen(store, relay)
    assert not await relay.insist(0.01)
    assert relay.trouble == "did not answer within 0.01 s"
    happen(store, relay)
    assert not await relay.moment()
    sink.go.set()
    await until(lambda: relay.is_settled)
    happen(store, relay)
    assert await relay.moment()
    assert sink.numbers == [1, 2, 3]


async def test_those_who_wait_together_hear_of_it_together() -> None:
    sink, store = Sink(), MemoryStore()
    relay = await opened(sink, store)
    happen(store, relay, 3)
    assert await asyncio.gather(*(relay.moment() for _ in range(5))) == [True] * 5
    assert sink.numbers == [1, 2, 3]


async def test_those_who_wait_together_for_what_fails_are_let_go_together() -> None:
    class Broken(Sink):
        async def emit(self, *, type: str, data: dict[str, Any]) -> None:
            await asyncio.sleep(0)
            raise OSError("down")

    store = MemoryStore()
    relay = await opened(Broken(), store)
    happen(store, relay)
    assert not any(await asyncio.gather(*(relay.insist() for _ in range(3))))


async def test_one_who_leaves_leaves_the_telling_alone() -> None:
    sink, store = Stuck(), MemoryStore()
    relay = await opened(sink, store)
    happen(store, relay)
    leaving = asyncio.ensure_future(relay.insist())
    await until(lambda: relay.is_told_now)
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    sink.go.set()
    assert await relay.insist()
    assert sink.numbers == [1]


async def test_what_was_removed_before_it_was_told_is_told_as_a_gap(caplog: pytest.LogCaptureFixture) -> None:
    sink, counted = Sink(fails=1), []
    store = MemoryStore(retain=1)
    relay = await opened(sink, store, tally=lambda *what: counted.append(what))
    happen(store, relay)
    assert not await relay.moment()
    for _ in range(EVENTS_PER_CALL + 2):
        happen(store, relay)
    assert await relay.moment()
    name, data = sink.told[0]
    assert (name, data["from"], data["to"], data["count"]) == ("sink.gap", 1, 3, 3)
    assert (data["project"], data["sink"], data["seq"]) == ("p", None, 3)
    assert sink.numbers[1:] == [4, 5, 6, 7, 8, 9]
    assert counted[1:] == [("", "missed", 3)]
    assert "missed 3 events of project p" in caplog.text


@pytest.mark.parametrize("raised", [asyncio.CancelledError, SystemExit])
async def test_a_sink_that_raises_a_cancellation_or_an_exit_is_a_failing_sink(raised: type[BaseException]) -> None:
    class Confused(Sink):
        async def emit(self, *, type: str, data: dict[str, Any]) -> None:
            raise raised

    store = MemoryStore()
    relay = await opened(Confused(), store)
    happen(store, relay)
    assert not await relay.insist()
    assert relay.trouble == f"failed with {raised.__name__}"


async def test_a_store_that_cannot_be_read_is_read_again() -> None:
    class Away(MemoryStore):
        is_away = True

        async def events(self, project: str, **options: Any) -> list[Event]:
            if self.is_away:
                raise StoreError("The database is away.")
            return await super().events(project, **options)

    sink, store = Sink(), Away()
    relay = await opened(sink, store)
    happen(store, relay)
    assert not await relay.insist()
    assert relay.trouble == "The database is away."
    store.is_away = False
    assert await relay.insist()
    assert sink.numbers == [1]


async def test_a_long_backlog_is_read_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relays, "BATCH", 3)
    sink, store = Sink(), MemoryStore()
    relay = await opened(sink, store)
    happen(store, relay, 9)
    assert await relay.insist()
    assert sink.numbers == list(range(1, 10))


async def test_a_change_made_elsewhere_is_told_on_the_loop_that_uses_the_sink() -> None:
    sink, store = Sink(), MemoryStore()
    relay = await opened(sink, store)
    happen(store, relay)
    await relay.moment()

    async def elsewhere() -> None:
        happen(store, relay)

    await asyncio.to_thread(asyncio.run, elsewhere())
    await until(lambda: len(sink.told) == 2)
    assert sink.loops == {asyncio.get_running_loop()}


def test_a_sink_outlives_the_loop_that_used_it() -> None:
    sink, store = Sink(), MemoryStore()
    relay = Relay(sink, store, "p")

    async def use() -> None:
        await relay.open()
        happen(store, relay)
        await relay.moment()

    asyncio.run(use())
    asyncio.run(use())
    assert sink.numbers == [1, 2]
    assert len(sink.loops) == 2


def test_a_loop_that_closes_just_now_leaves_it_to_who_looks_after_it() -> None:
    store, minded = MemoryStore(), []
    relay = Relay(Sink(), store, "p")
    relay.mind = lambda: minded.append(1)

    class Closing:
        def is_running(self) -> bool:
            return True

        def call_soon_threadsafe(self, *_what: object) -> None:
            raise RuntimeError("closed")

    relay._home = Closing()  # type: ignore[assignment]  # a loop in its last moment

    async def use() -> None:
        await relay.open()
        happen(store, relay)

    asyncio.run(use())
    assert minded == [1]


def run_and_close(what: Coroutine[Any, Any, None]) -> None:
    """Use a loop and drop what still runs on it, as a host does that does not tidy up."""
    loop = asyncio.new_event_loop()
    loop.run_until_complete(what)
    loop.close()


@pytest.mark.parametrize("run", [asyncio.run, run_and_close], ids=["in order", "in disorder"])
def test_what_an_ending_loop_leaves_is_told_on_the_gate_s_own(
    background: Background, run: Callable[[Any], None]
) -> None:
    told = threading.Event()
    home: list[asyncio.AbstractEventLoop] = []

    class Slow:
        """Takes longer than its first loop lives, and needs that loop to end well."""

        async def emit(self, *, type: str, data: dict[str, Any]) -> None:
            if asyncio.get_running_loop() is home[0]:
                try:
                    await asyncio.sleep(600)
                finally:
                    home[0].call_soon(list)  # raises where it is closed
            told.set()

    store = MemoryStore()
    relay = Relay(Slow(), store, "p")
    looked_after(relay, background)

    async def use() -> None:
        home.append(asyncio.get_running_loop())
        await relay.open()
        happen(store, relay)
        await until(lambda: relay.task is not None)

    run(use())
    assert told.wait(10)
    until_sync(lambda: relay.is_settled)


def test_many_threads_use_one_sink(background: Background) -> None:
    told: list[int] = []

    class Quick:
        def try_emit(self, *, type: str, data: dict[str, Any]) -> None:
            told.append(data["seq"])

        def emit(self, *, type: str, data: dict[str, Any]) -> None:
            raise AssertionError("not this one")

    store = MemoryStore()
    relay = Relay(Quick(), store, "p")
    looked_after(relay, background)

    async def use() -> None:
        await relay.open()
        happen(store, relay)
        assert await relay.insist(60)

    threads = [threading.Thread(target=lambda: asyncio.run(use())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asyncio.run(relay.close())
    assert told == list(range(1, 9))


async def test_what_is_closed_is_told_nothing_more() -> None:
    sink, store = Stuck(), MemoryStore()
    relay = await opened(sink, store)
    happen(store, relay, 3)
    await until(lambda: relay.task is not None)
    await relay.close()
    await relay.close()
    await until(lambda: not relay.is_told_now)
    relay.start()
    sink.go.set()
    assert not await relay.insist(0.01)
    await Relay(sink, store, "p").close()  # one that was never opened
    assert sink.told == []
    assert store._listening == {}


async def test_a_thread_that_was_given_up_on_tells_nothing_twice_and_nothing_after_the_end(
    background: Background,
) -> None:
    store, go, given, told = MemoryStore(), threading.Event(), [], []

    class Blocking:
        def emit(self, *, type: str, data: dict[str, Any]) -> None:
            given.append(data["seq"])
            if data["seq"] in (1, 4):
                go.wait()
                go.clear()
            told.append(data["seq"])

    relay = Relay(Blocking(), store, "p")
    looked_after(relay, background, patience_s=0.01)
    await relay.open()
    happen(store, relay, 3)
    await until(lambda: relay.trouble == "did not answer in time")
    await until(lambda: relay.is_told_now, within_s=60)  # the second try waits behind the first
    go.set()
    await until(lambda: relay.is_settled, within_s=60)
    assert told == [1, 2, 3]
    happen(store, relay, 2)
    await until(lambda: given[-1] == 4)
    await relay.close()
    go.set()
    await until(lambda: told[-1] == 4)
    await until(lambda: not relay._teller._thread._is_alive)
    assert told == [1, 2, 3, 4]


class ReadByOthers(MemoryStore):
    """A store where another process holds the sink's name, and tells it or not."""

    is_shared = True

    def __init__(self, *cursors: Cursor) -> None:
        super().__init__()
        self.cursors = list(cursors)
        self.moves: list[int] = []

    async def open_cursor(self, project: str, sink: str | None) -> Cursor:
        return self.cursors.pop(0) if len(self.cursors) > 1 else self.cursors[0]

    async def move_cursor(self, project: str, sink: str, seq: int) -> bool:
        self.moves.append(seq)
        return False

    async def close_cursor(self, project: str, sink: str | None) -> None: ...


async def test_what_another_process_tells_is_waited_for_where_it_is_required() -> None:
    sink = Sink()
    store = ReadByOthers(Cursor(0, 0, is_ours=False), Cursor(0, 1, is_ours=False), Cursor(1, 1, is_ours=False))
    relay = await opened(sink, store, name="audit", required=True)
    happen(store, relay)
    assert not await relay.moment()
    assert await relay.insist()
    assert sink.told == []


async def test_a_process_that_does_not_tell_the_sink_is_not_waited_for_for_ever() -> None:
    store = ReadByOthers(Cursor(0, 1, is_ours=False))
    relay = await opened(Sink(), store, name="audit", required=True)
    happen(store, relay)
    assert not await relay.insist(0.01)
    assert relay.trouble == "was not told by the process that tells it within 0.01 s"


async def test_who_insists_takes_the_place_of_a_process_that_died() -> None:
    sink = Sink()
    store = ReadByOthers(Cursor(0, 0, is_ours=False), Cursor(0, 1, is_ours=False), Cursor(0, 1, is_ours=True))
    relay = await opened(sink, store, name="audit")
    happen(store, relay)
    assert await relay.insist()
    assert sink.numbers == [1]
    await relay.save()
    assert (store.moves, relay.is_ours) == ([1], False)
    await relay.save()  # it is somebody else's now
    assert store.moves == [1]


async def test_whoever_asks_for_a_named_sink_first_opens_it_and_tells_what_it_missed() -> None:
    sink, store = Sink(), MemoryStore()
    await store.open_cursor("p", "audit")
    store.commit(Change(project="p", at=AT, events=(("tool.progress", "c", {}, None),)))
    relay = Relay(sink, store, "p", name="audit")
    assert await relay.insist()
    assert sink.numbers == [1]
    assert store._cursors == {("p", "audit"): 1}
    assert await relay.insist()


async def test_it_is_opened_once_however_many_ask() -> None:
    store = MemoryStore()
    relay = Relay(Sink(), store, "p")
    assert relay._take_turn() is None  # somebody opens it just now
    opening = asyncio.ensure_future(relay.open())
    await asyncio.sleep(0)
    relay.go_on(await store.open_cursor("p", None))
    relay._end_turn()
    await opening
    assert store._listening == {"p": 1}


async def test_nothing_runs_where_nobody_finds_out_in_time_where_to_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relays, "OPENING_S", 0.01)
    relay = Relay(Sink(), MemoryStore(), "p")
    assert relay._take_turn() is None  # on a loop that was left standing
    with pytest.raises(StoreError, match="nothing runs"):
        await relay.open()


def test_a_turn_that_was_ended_is_not_ended_again() -> None:
    relay = Relay(Sink(), MemoryStore(), "p")
    relay._end_turn()
    assert relay._take_turn() is None
    mine = relay._turn
    relay._end_turn(Future())
    assert relay._turn is mine


@pytest.mark.parametrize("wrong", ["", "x" * 129, "a\nb", 7])
def test_a_name_the_store_cannot_keep_is_refused(wrong: Any) -> None:
    with pytest.raises(UsageError, match="1 to 128"):
        check_name(wrong, "shop")


def test_a_name_in_a_private_project_is_refused() -> None:
    with pytest.raises(UsageError, match="private"):
        check_name("audit", "private:x")
    assert check_name("audit", "shop") == "audit"
    assert check_name(None, "private:x") is None
