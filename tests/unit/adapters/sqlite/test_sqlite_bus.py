"""The bus of a file: what this process publishes is heard at once, what others write soon, each once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolgate.adapters.sqlite.bus import SqliteBus
from toolgate.adapters.sqlite.store import SqliteStore
from toolgate.errors import StoreError
from toolgate.kernel.call import Status
from toolgate.ports.bus import Hint
from toolgate.testing.conformance.rows import a_call, a_fact, commit, insert, step
from toolgate.testing.patience import PATIENCE_S, until_sync


class Paper:
    """News that a test writes."""

    def __init__(self) -> None:
        self.version = 1
        self.told: list[tuple[str, str, str]] = []
        self.trouble = 0
        self.closed = threading.Event()

    def data_version(self) -> int:
        if self.trouble:
            self.trouble -= 1
            raise StoreError("away")
        return self.version

    def position(self) -> int:
        return 0

    def news(self, position: int) -> tuple[int, list[tuple[str, str, str]]]:
        return len(self.told), self.told[position:]

    def close(self) -> None:
        self.closed.set()

    def print(self, *told: tuple[str, str, str]) -> None:
        self.told += told
        self.version += 1


@pytest.fixture
def paper() -> Paper:
    return Paper()


@pytest.fixture
def bus(paper: Paper) -> Iterator[SqliteBus]:
    bus = SqliteBus(lambda: paper)
    yield bus
    bus.close()


def test_what_others_write_is_heard(bus: SqliteBus, paper: Paper) -> None:
    heard: list[Hint] = []
    bus.subscribe(heard.append)
    paper.print(("p", "c1", "APPROVED"))
    until_sync(lambda: heard)
    assert heard == [Hint("p", "c1", Status.APPROVED)]


def test_own_hints_are_heard_at_once_and_not_again(bus: SqliteBus, paper: Paper) -> None:
    heard: list[Hint] = []
    bus.subscribe(heard.append)
    bus.publish(Hint("p", "mine", Status.APPROVED))
    assert heard == [Hint("p", "mine", Status.APPROVED)]
    paper.print(("p", "mine", "APPROVED"), ("p", "theirs", "APPROVED"))
    until_sync(lambda: len(heard) > 1)
    assert heard[1:] == [Hint("p", "theirs", Status.APPROVED)]


def test_what_another_process_did_to_an_own_call_is_heard(bus: SqliteBus, paper: Paper) -> None:
    heard: list[Hint] = []
    bus.subscribe(heard.append)
    bus.publish(Hint("p", "c1", Status.AWAITING_APPROVAL))
    paper.print(("p", "c1", "AWAITING_APPROVAL"))
    paper.print(("p", "c1", "APPROVED"))
    until_sync(lambda: heard[-1].status is Status.APPROVED)


def test_a_file_that_cannot_be_read_for_a_while_is_looked_at_again(
    bus: SqliteBus, paper: Paper, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Hint] = []
    paper.trouble = 3
    bus.subscribe(heard.append)
    paper.print(("p", "c1", "APPROVED"))
    until_sync(lambda: heard)
    assert "cannot be watched just now" in caplog.text


def test_closing_ends_the_watch(bus: SqliteBus, paper: Paper) -> None:
    heard: list[Hint] = []
    bus.subscribe(heard.append)
    bus.close()
    assert paper.closed.is_set()
    paper.print(("p", "c1", "APPROVED"))
    bus.publish(Hint("p", "c1", Status.APPROVED))
    assert heard == []
    bus.close()


def test_nobody_is_watched_before_somebody_listens(paper: Paper) -> None:
    bus = SqliteBus(lambda: pytest.fail("nobody listens"))
    bus.publish(Hint("p", "c1", Status.APPROVED))
    bus.close()


def test_a_listener_may_close_the_bus(bus: SqliteBus, paper: Paper) -> None:
    bus.subscribe(lambda _hint: bus.close())
    paper.print(("p", "c1", "APPROVED"))
    assert paper.closed.wait(PATIENCE_S)


def test_listeners_that_come_and_go_on_many_threads_are_not_lost(bus: SqliteBus) -> None:
    heard: list[int] = []

    def come(number: int) -> None:
        for _ in range(200):
            bus.subscribe(lambda _hint: None)()
        bus.subscribe(lambda _hint: heard.append(number))

    threads = [threading.Thread(target=come, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    bus.publish(Hint("p", "c1", Status.APPROVED))
    assert sorted(heard) == list(range(8))


def test_the_writes_of_another_store_on_the_same_file_are_news(database: Path) -> None:
    async def write() -> None:
        store = SqliteStore(database, owner="other")
        call = a_call(status=Status.AWAITING_APPROVAL)
        await commit(store, insert(call, events=(a_fact(),)))
        await commit(store, step(call, Status.APPROVED, events=(a_fact(),)))
        await store.close()

    mine = SqliteStore(database, owner="mine")
    bus, heard = SqliteBus(mine.open_news), list[Hint]()
    bus.subscribe(heard.append)
    asyncio.run(write())
    until_sync(lambda: heard and heard[-1] == Hint("default", "c1", Status.APPROVED))
    bus.close()
    asyncio.run(mine.close())
