"""What is remembered is what is stored, whoever changed it meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from toolgate.adapters.sql import recent as sqlite_recent
from toolgate.adapters.sqlite.store import SqliteStore
from toolgate.kernel.approval import ApprovalStatus
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Durability
from toolgate.kernel.context import Context
from toolgate.ports.store import ApprovalQuery
from toolgate.testing.clock import NOON
from toolgate.testing.conformance.rows import a_call, an_approval, commit, insert, step


@pytest.fixture
async def store(database: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(database, owner="me")
    yield store
    await store.close()


def asked(id: str = "c1", **fields: Any) -> Call:
    return a_call(id, status=Status.AWAITING_APPROVAL, approval_id=f"a-{id}", shown={"path": "/a"}, **fields)


async def found(store: SqliteStore, id: str = "c1") -> Call:
    call = await store.call("default", id)
    assert call is not None
    return call


@pytest.mark.parametrize("durability", [Durability.COMMITTED, Durability.FSYNCED])
async def test_what_was_written_is_read_back_without_decoding_it(store: SqliteStore, durability: Durability) -> None:
    approval = an_approval("a-c1", call_id="c1", arguments={"path": "/a"})
    await commit(store, insert(asked(), approvals=(approval,), durability=durability))
    assert store._recent.call("default", "c1") is not None
    assert (await found(store)).shown == {"path": "/a"}
    [read] = await store.approvals(ApprovalQuery(id="a-c1"))
    assert read.arguments == {"path": "/a"}
    assert await store.approvals(ApprovalQuery(id="a-c1", project="other")) == []
    assert await store.approvals(ApprovalQuery(id="a-c1", status=ApprovalStatus.DENIED)) == []


async def test_whoever_changes_what_they_read_changes_only_their_copy(store: SqliteStore) -> None:
    await commit(store, insert(asked(preview={"lines": [1]}), approvals=(an_approval("a-c1", call_id="c1"),)))
    read = await found(store)
    read.shown["path"] = "/b"
    read.preview["lines"].append(2)
    again = await found(store)
    assert (again.shown, again.preview) == ({"path": "/a"}, {"lines": [1]})


async def test_what_another_process_changed_is_read_anew(store: SqliteStore, database: Path) -> None:
    call, approval = asked(), an_approval("a-c1", call_id="c1")
    await commit(store, insert(call, approvals=(approval,)))
    other = SqliteStore(database, owner="other")
    closed = approval.close(ApprovalStatus.APPROVED, at=NOON, by="ann")
    await commit(other, step(call, Status.APPROVED, approvals=(closed,)))
    await other.close()
    assert (await found(store)).status is Status.APPROVED
    [read] = await store.approvals(ApprovalQuery(id="a-c1"))
    assert read.decided_by == "ann"


async def test_a_call_that_goes_on_is_forgotten(store: SqliteStore) -> None:
    call = asked()
    await commit(store, insert(call, approvals=(an_approval("a-c1", call_id="c1"),)))
    await commit(store, step(call, Status.CANCELLED))
    assert store._recent.call("default", "c1") is None
    assert store._recent.asked("a-c1") is None
    assert (await found(store)).status is Status.CANCELLED


async def test_the_oldest_is_forgotten_first(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_recent, "MOST", 2)
    for id in ("c1", "c2", "c3"):
        await commit(store, insert(asked(id), approvals=(an_approval(f"a-{id}", call_id=id),)))
    assert [store._recent.call("default", id) is None for id in ("c1", "c2", "c3")] == [True, False, False]
    assert (await found(store, "c1")).id == "c1"


async def test_the_hosts_own_object_is_not_handed_back(store: SqliteStore) -> None:
    await commit(store, insert(asked(context=Context(host=object()))))
    assert (await found(store)).context.host is None
    assert await store.approvals(ApprovalQuery(id="a-c1")) == []
