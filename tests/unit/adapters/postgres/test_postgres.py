from __future__ import annotations

import asyncio
import os
import traceback
from uuid import uuid4

import pytest
from tests.postgres import Cluster, needs_postgres

import toolgate
from toolgate.adapters.postgres import url as postgres_url
from toolgate.adapters.postgres.packing import INSERTS, RUNS
from toolgate.adapters.postgres.store import PostgresStore
from toolgate.adapters.sql.rows import CALL_COLUMNS
from toolgate.errors import StoreError, UsageError
from toolgate.ports.sink import Cursor
from toolgate.testing.conformance.rows import a_call, commit, insert
from toolgate.testing.patience import PATIENCE_S
from toolgate.tools import ApprovalService, UndoMetadata, UndoStore


def test_a_url_says_where_and_how_and_shows_no_password() -> None:
    address = postgres_url.read("postgres://ann:hunter2@h:5433/db?sslmode=require&pooler=transaction&key=/k")
    assert address.dsn == "postgresql://ann:hunter2@h:5433/db?sslmode=require"
    assert (address.shown, address.pooled, str(address.key)) == ("postgresql://h:5433/db", True, "/k")
    assert "hunter2" not in repr(address)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:12/hunter2@h/db",
        "postgresql://ann:hunter2@h",
        "postgresql://ann:hunter2@h:port/db",
        "postgresql://hunter2@h/db?pooler=x",
        "x",
    ],
)
def test_a_url_that_cannot_be_meant_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        postgres_url.read(url)
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


@needs_postgres
def test_a_database_that_cannot_be_opened_says_why_without_the_password(
    postgres_cluster: Cluster, postgres_url: str
) -> None:
    url = postgres_cluster.url("nowhere").replace("@", ":hunter2@")
    for wrong, why in ((url, "refused the connection"), (url.replace(str(postgres_cluster.port), "1"), "reached")):
        with pytest.raises(StoreError, match=why) as caught:
            toolgate.open(wrong)
        assert "hunter2" not in str(caught.value)


@needs_postgres
async def test_a_database_of_an_older_version_is_refused(postgres_url: str, postgres_cluster: Cluster) -> None:
    name = postgres_url.rpartition("/")[2]
    [(before,)] = await postgres_cluster.as_admin("SELECT version_num FROM alembic_version", database=name)
    await postgres_cluster.as_admin("UPDATE alembic_version SET version_num='0001'", database=name)
    try:
        with pytest.raises(StoreError, match="toolgate db upgrade"):
            PostgresStore(postgres_url, owner="a")
    finally:
        await postgres_cluster.as_admin(f"UPDATE alembic_version SET version_num='{before}'", database=name)


@needs_postgres
async def test_a_store_opened_before_a_fork_is_not_used_in_the_child(postgres_url: str) -> None:
    store = PostgresStore(postgres_url, owner="a")
    child = os.fork()
    if child == 0:
        try:
            store.commit(insert(a_call()))
        except StoreError as error:
            os._exit(0 if "fork" in str(error) else 2)
        os._exit(1)
    _, status = await asyncio.to_thread(os.waitpid, child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    await commit(store, insert(a_call()))
    await store.close()
    with pytest.raises(StoreError, match="closed"):
        await store.call("default", "c1")


@needs_postgres
async def test_undo_data_and_approvals_are_kept_on_postgresql(postgres_url: str) -> None:
    action = uuid4()
    store = UndoStore.open(postgres_url)
    await store.store(UndoMetadata(action_id=action, tool_name="write", undo_data={"old": 1}))
    await store.close()
    again = UndoStore.open(postgres_url)
    kept = await again.get(action)
    assert kept is not None
    assert kept.undo_data == {"old": 1}
    await again.close()
    service = ApprovalService.open(postgres_url)
    assert await service.gate.pending() == []
    await service.gate.aclose()


@needs_postgres
async def test_a_named_sink_has_one_owner_until_that_is_dead_or_lets_go(postgres_url: str) -> None:
    one, two = (PostgresStore(postgres_url, owner=owner) for owner in ("one", "two"))
    await one.open_cursor("p", "audit")
    await one.move_cursor("p", "audit", 3)
    assert await two.open_cursor("p", "audit") == Cursor(3, 0, is_ours=False)
    assert not await two.move_cursor("p", "audit", 9)
    await two.close_cursor("p", "audit")  # not its own to let go of
    assert (await one.open_cursor("p", "audit")).is_ours
    await one.close_cursor("p", "audit")
    assert await two.open_cursor("p", "audit") == Cursor(3, 0, is_ours=True)
    assert not await one.move_cursor("p", "audit", 9)
    await two.close()  # it did not let go: it is dead
    assert await one.open_cursor("p", "audit") == Cursor(3, 0, is_ours=True)
    await one.close()


def test_packed_text_keeps_empty_and_missing_values_apart_and_refuses_what_would_confuse_them() -> None:
    rest = [None] * (len(CALL_COLUMNS) - 1)
    packed = INSERTS.pack([(0, "", *rest), (1, "b", *rest)])
    assert packed[:3] == ["\x1f0\x1f1", "\x1f\x1fb", "\x1f\x1e\x1f\x1e"]
    for wrong in ("a\x1fb", "\x1e"):
        with pytest.raises(ValueError, match="control character"):
            INSERTS.pack([(0, wrong, *rest)])
    assert RUNS.pack([(0, "1", "p", "a\x1fb", "now")])[3] == '\x1f"a\\u001fb"'


@needs_postgres
async def test_whoever_reads_while_the_store_closes_is_answered(postgres_url: str) -> None:
    async def read(store: PostgresStore) -> str:
        try:
            while True:
                await store.call("p", "c1")
        except StoreError as error:
            return str(error)

    for _ in range(5):
        store = PostgresStore(postgres_url, owner="a")
        readers = [asyncio.ensure_future(read(store)) for _ in range(32)]
        await store.call("p", "c1")
        await asyncio.gather(store.close(), store.close())
        assert set(await asyncio.wait_for(asyncio.gather(*readers), PATIENCE_S)) == {"The store is closed."}
