from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from tests.postgres import KEY, Cluster, needs_postgres, program
from typer.testing import CliRunner

import toolgate
from toolgate.adapters import sealing
from toolgate.adapters.postgres import import_file as postgres_import
from toolgate.adapters.postgres import rekey as postgres_rekey
from toolgate.adapters.postgres import upkeep as postgres_upkeep
from toolgate.adapters.postgres.link import Link
from toolgate.adapters.postgres.store import PostgresStore
from toolgate.adapters.postgres.url import read
from toolgate.adapters.postgres.write import Writer
from toolgate.adapters.sqlite import upkeep
from toolgate.adapters.sqlite.store import SqliteStore
from toolgate.errors import ConflictError, StoreError
from toolgate.interfaces.cli.app import app
from toolgate.kernel.brake import Brake, Scope
from toolgate.kernel.call import Call, Status
from toolgate.kernel.context import Mode
from toolgate.ports.store import CallQuery
from toolgate.testing.clock import NOON
from toolgate.testing.conformance.rows import PROJECT, a_call, a_fact, an_approval, an_undo, commit, insert, set_mode
from toolgate.testing.conformance.store_large import UNDO, large

pytestmark = needs_postgres
HOUR = timedelta(hours=1)


def ended(id: str, **fields: Any) -> Call:
    standard = {"status": Status.COMPLETED, "completed_at": NOON, "result": b'{"ok":true}', "arguments": b'{"a":1}'}
    return a_call(id, **{**standard, **fields})


async def fill(store: Any) -> None:
    for number in range(3):
        call = ended(f"c{number}", project=f"p{number % 2}")
        facts = (a_fact(call.id), a_fact(call.id, é="\u0000"))
        await commit(store, insert(call, events=facts, approvals=(an_approval(f"a{number}", project=call.project),)))
    waiting = a_call("open", project="p0", status=Status.AWAITING_APPROVAL)
    await commit(store, insert(waiting, events=(a_fact("open"), a_fact(None)), undo=an_undo("open", project="p0")))


def filled(url: str) -> str:
    async def work() -> None:
        store = PostgresStore(url, owner="test")
        await fill(store)
        await store.close()

    asyncio.run(work())
    return url


def run(*arguments: str) -> Any:
    outcome = CliRunner().invoke(app, [*arguments, "--json"])
    assert outcome.exit_code == 0, (outcome.output, outcome.exception)
    return json.loads(outcome.stdout)


def test_status_and_audit_are_told(postgres_url: str) -> None:
    filled(postgres_url)
    status = run("db", "status", postgres_url)
    assert (status["revision"], status["events"], status["row_security"]) == (status["needed"], 8, True)
    assert status["calls"] == {"COMPLETED": 3, "AWAITING_APPROVAL": 1}
    told = json.loads(CliRunner().invoke(app, ["audit", "verify", postgres_url, "--json"]).stdout)
    assert told["chains"] == [
        {"project": "p0", "events": 6, "problem": None, "redacted": 0},
        {"project": "p1", "events": 2, "problem": None, "redacted": 0},
    ]
    assert {one["kind"] for one in told["differences"]} == {"call", "approval"}  # its events are made up
    assert run("db", "upgrade", postgres_url)["from"] == status["revision"]


@pytest.mark.parametrize(
    ("tamper", "problem"),
    [
        ("UPDATE events SET frame=frame || ' '::bytea WHERE project_id='p1'", "altered"),
        ("DELETE FROM events WHERE project_id='p1' AND seq=1", "missing"),
        ("DELETE FROM events WHERE project_id='p1' AND seq=2", "newest events are missing"),
        ("DELETE FROM chain_heads WHERE project_id='p1'", "newest events are missing"),
        ("UPDATE chain_heads SET base_seq=1, base_hash='x' WHERE project_id='p1'", "does not link"),
    ],
)
def test_a_chain_that_was_tampered_with_is_found(
    postgres_url: str, postgres_cluster: Cluster, tamper: str, problem: str
) -> None:
    filled(postgres_url)
    asyncio.run(postgres_cluster.as_admin(tamper, database=postgres_url.rpartition("/")[2]))
    good, bad = postgres_upkeep.verify_chains(postgres_url)
    assert good.problem is None
    assert problem in str(bad.problem)


def test_old_calls_are_forgotten_and_their_events_stay(postgres_url: str) -> None:
    filled(postgres_url)
    assert postgres_upkeep.prune(postgres_url, NOON)[0] == 0
    assert postgres_upkeep.prune(postgres_url, NOON + HOUR)[0] == 3
    assert run("db", "prune", postgres_url, "--older-than", "1d")["forgotten"] == 0
    gate = toolgate.open(postgres_url)
    try:
        calls = gate.sync.calls.list(CallQuery(project="p1"))
    finally:
        gate.close()
    assert [(call.id, call.arguments, call.result, call.shown_result) for call in calls] == [("c1", b"{}", None, None)]
    assert all(report.problem is None for report in postgres_upkeep.verify_chains(postgres_url))


def test_old_events_are_removed_up_to_what_is_still_open_and_the_rest_verifies(postgres_url: str) -> None:
    filled(postgres_url)
    assert postgres_upkeep.prune(postgres_url, NOON, events=True)[1] == 0
    assert postgres_upkeep.prune(postgres_url, NOON + HOUR, events=True)[1] == 6  # two of p0 are of a call that waits
    assert postgres_upkeep.prune(postgres_url, NOON + HOUR, events=True)[1] == 0
    assert [(report.events, report.problem) for report in postgres_upkeep.verify_chains(postgres_url)] == [
        (5, None),  # `_system` tells of three times and two projects
        (2, None),
        (0, None),
    ]

    async def more() -> None:
        store = PostgresStore(postgres_url, owner="test")
        await commit(store, insert(a_call("next", project="p1"), events=(a_fact("next"),)))
        assert [event.seq for event in await store.events("p1")] == [3]
        await store.close()

    asyncio.run(more())
    assert [report.problem for report in postgres_upkeep.verify_chains(postgres_url)] == [None, None, None]


def test_everything_is_sealed_anew_and_the_old_key_may_go(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    filled(postgres_url)
    new = sealing.new_key()
    file = tmp_path / "seal.key"
    file.write_text(f"{new}\n{KEY}\n")
    file.chmod(0o600)
    monkeypatch.delenv("TOOLGATE_KEY")
    done = run("db", "rekey", f"{postgres_url}?key={file}")
    assert (done["resealed"], len(done["retired"]), done["in_use"]) == (8, 1, [])
    monkeypatch.setenv("TOOLGATE_KEY", KEY)
    with pytest.raises(StoreError, match="sealed with key"):
        toolgate.open(postgres_url)
    monkeypatch.setenv("TOOLGATE_KEY", new)
    gate = toolgate.open(postgres_url)
    assert gate.sync.calls.list(CallQuery(project="p1"))[0].arguments == b'{"a":1}'
    gate.close()


async def fill_large(store: Any) -> None:
    for id, at in (("old", NOON), ("new", NOON + 2 * HOUR)):
        undo = an_undo(id, data=UNDO, expires_at=at + HOUR / 2)
        await commit(store, insert(large(id, status=Status.COMPLETED, completed_at=at), undo=undo))


async def beside(store: PostgresStore) -> dict[str, bool]:
    """Which large calls are still whole, and which of them can be undone."""
    found = {call.id: call.arguments == large().arguments for call in await store.calls(CallQuery())}
    return found | {f"undo of {id}": await store.undo(PROJECT, id) is not None for id in [*found]}


def test_large_values_are_forgotten_and_sealed_anew_like_others(
    postgres_url: str, postgres_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        store = PostgresStore(postgres_url, owner="test")
        await fill_large(store)
        await store.close()

    async def look() -> None:
        store = PostgresStore(postgres_url, owner="test")
        assert await beside(store) == {"old": False, "new": True, "undo of old": False, "undo of new": True}
        await store.due(NOON + 3 * HOUR)
        await store.close()

    asyncio.run(work())
    assert postgres_upkeep.prune(postgres_url, NOON + HOUR)[0] == 1
    new = sealing.new_key()
    monkeypatch.setenv("TOOLGATE_KEY", f"{new} {KEY}")
    assert run("db", "rekey", postgres_url)["resealed"] == 4
    monkeypatch.setenv("TOOLGATE_KEY", new)
    asyncio.run(look())
    database = postgres_url.rpartition("/")[2]
    left = asyncio.run(
        postgres_cluster.as_admin(
            "SELECT (SELECT array_agg(call_id) FROM large_params) || (SELECT array_agg(call_id) FROM large_undo)",
            database=database,
        )
    )
    assert left[0][0] == ["new"], "its undo data went when its time was over"


def test_what_people_said_still_counts_under_a_new_key(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = toolgate.ToolDefinition("pay", {}, placement="caller", requires_approval=True)
    with toolgate.open(postgres_url, tools=[mine]) as gate:
        asked = gate.sync.call("pay", {"n": 7}, wait=False)
        gate.sync.decide(str(asked.approval_id), "approve", by="ann", remember=toolgate.Remember())
        gate.sync.set_mode("LOCKDOWN", by="ann", project="elsewhere")
    new, file = sealing.new_key(), tmp_path / "keys"
    file.write_text(f"{new}\n{KEY}\n")
    file.chmod(0o600)
    monkeypatch.delenv("TOOLGATE_KEY")
    postgres_rekey.rekey(f"{postgres_url}?key={file}")
    monkeypatch.setenv("TOOLGATE_KEY", new)
    with toolgate.open(postgres_url, tools=[mine]) as gate:
        assert gate.sync.run_here(asked.call_id, lambda given: given["n"]).data == 7
        (grant,) = gate.sync.grants.list(toolgate.GrantQuery())
        assert gate.sync.call("pay", {"n": 7}, wait=False).approved_by == grant.name
        assert grant.is_valid
        assert [str(brake) for brake in gate.brakes.active] == ["LOCKDOWN over project 'elsewhere', by ann"]


def test_a_server_without_the_key_does_not_open_the_database(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("TOOLGATE_KEY")
    with pytest.raises(StoreError, match="TOOLGATE_KEY_FILE"):
        toolgate.open(postgres_url)
    monkeypatch.setenv("TOOLGATE_KEY_FILE", str(tmp_path / "none.key"))
    with pytest.raises(StoreError, match="is missing"):
        toolgate.open(postgres_url)
    assert CliRunner().invoke(app, ["db", "key", str(tmp_path / "none.key")]).exit_code == 0
    toolgate.open(postgres_url).close()
    with pytest.raises(StoreError, match="never overwritten"):
        sealing.make_file(tmp_path / "none.key")


def test_a_character_postgresql_has_no_room_for_keeps_nothing_from_being_forgotten(
    postgres_url: str,
) -> None:
    async def work() -> None:
        store = PostgresStore(postgres_url, owner="test")
        odd = {"text": "nul\x00 and a \\u0000 that was typed"}
        asked = an_approval("a1", preview=odd, arguments=odd, facts=odd, difference=odd, nonce="canary")
        await commit(store, insert(ended("c1", preview=odd, first_asked="canary", facts=odd), approvals=(asked,)))
        await store.close()

    asyncio.run(work())
    assert postgres_upkeep.prune(postgres_url, NOON + HOUR)[0] == 1
    gate = toolgate.open(postgres_url)
    [call], asked = gate.sync.calls.list(CallQuery()), gate.sync.approvals.get("a1")
    gate.close()
    assert (call.arguments, call.preview, call.first_asked, call.facts) == (b"{}", None, None, None)
    assert (asked.arguments, asked.facts, asked.difference, asked.nonce) == (None, None, None, "")


def test_a_key_is_not_forgotten_while_somebody_is_about_to_seal_with_it(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "seal.key"
    file.write_text(f"{sealing.new_key()}\n{KEY}\n")
    file.chmod(0o600)
    judge = Writer._judge

    async def work() -> None:
        store = PostgresStore(postgres_url, owner="with the old key")
        looked = asyncio.Event()

        async def slow(self: Writer, *given: Any) -> None:
            asyncio.get_running_loop().call_soon(loop.call_soon_threadsafe, looked.set)
            await asyncio.sleep(1.0)  # the key was there when it looked
            await judge(self, *given)

        loop = asyncio.get_running_loop()
        monkeypatch.setattr(Writer, "_judge", slow)
        writing = asyncio.ensure_future(commit(store, insert(ended("c1"))))
        await looked.wait()
        monkeypatch.delenv("TOOLGATE_KEY")
        await asyncio.to_thread(postgres_rekey.rekey, f"{postgres_url}?key={file}")
        await writing
        await store.close()

    asyncio.run(work())
    file.write_text(file.read_text().splitlines()[0] + "\n")
    gate = toolgate.open(f"{postgres_url}?key={file}")  # the old key was retired, so everything can be opened
    assert gate.sync.calls.list(CallQuery())[0].arguments == b'{"a":1}'
    gate.close()


def test_an_upgrade_makes_the_tables_of_the_queue_too(postgres_url: str, postgres_cluster: Cluster) -> None:
    url = postgres_cluster.new_database()
    there = "SELECT to_regclass('toolgate_pgqueuer') IS NOT NULL"
    name = url.rpartition("/")[2]
    assert asyncio.run(postgres_cluster.as_admin(there, database=name)) == [(False,)]
    for _ in range(2):
        run("db", "upgrade", url)
    assert asyncio.run(postgres_cluster.as_admin(there, database=name)) == [(True,)]
    run("db", "upgrade", f"{url}?pooler=transaction")
    postgres_cluster.drop(url)


def test_a_dump_by_the_servers_own_role_has_every_row(
    postgres_url: str, postgres_cluster: Cluster, tmp_path: Path
) -> None:
    """As `run-in-production.md` says: row-level security holds for whoever makes the dump, too."""
    filled(postgres_url)
    dump, back = tmp_path / "toolgate.dump", postgres_cluster.new_database()
    seeing = {"PGOPTIONS": "-c toolgate.projects=*", "PATH": ""}
    made = [program("pg_dump"), "--enable-row-security", "--format=custom", f"--file={dump}", postgres_url]
    subprocess.run([str(part) for part in made], check=True, env=seeing)
    restored = [program("pg_restore"), "--clean", "--if-exists", f"--dbname={back}", dump]
    subprocess.run([str(part) for part in restored], check=True, env=seeing)
    assert postgres_upkeep.verify_chains(back) == postgres_upkeep.verify_chains(postgres_url)
    assert postgres_upkeep.status_of(back)["calls"] == postgres_upkeep.status_of(postgres_url)["calls"]
    postgres_cluster.drop(back)


@pytest.fixture
def file(database: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    async def work() -> None:
        store = SqliteStore(database, owner="file")
        await fill(store)
        await store.close()

    monkeypatch.delenv("TOOLGATE_KEY", raising=False)
    asyncio.run(work())
    return database


@pytest.fixture
def target(postgres_url: str, file: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.delenv("TOOLGATE_KEY", raising=False)
    return f"{postgres_url}?key={file}.key"


def test_a_file_is_imported_with_its_chains(file: Path, target: str) -> None:
    done = run("db", "import", f"sqlite:///{file}", target)
    assert done["chains"] == {"p0": 6, "p1": 2}
    assert done["rows"]["tool_executions"] == 4
    told, *brought = postgres_upkeep.verify_chains(target)
    assert (told.project, told.events, brought) == ("_system", 1, upkeep.verify_chains(file))

    async def compare() -> None:
        ours, theirs = PostgresStore(target, owner="test"), SqliteStore(file, owner="test")
        assert await ours.calls(CallQuery()) == await theirs.calls(CallQuery())
        assert await ours.events("p0") == await theirs.events("p0")
        assert await ours.undo("p0", "open") == await theirs.undo("p0", "open")
        await ours.close()
        await theirs.close()

    asyncio.run(compare())


def test_the_brakes_of_a_file_are_imported_and_count(file: Path, target: str) -> None:
    async def pull() -> None:
        store = SqliteStore(file, owner="brakes")
        await commit(store, set_mode(Mode.ALERT, Brake(scope=Scope("p0"), mode=Mode.LOCKDOWN, by="ann")))
        await store.close()

    async def look() -> None:
        store = PostgresStore(target, owner="test")
        assert store.brakes.fault is None
        assert [brake.mode for brake in store.brakes.active] == [Mode.ALERT, Mode.LOCKDOWN]
        await store.close()

    asyncio.run(pull())
    run("db", "import", f"sqlite:///{file}", target)
    asyncio.run(look())


def test_large_values_of_a_file_are_imported(file: Path, target: str) -> None:
    async def work() -> None:
        store = SqliteStore(file, owner="large")
        await fill_large(store)
        await store.close()

    async def look() -> None:
        store = PostgresStore(target, owner="test")
        found = await beside(store)
        assert {name for name, whole in found.items() if whole} == {
            "old", "new", "undo of old", "undo of new",
        }  # fmt: skip
        await store.close()

    asyncio.run(work())
    run("db", "import", f"sqlite:///{file}", target)
    asyncio.run(look())


def test_an_import_whose_end_nobody_heard_of_says_so(file: Path, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    execute = asyncpg.Connection.execute

    async def cut(self: Any, sql: str, *given: Any, **more: Any) -> Any:
        done = await execute(self, sql, *given, **more)
        if sql == "COMMIT":
            raise ConnectionResetError
        return done

    link = Link(read(target))
    source = sqlite3.connect(file, check_same_thread=False)
    with monkeypatch.context() as patch:
        patch.setattr(asyncpg.Connection, "execute", cut)
        with pytest.raises(StoreError, match="not known"):
            link.run(postgres_import._bring(link, source, [], {}, lambda _table, _rows: None, "me"))
    source.close()
    link.abandon()


def test_a_long_name_of_an_error_is_cut_as_it_is_when_written(file: Path, target: str) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE tool_executions SET error_type=?", ("E" * 150,))
    connection.close()
    run("db", "import", str(file), target)


def test_nothing_is_imported_where_something_is_in_the_way(file: Path, target: str) -> None:
    run("db", "import", str(file), target)
    with pytest.raises(ConflictError, match="already; nothing was imported"):
        postgres_import.bring(file, target)
    gate = toolgate.open(f"sqlite:///{file}")
    with pytest.raises(StoreError, match="stop it first"):
        postgres_import.bring(file, target)
    gate.close()


def test_a_file_with_a_broken_chain_or_another_key_is_not_imported(
    file: Path, postgres_url: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLGATE_KEY", KEY)
    with pytest.raises(StoreError, match="not among the keys"):
        postgres_import.bring(file, postgres_url)
    monkeypatch.delenv("TOOLGATE_KEY")
    with sqlite3.connect(file) as thief:
        thief.execute("DELETE FROM events WHERE seq=1 AND project_id='p1'")
    thief.close()
    with pytest.raises(StoreError, match="chain is broken"):
        postgres_import.bring(file, target)
    assert postgres_upkeep.status_of(target)["events"] == 0


def test_old_events_of_a_file_are_removed_and_the_rest_verifies(file: Path) -> None:
    assert upkeep.prune(file, NOON, events=True)[1] == 0
    assert upkeep.prune(file, NOON + HOUR, events=True)[1] == 6
    assert [(report.events, report.problem) for report in upkeep.verify_chains(file)] == [
        (2, None),  # `_system` tells of both times
        (2, None),
        (0, None),
    ]
    assert PROJECT not in {report.project for report in upkeep.verify_chains(file)}
