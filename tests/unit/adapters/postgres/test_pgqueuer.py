"""Orders through PgQueuer on a real PostgreSQL: delivered to one worker, again after a death, and past an outage."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import asyncpg
import pytest
from pgqueuer.adapters.persistence.queries import Queries
from tests.postgres import Cluster

from toolgate.adapters.postgres import dispatcher as pgqueuer
from toolgate.adapters.postgres.dispatcher import PgQueuerDispatcher, upgrade
from toolgate.ports.dispatcher import Order
from toolgate.testing.patience import PATIENCE_S, until

Make = Callable[[], PgQueuerDispatcher]


@pytest.fixture
async def make(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Make]:
    monkeypatch.setattr(pgqueuer, "LOOK_EVERY_S", 0.2)
    monkeypatch.setattr(pgqueuer, "REDELIVER_AFTER_S", PATIENCE_S / 2)  # no confirmation is that slow
    opened: list[PgQueuerDispatcher] = []

    def dispatcher() -> PgQueuerDispatcher:
        opened.append(PgQueuerDispatcher(postgres_url))
        return opened[-1]

    yield dispatcher
    for one in opened:
        await one.close()


def order(number: int, queue: str = "default") -> Order:
    return Order("p", f"c{number}", queue)


async def ended(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def test_every_order_of_its_queues_goes_to_one_worker(make: Make) -> None:
    taken: list[tuple[str, Order]] = []

    def taker(name: str) -> Callable[[Order], Any]:
        async def take(one: Order) -> None:
            taken.append((name, one))

        return take

    sender = make()
    for number in range(20):
        sender.send(order(number))
    sender.send(order(99, "other"))
    workers = [
        asyncio.ensure_future(make().deliver(["default"], taker(name), concurrency=3)) for name in ("ann", "bob")
    ]
    await until(lambda: len(taken) >= 20)
    assert sorted(one.call_id for _, one in taken) == sorted(f"c{number}" for number in range(20))
    await ended(*workers)


async def test_an_order_that_is_sent_twice_while_it_waits_is_one(make: Make) -> None:
    taken: list[Order] = []
    sender = make()
    sender.send(order(1))
    sender.send(order(1))
    await until(lambda: not sender._unsent)
    sender.send(order(1))
    sender.send(order(2))

    async def take(one: Order) -> None:
        taken.append(one)

    worker = asyncio.ensure_future(make().deliver(["default"], take, concurrency=1))
    await until(lambda: {order(1), order(2)} <= {*taken})
    assert taken.count(order(1)) == 1
    sender.send(order(1))  # it was taken: this is a new one
    await until(lambda: taken.count(order(1)) == 2)
    await ended(worker)


async def test_no_more_at_a_time_than_wanted_and_a_stop_waits_for_what_runs(make: Make) -> None:
    running, most, release, done = 0, 0, asyncio.Event(), list[Order]()

    async def take(one: Order) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await release.wait()
        running -= 1
        done.append(one)

    sender = make()
    for number in range(6):
        sender.send(order(number))
    worker = asyncio.ensure_future(make().deliver(["default"], take, concurrency=2))
    await until(lambda: running == 2)
    release.set()
    await until(lambda: len(done) == 6)
    assert most == 2
    release.clear()
    sender.send(order(9))
    await until(lambda: running == 1)
    worker.cancel()
    await asyncio.sleep(0)
    assert not worker.done()
    release.set()
    await asyncio.wait({worker})
    assert done[-1] == order(9)


async def test_an_order_that_nobody_confirmed_goes_to_another(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pgqueuer, "REDELIVER_AFTER_S", 0.5)
    taken: list[str] = []
    died = asyncio.Event()

    async def dying(_one: Order) -> None:
        taken.append("dying")

    async def heir(_one: Order) -> None:
        taken.append("heir")

    log_jobs = Queries.log_jobs

    async def never(*_given: Any, **_more: Any) -> None:
        died.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(Queries, "log_jobs", never)
    first = asyncio.ensure_future(make().deliver(["default"], dying, concurrency=1))
    make().send(order(1))
    await died.wait()
    await ended(first)
    monkeypatch.setattr(Queries, "log_jobs", log_jobs)
    second = asyncio.ensure_future(make().deliver(["default"], heir, concurrency=1))
    await until(lambda: "heir" in taken)
    assert taken == ["dying", "heir"]
    await ended(second)


async def test_no_order_of_an_earlier_test_waits_in_an_emptied_database(
    make: Make, postgres_cluster: Cluster, postgres_url: str
) -> None:
    async def waiting() -> int:
        name = postgres_url.rpartition("/")[2]
        return len(await postgres_cluster.as_admin("SELECT id FROM toolgate_pgqueuer", database=name))

    await upgrade(postgres_url)
    sender = make()
    sender.send(order(1))
    await until(waiting)
    await sender.close()
    await asyncio.to_thread(postgres_cluster.emptied)
    assert await waiting() == 0


async def test_a_broken_connection_is_made_again_on_both_sides(
    make: Make, postgres_cluster: Cluster, postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    taken: list[Order] = []

    async def take(one: Order) -> None:
        taken.append(one)

    sender = make()
    worker = asyncio.ensure_future(make().deliver(["default"], take, concurrency=1))
    sender.send(order(1))
    await until(lambda: taken)
    name = postgres_url.rpartition("/")[2]
    await postgres_cluster.as_admin(
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname='{name}' AND pid <> pg_backend_pid()"
    )
    sender.send(order(2))
    await until(lambda: order(2) in taken)
    assert "trying again" in caplog.text
    await ended(worker)


async def test_an_order_beyond_what_is_kept_is_left_to_the_sweeper(
    make: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(pgqueuer, "MOST_UNSENT", 0)
    make().send(order(1))
    assert "is sent later" in caplog.text


async def test_a_closed_dispatcher_sends_nothing(make: Make) -> None:
    dispatcher = make()
    await dispatcher.close()
    dispatcher.send(order(1))
    assert dispatcher._thread is None


async def test_the_tables_are_made_once_and_upgraded_after(postgres_url: str) -> None:
    connection = await asyncpg.connect(postgres_url)
    for kind, name in (("TABLE", "toolgate_pgqueuer"), ("TABLE", "toolgate_pgqueuer_log")):
        await connection.execute(f"DROP {kind} IF EXISTS {name} CASCADE")
    await connection.execute(
        "DROP TABLE IF EXISTS toolgate_pgqueuer_statistics, toolgate_pgqueuer_schedules CASCADE;"
        "DROP TYPE IF EXISTS toolgate_pgqueuer_status CASCADE;"
        "DROP FUNCTION IF EXISTS toolgate_fn_pgqueuer_changed CASCADE"
    )
    assert await upgrade(postgres_url)
    await upgrade(postgres_url)
    kept = await connection.fetchval("SELECT relpersistence FROM pg_class WHERE relname='toolgate_pgqueuer'")
    assert kept == b"u"
    await connection.close()
