"""Moments of doubt on PostgreSQL: what is not known is looked up or left alone, and one failure stays one failure."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from tests.postgres import Cluster, needs_postgres

from toolgate.adapters.postgres import link as postgres_link
from toolgate.adapters.postgres import owners as postgres_owners
from toolgate.adapters.postgres import read as postgres_read
from toolgate.adapters.postgres import write as postgres_write
from toolgate.adapters.postgres.batch import Batch
from toolgate.adapters.postgres.store import PostgresStore
from toolgate.adapters.postgres.write import Writer
from toolgate.errors import ModeChangedError, StoreError
from toolgate.kernel.call import Status
from toolgate.kernel.context import Mode
from toolgate.kernel.event import verify
from toolgate.testing.conformance.rows import PROJECT, a_call, a_fact, commit, insert, set_mode
from toolgate.testing.patience import PATIENCE_S

pytestmark = needs_postgres


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[PostgresStore]:
    opened = PostgresStore(postgres_url, owner="here")
    yield opened
    await opened.close()


async def test_nobody_counts_as_dead_for_a_server_that_was_cut_off_itself(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_read, "LEASE_S", 0.0)  # the cluster may have been started just now
    await commit(store, insert(a_call(status=Status.EXECUTING, owner="cut off, too")))
    assert len(await store.orphans()) == 1
    store._lease._beat_at -= 100  # the outage is over, and this server has not said yet that it lives
    assert await store.orphans() == []


async def test_an_answer_that_came_after_an_outage_is_not_believed(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_read, "LEASE_S", 0.0)
    await commit(store, insert(a_call(status=Status.EXECUTING, owner="cut off, too")))
    ask = store._reader.orphans

    async def late(*given: Any) -> Any:
        found = await ask(*given)
        store._lease._beat_at -= 100  # the question waited out the outage in the connection
        return found

    monkeypatch.setattr(store._reader, "orphans", late)
    assert await store.orphans() == []


async def test_a_renewal_that_was_rolled_back_is_made_again(
    store: PostgresStore, postgres_url: str, postgres_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the dead would make a claim: others would take it from somebody who runs it."""
    name = postgres_url.rpartition("/")[2]
    store._lease._beating.cancel()  # type: ignore[union-attr]  # only the renewal with the claim is left
    await postgres_cluster.as_admin("UPDATE owners SET alive_until=now() - interval '1 min'", database=name)
    store._lease._beat_at -= 100
    look, failures = Writer._look, iter([True, False])

    async def cut(self: Writer, connection: Any, batch: Any) -> Any:
        if next(failures, False):
            raise ConnectionResetError
        return await look(self, connection, batch)

    monkeypatch.setattr(Writer, "_look", cut)
    await commit(store, insert(a_call(status=Status.EXECUTING, owner="here")))
    alive = "SELECT 1 FROM owners WHERE owner='here' AND alive_until>now()"
    assert len(await postgres_cluster.as_admin(alive, database=name)) == 1


async def test_a_late_renewal_does_not_take_time_away(
    store: PostgresStore, postgres_url: str, postgres_cluster: Cluster
) -> None:
    """A transaction that began long ago, and waited for a lock, renews from when it does so."""
    name = postgres_url.rpartition("/")[2]
    waiting = await asyncpg.connect(postgres_url)
    async with waiting.transaction():
        await waiting.execute("SELECT pg_sleep(0.3)")
        left = "SELECT extract(epoch FROM alive_until-clock_timestamp()) FROM owners WHERE owner='here'"
        await waiting.execute(postgres_owners._PUT, "here", "host", postgres_owners.LEASE_S)
        assert await waiting.fetchval(left) > postgres_owners.LEASE_S - 0.25
        before = await waiting.fetchval("SELECT alive_until FROM owners WHERE owner='here'")
        await waiting.execute(postgres_owners._PUT, "here", "host", 1.0)
        assert await waiting.fetchval("SELECT alive_until FROM owners WHERE owner='here'") == before
    await waiting.close()
    assert await postgres_cluster.as_admin("SELECT 1 FROM owners", database=name)


async def test_an_error_in_answer_to_a_commit_that_was_made_is_looked_up(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the log of a commit is on the disk and the server then panics for want of space."""

    class Panicking:
        def __init__(self, inner: Any) -> None:
            self._inner = inner

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

        async def execute(self, sql: str, *given: Any) -> Any:
            done = await self._inner.execute(sql, *given)
            if sql == "COMMIT":
                self._inner.terminate()
                raise asyncpg.DiskFullError("could not write to file")
            return done

    spoiled = iter([True])

    async def connect(*given: Any, **more: Any) -> Any:
        connection = await postgres_link.connect(*given, **more)
        return Panicking(connection) if next(spoiled, False) else connection

    monkeypatch.setattr(postgres_write, "connect", connect)
    await commit(store, insert(a_call(), events=(a_fact("c1"),)))
    assert verify(await store.events(PROJECT)) == 1


async def test_whoever_waits_for_a_write_that_broke_is_told(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any) -> Any:
        raise KeyError("a bug")

    with monkeypatch.context() as patch:
        patch.setattr(Writer, "_judge", broken)
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(StoreError, match="KeyError"):
                await commit(store, insert(a_call()))
    await commit(store, insert(a_call()))


async def test_a_write_that_failed_says_nothing_of_the_mode(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = PostgresStore(postgres_url, owner="first")
    await commit(first, set_mode(Mode.LOCKDOWN))
    await first.close()
    store = PostgresStore(postgres_url, owner="second")

    async def away(*_: Any) -> Any:
        raise StoreError("away")

    monkeypatch.setattr(Writer, "write", away)
    with pytest.raises(StoreError):
        await commit(store, insert(a_call()))
    assert store.brakes.mode is Mode.LOCKDOWN
    await store.close()


class Cut:
    """A connection that is lost with the answer to a commit of the server's function, before or after it was made."""

    def __init__(self, inner: Any, *, is_made: bool) -> None:
        self._inner, self._is_made = inner, is_made

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def fetchrow(self, sql: str, *given: Any) -> Any:
        if "toolgate_commit" not in sql:
            return await self._inner.fetchrow(sql, *given)
        if self._is_made:
            await self._inner.fetchrow(sql, *given)
        self._inner.terminate()
        raise ConnectionResetError


@pytest.mark.parametrize("is_made", [True, False])
async def test_a_commit_whose_answer_was_lost_is_made_once(store: PostgresStore, *, is_made: bool) -> None:
    await commit(store, insert(a_call("c0"), events=(a_fact("c0"),)))  # from here on it takes one round trip
    writer = store._writer
    writer._connection = Cut(writer._connection, is_made=is_made)
    await asyncio.gather(*(commit(store, insert(a_call(id), events=(a_fact(id),))) for id in ("c1", "c2")))
    assert verify(await store.events(PROJECT)) == 3
    assert [event.call_id for event in await store.events(PROJECT)] == ["c0", "c1", "c2"]


async def test_a_commit_that_was_looked_up_and_not_found_cannot_be_made_later(
    store: PostgresStore, postgres_url: str
) -> None:
    """A server that is only slow may still have the statement before it when its client asks elsewhere."""
    await commit(store, insert(a_call("c0")))
    writer, batch = store._writer, Batch([], store._lease.new_id())
    assert not await store.link.do(writer._outcome(await store.link.do(writer._connected()), batch))
    slow = await asyncpg.connect(postgres_url)
    with pytest.raises(asyncpg.UniqueViolationError):
        await slow.execute(
            "SELECT toolgate_commit($1, $2, NULL, NULL, $3, '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}')",
            batch.id, PROJECT, store._sealer.current,
        )  # fmt: skip
    await slow.close()


async def test_the_mode_of_another_server_stops_what_was_judged_before_it(
    store: PostgresStore, postgres_url: str
) -> None:
    await commit(store, insert(a_call("c0")))
    other = PostgresStore(postgres_url, owner="other")
    await commit(other, set_mode(Mode.LOCKDOWN))
    with pytest.raises(ModeChangedError):
        await commit(store, insert(a_call("c1"), mode_seen=0))
    assert store.brakes.mode is Mode.LOCKDOWN
    await commit(store, insert(a_call("c2"), mode_seen=store.brakes.serial))
    await other.close()


async def test_ids_of_old_commits_are_forgotten_and_those_of_late_ones_kept(
    store: PostgresStore, postgres_url: str, postgres_cluster: Cluster
) -> None:
    name = postgres_url.rpartition("/")[2]
    old = UUID(int=int((store.now().timestamp() - postgres_owners.KEPT_S - 60) * 1000) << 80)
    await postgres_cluster.as_admin(f"INSERT INTO commits (id) VALUES ('{old}')", database=name)
    await commit(store, insert(a_call("c0")))
    await store.link.do(store._lease._beat())
    kept = [id for (id,) in await postgres_cluster.as_admin("SELECT id FROM commits", database=name)]
    assert kept
    assert old not in kept
