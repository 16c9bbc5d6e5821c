"""PostgreSQL goes away, comes back, or cuts a connection at the worst moment: nothing is lost or done twice."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

import asyncpg
import pytest
from tests.faults.cut_proxy import proxied
from tests.postgres import ROLE, Cluster, Pooler, needs_pgbouncer, needs_postgres

import toolgate
from toolgate.adapters.postgres import read as postgres_read
from toolgate.adapters.postgres import upkeep as postgres_upkeep
from toolgate.adapters.postgres import write as postgres_write
from toolgate.adapters.postgres.store import PostgresStore
from toolgate.errors import ConflictError, StoreError
from toolgate.kernel.call import Status
from toolgate.kernel.event import verify
from toolgate.ports.dispatcher import Order
from toolgate.testing.conformance.rows import PROJECT, a_call, a_fact, commit, insert, step
from toolgate.testing.patience import PATIENCE_S, until

pytestmark = needs_postgres
WRITERS, EACH = 8, 6


def database_of(url: str) -> str:
    return url.rpartition("/")[2]


async def write_calls(store: PostgresStore, name: str) -> None:
    async def one(writer: int) -> None:
        for number in range(EACH):
            call = a_call(f"{name}-{writer}-{number}")
            await commit(store, insert(call, events=(a_fact(call.id, part=1),)))
            await commit(store, step(call, Status.EXECUTING, events=(a_fact(call.id, part=2),)))

    await asyncio.gather(*(one(writer) for writer in range(WRITERS)))


async def assert_whole(store: PostgresStore, names: list[str]) -> None:
    events = await store.events(PROJECT, limit=10_000)
    assert verify(events) == len(names) * WRITERS * EACH * 2
    told = [(event.call_id, event.data["part"]) for event in events]
    assert len(set(told)) == len(told)


async def test_two_servers_write_one_project_while_their_connections_are_killed(
    postgres_url: str, postgres_cluster: Cluster
) -> None:
    stores = [PostgresStore(postgres_url, owner=name) for name in ("a", "b")]
    writing = asyncio.gather(*(write_calls(store, store.owner) for store in stores))
    kill = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename='{ROLE}' AND query LIKE '%tool_exec%'"
    while not writing.done():
        await postgres_cluster.as_admin(kill)
        await asyncio.sleep(0.02)
    await writing
    await assert_whole(stores[0], ["a", "b"])
    for store in stores:
        await store.close()


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGQUIT])
async def test_a_restart_in_the_middle_is_waited_for(
    postgres_url: str, postgres_cluster: Cluster, sign: signal.Signals
) -> None:
    store = PostgresStore(postgres_url, owner="a")
    await commit(store, insert(a_call("first")))
    writing = asyncio.create_task(write_calls(store, "a"))
    await until(lambda: store.events(PROJECT, limit=1))
    await asyncio.to_thread(postgres_cluster.stop, sign)
    await asyncio.to_thread(postgres_cluster.start)
    await writing
    await assert_whole(store, ["a"])
    await store.close()


async def test_a_database_that_stays_away_refuses_and_then_serves_again(
    postgres_url: str, postgres_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_write, "PATIENCE_S", 0.2)
    store = PostgresStore(postgres_url, owner="a")
    await asyncio.to_thread(postgres_cluster.stop)
    try:
        with pytest.raises(StoreError, match="nothing was written and nothing runs"):
            await commit(store, insert(a_call()))
        with pytest.raises(StoreError, match="cannot be reached"):
            await store.call(PROJECT, "c1")
    finally:
        await asyncio.to_thread(postgres_cluster.start)
    await commit(store, insert(a_call()))
    assert await store.call(PROJECT, "c1") == a_call()
    await store.close()


@pytest.mark.parametrize("before", [True, False])
async def test_a_commit_that_is_not_answered_is_looked_up_and_written_once(
    postgres_url: str, postgres_cluster: Cluster, before: bool
) -> None:
    with proxied(postgres_cluster.port) as proxy:
        url = postgres_cluster.url(database_of(postgres_url), port=proxy.port)
        store = PostgresStore(url, owner="a")
        proxy.before, proxy.cuts = before, 1
        await commit(store, insert(a_call(), events=(a_fact(),)))
        assert proxy.cuts == 0
        assert [event.seq for event in await store.events(PROJECT)] == [1]
        with pytest.raises(ConflictError):
            await commit(store, insert(a_call()))
        await store.close()


async def test_a_claim_whose_answer_was_lost_still_lets_one_through(
    postgres_url: str, postgres_cluster: Cluster
) -> None:
    with proxied(postgres_cluster.port) as proxy:
        cut = PostgresStore(postgres_cluster.url(database_of(postgres_url), port=proxy.port), owner="a")
        plain = PostgresStore(postgres_url, owner="b")
        call = a_call()
        await commit(plain, insert(call))
        proxy.cuts = 1
        claims = [commit(store, step(call, Status.EXECUTING, changes={"owner": store.owner})) for store in (cut, plain)]
        outcomes = await asyncio.gather(*claims, return_exceptions=True)
        standing = await plain.call(PROJECT, "c1")
        assert standing is not None
        won = [store.owner for store, outcome in zip((cut, plain), outcomes, strict=True) if outcome is None]
        assert won == [standing.owner]
        await cut.close()
        await plain.close()


async def raw(cluster: Cluster, url: str, projects: str | None, sql: str) -> list[Any]:
    connection = await asyncpg.connect(url)
    try:
        if projects is not None:
            await connection.execute("SELECT set_config('toolgate.projects', $1, false)", projects)
        return [tuple(row) for row in await connection.fetch(sql)]
    finally:
        await connection.close()


async def test_a_connection_sees_the_rows_of_its_projects_alone(postgres_url: str, postgres_cluster: Cluster) -> None:
    store = PostgresStore(postgres_url, owner="a")
    for project in ("one", "two", "three"):
        await commit(store, insert(a_call(project=project), events=(a_fact(),)))
    for table in ("tool_executions", "events", "chain_heads"):
        sql = f"SELECT project_id FROM {table} ORDER BY 1"
        assert await raw(postgres_cluster, postgres_url, "one", sql) == [("one",)]
        assert await raw(postgres_cluster, postgres_url, "one\x1ftwo", sql) == [("one",), ("two",)]
        assert await raw(postgres_cluster, postgres_url, None, sql) == []
        assert len(await raw(postgres_cluster, postgres_url, "*", sql)) == 3
    steal = "UPDATE tool_executions SET project_id='one' WHERE project_id='two' RETURNING id"
    assert await raw(postgres_cluster, postgres_url, "one", steal) == []
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await raw(postgres_cluster, postgres_url, "one", "INSERT INTO chain_heads VALUES ('two', 9, '', 0, NULL)")
    await store.close()


async def test_every_table_with_projects_has_the_wall(postgres_url: str, postgres_cluster: Cluster) -> None:
    sql = (
        "SELECT c.relname FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid=c.oid AND a.attname='project_id' "
        "WHERE c.relkind='r' AND NOT (c.relrowsecurity AND c.relforcerowsecurity)"
    )
    assert await postgres_cluster.as_admin(sql, database=database_of(postgres_url)) == []


async def test_names_of_projects_end_nothing_but_themselves(postgres_url: str) -> None:
    store = PostgresStore(postgres_url, owner="a")
    for project in ("o'brien", "'; DROP TABLE events; --", "\\x00", "é\n"):
        await commit(store, insert(a_call(project=project), events=(a_fact(),)))
        assert await store.call(project, "c1") == a_call(project=project)
        assert len(await store.events(project)) == 1
    for project in ("*", "one\x1ftwo"):
        with pytest.raises(StoreError, match="cannot be named"):
            await commit(store, insert(a_call(project=project)))
        with pytest.raises(StoreError, match="cannot be named"):
            await store.call(project, "c1")
    await store.close()


async def test_the_calls_of_a_dead_server_are_found_and_those_of_a_live_one_are_not(
    postgres_url: str, postgres_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_read, "LEASE_S", 0.0)  # the cluster may have been started just now
    alive, looking = PostgresStore(postgres_url, owner="alive"), PostgresStore(postgres_url, owner="looking")
    for owner in ("alive", "dead", None):
        await commit(looking, insert(a_call(str(owner), status=Status.EXECUTING, owner=owner)))
        await commit(looking, insert(a_call(f"w{owner}", status=Status.AWAITING_APPROVAL, owner=owner)))
        await commit(looking, insert(a_call(f"y{owner}", status=Status.APPROVED, owner=owner)))
    assert {call.id for call in await looking.orphans()} == {"dead", "None"}
    for _ in range(2):  # however often: a tool may be here by then
        assert {call.id for call in await looking.orphans(status=Status.APPROVED)} == {"ydead", "yNone"}
    waiting = Status.AWAITING_APPROVAL
    assert [call.id for call in await looking.orphans(status=waiting)] == ["wdead"]
    assert await looking.orphans(status=waiting) == []  # looked once; nobody died since
    await alive.close()
    assert {call.id for call in await looking.orphans()} == {"alive", "dead", "None"}
    assert {call.id for call in await looking.orphans(status=waiting)} == {"walive", "wdead"}
    looking._lease._beat_at -= 100  # an outage: nobody could say that they live
    await commit(looking, insert(a_call("later")))
    assert await looking.orphans() == []
    await looking.close()


async def test_a_value_no_row_can_hold_harms_its_own_change_alone(postgres_url: str) -> None:
    store = PostgresStore(postgres_url, owner="a")
    changes = [
        insert(a_call("good"), events=(a_fact("good"),)),
        insert(a_call("bad", tool_name="nul\x00"), events=(a_fact("bad"),)),
        insert(a_call("failed", error="broke\x00 here", status=Status.FAILED), events=(a_fact("failed"),)),
    ]
    outcomes = await asyncio.gather(*(commit(store, change) for change in changes), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [type(None), StoreError, type(None)]
    failed = await store.call(PROJECT, "failed")
    assert failed is not None
    assert failed.error == "broke\u2400 here"
    assert verify(await store.events(PROJECT)) == 2
    await store.close()


async def decide_elsewhere(url: str, other: str) -> None:
    """One gate asks, another one decides; the first runs it."""

    @toolgate.tool(requires_approval=True)
    def deploy() -> str:
        """Deploy."""
        return "done"

    asking, deciding = toolgate.open(url, tools=[deploy]), toolgate.open(other)
    waiting = asyncio.create_task(asking.call("deploy", {}))
    await until(deciding.pending)
    [approval] = await deciding.pending()
    await deciding.decide(approval.id, "approve", by="ann")
    assert (await waiting).unwrap() == "done"
    await asking.aclose()
    await deciding.aclose()


async def test_a_decision_at_one_server_wakes_the_call_at_another(postgres_url: str) -> None:
    await decide_elsewhere(postgres_url, postgres_url)
    assert [report.problem for report in postgres_upkeep.verify_chains(postgres_url)] == [None]


async def run_at_a_worker(url: str) -> None:
    @toolgate.tool(placement="worker")
    def remote() -> str:
        """Run elsewhere."""
        return "done"

    async with toolgate.open(url, tools=[remote]) as asking, toolgate.open(url, tools=[remote], workers=True) as there:
        runner: Any = there.host.runner("worker")

        async def take(order: Order) -> None:
            await there.remote.work(order.call_id, by="w", project=order.project, lease_s=5)

        working = asyncio.create_task(runner.dispatcher.deliver({"default"}, take, concurrency=2))
        async with asyncio.timeout(PATIENCE_S):
            assert (await asking.call("remote", {})).unwrap() == "done"
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


@needs_pgbouncer
async def test_everything_works_behind_a_transaction_pooler(postgres_url: str, postgres_cluster: Cluster) -> None:
    pooler = Pooler(postgres_cluster)
    try:
        url = postgres_cluster.url(database_of(postgres_url), port=pooler.port) + "?pooler=transaction"
        await decide_elsewhere(url, url)
        stores = [PostgresStore(url, owner=name) for name in ("a", "b")]
        await asyncio.gather(*(write_calls(store, store.owner) for store in stores))
        calls = await stores[0].events(PROJECT, limit=10_000)
        assert verify(calls) == len(calls)
        for store in stores:
            await store.close()
        await run_at_a_worker(url)
    finally:
        pooler.close()
