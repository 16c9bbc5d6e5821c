"""After sealing everything anew the old keys can be thrown away, and nothing was lost on the way."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import toolgate
from toolgate import ApprovalTerms, Policy, Remember, ToolDefinition, ToolOutput
from toolgate.adapters import sealing
from toolgate.adapters.sqlite import rekey as module
from toolgate.adapters.sqlite.rekey import rekey
from toolgate.adapters.sqlite.store import SqliteStore
from toolgate.errors import StoreError
from toolgate.kernel.call import Status
from toolgate.ports.store import CallQuery, DelegationQuery, GrantQuery
from toolgate.testing.conformance.rows import a_call, an_undo, commit, insert


@pytest.fixture(autouse=True)
def no_key_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(sealing.ENVIRONMENT, raising=False)


def key_file(database: Path) -> Path:
    return database.with_name(database.name + ".key")


def rotate(database: Path) -> None:
    key_file(database).write_text(sealing.new_key() + "\n" + key_file(database).read_text())


def keep_newest(database: Path) -> None:
    key_file(database).write_text(key_file(database).read_text().split()[0])


async def use(database: Path, *ids: str) -> None:
    store = SqliteStore(database, owner="-".join(ids))
    for id in ids:
        call = a_call(id, status=Status.COMPLETED, arguments=b'{"n":1}', result=b'"r"')
        await commit(store, insert(call, undo=an_undo(id, data=b'"u"', fingerprint=b"f")))
    await store.close()


async def test_old_keys_can_go_once_everything_is_sealed_anew(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 2)
    await use(database, "c1", "c2", "c3", "c4")
    rotate(database)
    await use(database, "c5")
    done = rekey(database)
    assert (done.resealed, len(done.retired), done.in_use) == (12, 1, ())
    keep_newest(database)
    store = SqliteStore(database, owner="after")
    found = await store.calls(CallQuery())
    assert [(call.id, call.arguments, call.result) for call in found] == [
        (f"c{number}", b'{"n":1}', b'"r"') for number in range(1, 6)
    ]
    undo = await store.undo("default", "c1")
    assert undo is not None
    assert (undo.data, undo.fingerprint) == (b'"u"', b"f")
    await store.close()
    again = rekey(database)
    assert (again.resealed, again.retired) == (0, ())


async def test_what_people_said_still_counts_under_the_new_key(database: Path) -> None:
    url, mine = f"sqlite:///{database}", ToolDefinition("pay", {}, placement="caller", requires_approval=True)
    two = Policy(terms=ApprovalTerms(quorum=2), revision="two")
    async with toolgate.open(url, tools=[mine], policy=two) as gate:
        decided, voted, forged = [await gate.call("pay", {"n": n}, wait=False) for n in range(3)]
        for asked, people in ((decided, ("ann", "bob")), (voted, ("ann",)), (forged, ("ann", "bob"))):
            for one in people:
                await gate.decide(str(asked.approval_id), "approve", by=one)
    with closing(sqlite3.connect(database)) as connection, connection:
        forge = "UPDATE approval_requests SET decided_by_name='eve' WHERE call_id=?"
        connection.execute(forge, (forged.call_id,))
    rotate(database)
    assert len(rekey(database).retired) == 1
    keep_newest(database)
    async with toolgate.open(url, tools=[mine], policy=two) as gate:
        await gate.decide(str(voted.approval_id), "approve", by="cid")
        results = [await gate.run_here(one.call_id, lambda given: given["n"]) for one in (decided, voted, forged)]
        assert [one.data for one in results] == [0, 1, None]
        assert results[2].error_code == "approval_unmarked"


async def test_what_people_had_remembered_still_counts_under_the_new_key(database: Path) -> None:
    url, pay = (
        f"sqlite:///{database}",
        ToolDefinition("pay", {}, lambda _given: ToolOutput.ok(), requires_approval=True),
    )
    async with toolgate.open(url, tools=[pay]) as gate:
        for n in range(2):
            asked = await gate.call("pay", {"n": n}, wait=False)
            await gate.decide(str(asked.approval_id), "approve", by="ann", remember=Remember())
            assert (await gate.wait(asked.call_id)).success
        kept, forged = await gate.grants.list(GrantQuery())
    with closing(sqlite3.connect(database)) as connection, connection:
        forge = "UPDATE grants SET granted_by='eve' WHERE id=?"
        assert connection.execute(forge, (forged.id.replace("-", ""),)).rowcount == 1
    rotate(database)
    assert len(rekey(database).retired) == 1
    keep_newest(database)
    async with toolgate.open(url, tools=[pay]) as gate:
        assert (await gate.call("pay", {"n": 0})).approved_by == kept.name
        assert (await gate.call("pay", {"n": 1}, wait=False)).is_pending
        assert [grant.is_valid for grant in await gate.grants.list(GrantQuery())] == [True, False]


async def test_votes_that_were_lent_still_count_under_the_new_key(database: Path) -> None:
    url = f"sqlite:///{database}"
    async with toolgate.open(url) as gate:
        kept, forged, ended = [await gate.delegations.give("bob", by="ann", seconds=600) for _ in range(3)]
        await gate.delegations.end(ended.id, by="ann")
    with closing(sqlite3.connect(database)) as connection, connection:
        forge = "UPDATE delegations SET giver='eve' WHERE id=?"
        assert connection.execute(forge, (forged.id.replace("-", ""),)).rowcount == 1
    rotate(database)
    assert len(rekey(database).retired) == 1
    keep_newest(database)
    async with toolgate.open(url) as gate:
        found = {one.id: one.is_valid for one in await gate.delegations.list(DelegationQuery())}
    assert found == {kept.id: True, forged.id: False, ended.id: True}


async def test_an_old_key_that_is_thrown_away_too_early_is_missed_before_anything_changes(database: Path) -> None:
    await use(database, "c1")
    rotate(database)
    await use(database, "c2")
    keep_newest(database)
    before = database.read_bytes()
    with pytest.raises(StoreError, match="not among the keys given"):
        rekey(database)
    assert database.read_bytes() == before


async def test_what_was_stopped_half_way_is_gone_on_with(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await use(database, "c1", "c2", "c3")
    rotate(database)
    monkeypatch.setattr(module, "BATCH", 1)
    sealed: list[bytes] = []

    def give_out(self: sealing.Sealer, data: bytes, row: bytes) -> bytes:
        if len(sealed) == 4:
            raise sqlite3.OperationalError("disk I/O error")
        sealed.append(row)
        return seal(self, data, row)

    seal = sealing.Sealer.seal
    monkeypatch.setattr(sealing.Sealer, "seal", give_out)
    with pytest.raises(StoreError, match="Run it again"):
        rekey(database)
    monkeypatch.setattr(sealing.Sealer, "seal", seal)
    done = rekey(database)
    assert (done.resealed, len(done.retired)) == (5, 1)


async def test_a_process_that_goes_on_sealing_with_an_old_key_keeps_it_needed(database: Path) -> None:
    store = SqliteStore(database, owner="old")
    await commit(store, insert(a_call("c1")))
    rotate(database)
    assert len(rekey(database).retired) == 1
    assert (await store.call("default", "c1")) is not None, "it finds the new key in the file"
    await commit(store, insert(a_call("c2")))
    await store.close()
    old = key_file(database).read_text()
    keep_newest(database)
    with pytest.raises(StoreError, match="not among the keys given"):
        SqliteStore(database, owner="new")
    key_file(database).write_text(old)
    assert rekey(database).resealed == 1
    keep_newest(database)
    await SqliteStore(database, owner="newer").close()


async def test_keys_that_others_keep_using_meanwhile_are_told(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await use(database, "c1")
    rotate(database)
    monkeypatch.setattr(module, "_reseal", lambda *_: 0)
    done = rekey(database)
    assert (done.retired, len(done.in_use)) == ((), 1)


async def test_a_value_that_cannot_be_opened_stops_it(database: Path) -> None:
    await use(database, "c1")
    rotate(database)
    with closing(sqlite3.connect(database)) as thief:
        thief.execute("UPDATE tool_executions SET sealed_result=sealed_params")
        thief.commit()
    with pytest.raises(StoreError, match="another row"):
        rekey(database)
    keys = key_file(database).read_text()
    assert len(keys.split()) == 2


def test_what_is_not_ours_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "x.db")) as other:
        other.execute("CREATE TABLE notes (text TEXT)")
    with pytest.raises(StoreError, match="not one of Toolgate's"):
        rekey(tmp_path / "x.db")


async def test_a_pulled_brake_still_counts_once_its_key_is_gone(database: Path) -> None:
    async with toolgate.open(f"sqlite:///{database}") as gate:
        await gate.set_mode("LOCKDOWN", by="ann", project="shop")
    rotate(database)
    rekey(database)
    keep_newest(database)
    async with toolgate.open(f"sqlite:///{database}") as gate:
        assert gate.brakes.fault is None
        assert [str(brake) for brake in gate.brakes.active] == ["LOCKDOWN over project 'shop', by ann"]
        await gate.set_mode("NORMAL", by="ann", project="shop")
    assert rekey(database).retired == ()


async def test_a_forged_mode_is_not_made_good(database: Path) -> None:
    async with toolgate.open(f"sqlite:///{database}") as gate:
        await gate.set_mode("LOCKDOWN", by="ann")
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE settings SET value='NORMAL' WHERE name='mode'")
        connection.commit()
    rotate(database)
    rekey(database)
    async with toolgate.open(f"sqlite:///{database}") as gate:
        assert gate.brakes.fault is not None
