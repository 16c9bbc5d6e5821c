from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from tests.postgres import ROLE, Cluster, needs_postgres

from toolgate.adapters.postgres import bus as postgres_bus
from toolgate.adapters.postgres.bus import MOST_PAYLOADS, PostgresBus, payloads_of
from toolgate.adapters.postgres.store import PostgresStore
from toolgate.kernel.call import Status
from toolgate.ports.bus import Hint
from toolgate.testing.conformance.rows import PROJECT, a_call, a_fact, commit, insert
from toolgate.testing.patience import until

Server = tuple[PostgresStore, PostgresBus, list[Hint]]
HINT = Hint(PROJECT, "c1", Status.APPROVED, "write")


@pytest.fixture
async def serve(postgres_url: str) -> AsyncIterator[Callable[[str], Server]]:
    opened: list[Server] = []

    def start(name: str) -> Server:
        store = PostgresStore(postgres_url, owner=name)
        bus = PostgresBus(store.open_news())
        heard: list[Hint] = []
        bus.subscribe(heard.append)
        opened.append((store, bus, heard))
        return opened[-1]

    yield start
    for store, bus, _ in opened:
        await asyncio.to_thread(bus.close)
        await store.close()


@needs_postgres
async def test_another_server_hears_a_hint_once(serve: Callable[[str], Server]) -> None:
    (_, bus, own), (_, _, others) = serve("a"), serve("b")
    bus.publish(HINT)
    assert own == [HINT]
    await until(lambda: others)
    bus.publish(HINT._replace(call_id="c2"))
    await until(lambda: len(others) == 2)
    assert others == [HINT, HINT._replace(call_id="c2")]


@needs_postgres
async def test_what_a_server_wrote_and_did_not_tell_is_found(
    serve: Callable[[str], Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_bus, "LOOK_EVERY_S", 0.05)
    (store, _, _), (_, _, others) = serve("a"), serve("b")
    await commit(store, insert(a_call(), events=(a_fact(), a_fact(None))))
    await until(lambda: others)
    assert others == [Hint(PROJECT, "c1", Status.APPROVED)]


@needs_postgres
async def test_a_listener_that_breaks_does_not_make_the_bus_deaf(
    serve: Callable[[str], Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_bus, "LOOK_EVERY_S", 0.05)
    (store, _, _), (_, bus, others) = serve("a"), serve("b")

    def breaks(_hint: Hint) -> None:
        raise RuntimeError("its event loop is closed")

    bus._listeners = (breaks, *bus._listeners)
    for name in ("c1", "c2"):
        await commit(store, insert(a_call(name), events=(a_fact(name),)))
        await until(lambda name=name: any(hint.call_id == name for hint in others))  # type: ignore[misc]


@needs_postgres
async def test_what_happens_while_nobody_listens_is_found_after_the_reconnect(
    serve: Callable[[str], Server], postgres_cluster: Cluster
) -> None:
    (store, bus, _), (_, _, others) = serve("a"), serve("b")
    await commit(store, insert(a_call(), events=(a_fact(),)))
    kill = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename='{ROLE}' AND query LIKE 'LISTEN%'"
    await postgres_cluster.as_admin(kill)
    await until(lambda: others)
    bus.publish(HINT._replace(call_id="c2"))
    await until(lambda: others[-1].call_id == "c2")


@needs_postgres
async def test_a_notification_that_is_not_understood_or_says_only_that_there_is_news_leads_to_a_look(
    serve: Callable[[str], Server], postgres_cluster: Cluster, postgres_url: str
) -> None:
    (store, _, _), (_, _, others) = serve("a"), serve("b")
    for number, payload in enumerate(("nonsense", '["a",null]')):
        await commit(store, insert(a_call(f"c{number}"), events=(a_fact(f"c{number}"),)))
        name = postgres_url.rpartition("/")[2]
        await postgres_cluster.as_admin(f"SELECT pg_notify('toolgate', '{payload}')", database=name)
        await until(lambda: others)
        assert others.pop().call_id == f"c{number}"


def test_hints_travel_in_pages_and_very_many_as_the_news_that_there_are_some() -> None:
    hints = [HINT._replace(call_id=f"c{number:04}" + "x" * 100) for number in range(200)]
    pages = payloads_of("me", hints)
    assert 1 < len(pages) <= MOST_PAYLOADS
    assert max(len(page.encode()) for page in pages) < 7900
    assert sum(page.count("APPROVED") for page in pages) == 200
    assert payloads_of("me", [HINT, HINT]) == payloads_of("me", [HINT])
    assert payloads_of("me", hints * 1 + [HINT._replace(call_id=str(n) * 500) for n in range(400)]) == ['["me",null]']
    assert payloads_of("me", [HINT._replace(project="p" * 9000)]) == ['["me",null]']
