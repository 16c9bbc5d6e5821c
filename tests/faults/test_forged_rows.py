"""A table of forgeries: what somebody who can write to the database, and has no key, may put into a row of each kind.

`toolgate audit verify` names each of them, and nothing of what was done through the gate.
"""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg
import orjson
import pytest
from tests.postgres import needs_postgres
from typer.testing import CliRunner

import toolgate
from toolgate import Remember, ToolDefinition, ToolOutput, bootstrap
from toolgate.adapters import sealing
from toolgate.adapters.postgres.comparing import compare_on
from toolgate.adapters.sql import comparing, people
from toolgate.interfaces.cli.app import app
from toolgate.ports.directory import Account, TokenUse
from toolgate.testing.clock import NOON
from toolgate.testing.conformance.directory import ANN, a_token

CALL, ASKED, GRANT, LENT = "tool_executions", "approval_requests", "grants", "delegations"


class Forgery(NamedTuple):
    """What is written, and what the difference is told as: kind and words."""

    sql: str
    kind: str
    words: str


def on(table: str, change: str, where: str, kind: str, words: str) -> Forgery:
    return Forgery(f"UPDATE {table} SET {change} WHERE {where}", kind, words)


def on_mode(one: str, other: str, words: str) -> Forgery:
    change = f"value=replace(value, '{one}', '{other}')"
    return on("settings", change, "name='mode'", "mode", words)


LIVE, OVER = "ended_at IS NULL", "ended_at IS NOT NULL"
PAID, FREE, USED, WAITS = (f"call_id='{id}'" for id in ("paid", "free", "used", "waits"))
FORGERIES = {
    "a call is said to be done": on(CALL, "status='COMPLETED'", WAITS, "call", "no event tells that it ended"),
    "a done call is said to be approved": on(CALL, "status='APPROVED'", PAID, "call", "its events say COMPLETED"),
    "a failure is said to be success": on(
        CALL, "status='COMPLETED'", "call_id='denied'", "call", "its events say DENIED or REJECTED or TIMEOUT"
    ),
    "a call is said to be started": on(CALL, "status='EXECUTING'", WAITS, "call", "no event tells that it was started"),
    "a call is said to be approved": on(CALL, "status='APPROVED'", WAITS, "call", "anybody approved it"),
    "it began at another time": on(CALL, "started_at='2020-01-01 00:00:00'", PAID, "call", "started_at is 2020"),
    "it ended at another time": on(CALL, "completed_at='2020-01-01 00:00:00'", PAID, "call", "completed_at is 2020"),
    "it began and never did": on(
        CALL, "started_at='2020-01-01 00:00:00'", WAITS, "call", "no event tells that it was started"
    ),
    "somebody else allowed it": on(
        CALL, 'SWAP("approved_by":"ann"|"approved_by":"eve")', PAID, "call", "approved_by is eve, its events say ann"
    ),
    "other arguments are shown": on(CALL, "tool_params='{\"sum\": 2}'", PAID, "call", "its arguments are others"),
    "a call that nobody made": Forgery(
        f"UPDATE {CALL} SET id='{'7' * 32}', call_id='forged' WHERE {FREE}", "call", "no event tells of it"
    ),
    "a call that is gone": Forgery(f"DELETE FROM {CALL} WHERE {FREE}", "call", "its row is missing"),
    "a row that is none": on(CALL, "detail='[]'", FREE, "call", "its row cannot be read"),
    "a no is said to be a yes": on(
        ASKED, "status='approved'", "call_id='denied'", "approval", "status is approved, its events say denied"
    ),
    "a question is said to be answered": on(
        ASKED, "status='approved'", WAITS, "approval", "no event tells that it was answered"
    ),
    "somebody else answered": on(ASKED, "decided_by_name='eve'", PAID, "approval", "decided_by is eve"),
    "it was answered earlier": on(ASKED, "decided_at='2020-01-01 00:00:00'", PAID, "approval", "decided_at is 2020"),
    "it stands for something else": on(ASKED, f"digest='{'e' * 64}'", WAITS, "approval", "digest is eeee"),
    "it is open for longer": on(ASKED, "expires_at='2999-01-01 00:00:00'", WAITS, "approval", "expires_at is 2999"),
    "it was escalated": on(
        ASKED, 'SWAP("reasons":|"escalated":true,"reasons":)', WAITS, "approval", "escalated is True"
    ),
    "a vote more": on(
        ASKED,
        'SWAP("reasons":|"votes":[["eve","2026-01-01 00:00:00.000000",null]],"reasons":)',
        WAITS,
        "approval",
        "votes is eve, its events say nobody",
    ),
    "another text": on(ASKED, "approval_message='fine'", WAITS, "approval", "does not carry the mark"),
    "a question that is gone": Forgery(f"DELETE FROM {ASKED} WHERE {WAITS}", "approval", "its row is missing"),
    "a question that is none": on(ASKED, "detail='[]'", WAITS, "approval", "its row cannot be read"),
    "somebody else gave it": on(GRANT, "granted_by='eve'", "1=1", "grant", "granted_by is eve"),
    "given to somebody else": on(GRANT, "requester='eve'", "1=1", "grant", "requester is eve"),
    "valid for longer": on(GRANT, "expires_at='2999-01-01 00:00:00'", "1=1", "grant", "expires_at is 2999"),
    "more uses": on(GRANT, 'SWAP("max_uses":3|"max_uses":9)', "1=1", "grant", "max_uses is 9, its events say 3"),
    "for other arguments": on(GRANT, 'SWAP("nonce":"|"nonce":"0)', "1=1", "grant", "does not carry the mark"),
    "revoked by nobody": on(
        GRANT, "revoked_at='2026-01-01 00:00:00'", "1=1", "grant", "no event tells that it was revoked"
    ),
    "a use is taken back": on(GRANT, 'SWAP("used":[["used"|"used":[["free")', "1=1", "grant", "use by call used"),
    "a use that was none": on(GRANT, 'SWAP("used":[["used"|"used":[["free")', "1=1", "grant", "a use by call free"),
    "a grant that is gone": Forgery(f"DELETE FROM {GRANT}", "grant", "its row is missing"),
    "a grant that is none": on(GRANT, "detail='[]'", "1=1", "grant", "its row cannot be read"),
    "a grant that nobody gave": on(
        GRANT, 'SWAP("call_id":"paid"|"call_id":"free")', "1=1", "grant", "no event tells that it was given"
    ),
    "lent by somebody else": on(LENT, "giver='eve'", LIVE, "delegation", "giver is eve, its events say ann"),
    "lent to somebody else": on(LENT, "delegate='eve'", LIVE, "delegation", "delegate is eve, its events say bob"),
    "lent for longer": on(LENT, "expires_at='2999-01-01 00:00:00'", LIVE, "delegation", "expires_at is 2999"),
    "lent for more tools": on(LENT, 'SWAP("tools":["pay"]|"tools":[])', LIVE, "delegation", "tools is every tool"),
    "lent earlier": on(LENT, "created_at='2020-01-01 00:00:00'", LIVE, "delegation", "created_at is 2020"),
    "lent for another reason": on(LENT, 'SWAP("away"|"fine")', LIVE, "delegation", "does not carry the mark"),
    "an ended delegation revived": on(LENT, "ended_at=NULL", OVER, "delegation", "ended_at is empty, its events say"),
    "a delegation ended by nobody": on(
        LENT, "ended_at='2020-01-01 00:00:00'", LIVE, "delegation", "no event tells that it was ended"
    ),
    "a delegation that is gone": Forgery(f"DELETE FROM {LENT} WHERE {LIVE}", "delegation", "its row is missing"),
    "a delegation that is none": on(LENT, "detail='[]'", LIVE, "delegation", "its row cannot be read"),
    "a delegation that nobody gave": on(
        LENT, 'SWAP("id":"|"id":"0)', LIVE, "delegation", "no event tells that it was given"
    ),
    "a brake that is released": on_mode("ALERT", "NORMAL", "it is NORMAL, its events say ALERT"),
    "a brake over another run": on_mode(r"\"r1", r"\"r2", "it is ALERT, and no event tells"),
    "a brake by somebody else": on_mode("zoe", "eve", "by is eve, its events say zoe"),
    "a mode for another reason": on_mode("drill", "fine", "does not carry the mark"),
    "a mode of another event": on_mode(r"\"event\":", r"\"event\":9", "it is of event"),
    "a mode that is none": on("settings", "value='NORMAL'", "name='mode'", "mode", "its row cannot be read"),
    "a mode that is gone": Forgery("DELETE FROM settings WHERE name='mode'", "mode", "its row is missing"),
    "another kind of account": on("accounts", "kind='admin'", "name='ann'", "account", "kind is admin, its events say"),
    "another role": on("accounts", "roles='{\"*\": []}'", "name='ann'", "account", "roles is"),
    "an account without a mark": on("accounts", "mark=NULL", "name='ann'", "account", "it carries no mark"),
    "an account with a made-up mark": on("accounts", "mark='x:y'", "name='ann'", "account", "its mark does not hold"),
    "an account of another event": on("accounts", "told=99", "name='ann'", "account", "an older row put back"),
    "an account that is none": on("accounts", "kind='god'", "name='ann'", "account", "its row cannot be read"),
    "an account that is gone": Forgery("DELETE FROM accounts WHERE name='bob'", "account", "its row is missing"),
    "an account nobody told of": Forgery(
        "UPDATE accounts SET name='eve' WHERE name='bob'", "account", "no event tells of it"
    ),
    "a wider token": on(
        "tokens", 'scope=\'{"projects": null, "abilities": null}\'', "id='t1'", "token", "projects is None"
    ),
    "a token for longer": on("tokens", "expires_at='2999-01-01 00:00:00'", "id='t1'", "token", "expires_at is 2999"),
    "a token of somebody else": on("tokens", "account='bob'", "id='t1'", "token", "account is bob"),
    "a revoked token revived": on("tokens", "revoked_at=NULL", "id='t2'", "token", "it is not revoked, its events say"),
    "a token ended by nobody": on("tokens", "revoked_at='2026-01-01 00:00:00'", "id='t1'", "token", "it is revoked"),
    "a token under another label": on("tokens", "label='x'", "id='t1'", "token", "its mark does not hold"),
    "a token that is gone": Forgery("DELETE FROM tokens WHERE id='t1'", "token", "its row is missing"),
    "a ticket for longer": on("tokens", "expires_at='2999-01-01 00:00:00'", "id='k1'", "token", "mark does not hold"),
}


async def pay(_given: toolgate.ToolInput) -> ToolOutput:
    return ToolOutput.ok()


async def live(url: str) -> None:
    """Some of everything, through the gate."""
    tools = [ToolDefinition("pay", {}, pay, requires_approval=True), ToolDefinition("look", {}, pay)]
    async with toolgate.open(url, tools=tools) as gate:
        await gate.call("look", call_id="free")
        paid = await gate.call("pay", {"sum": 1}, call_id="paid", wait=False)
        await gate.decide(str(paid.approval_id), "approve", by="ann", remember=Remember(uses=3))
        await gate.wait("paid")
        assert (await gate.call("pay", {"sum": 1}, call_id="used")).success
        denied = await gate.call("pay", {"sum": 5}, call_id="denied", wait=False)
        await gate.decide(str(denied.approval_id), "deny", by="ann")
        edited = await gate.call("pay", {"sum": 6}, call_id="edited", wait=False)
        await gate.approvals.edit(str(edited.approval_id), {"sum": 7}, by="ann")
        await gate.wait("edited")
        await gate.call("pay", {"sum": 8}, call_id="cancelled", wait=False)
        await gate.cancel("cancelled")
        await gate.call("nothing", call_id="unknown")
        waits = await gate.call("pay", {"sum": 9}, call_id="waits", wait=False)
        await gate.approvals.extend(str(waits.approval_id), 900, by="ann")
        await gate.delegations.give("bob", by="ann", seconds=900, tools=["pay"], reason="away")
        ended = await gate.delegations.give("cid", by="ann", seconds=900)
        await gate.delegations.end(ended.id, by="ann")
        await gate.set_mode("ALERT", by="zoe", reason="drill", project="shop", run="r1")
        await gate.set_mode("LOCKDOWN", by="zoe", project="shop")
        await gate.set_mode("NORMAL", by="zoe", project="shop")
    directory = bootstrap.directory(url)
    await directory.put_account(ANN)
    await directory.put_account(Account(name="bob", kind=ANN.kind))
    await directory.put_token(a_token("t1", projects=frozenset({"p"}), expires_at=NOON))
    await directory.put_token(a_token("t2"))
    await directory.put_token(a_token("k1", use=TokenUse.TICKET, parent="t2"))
    await directory.revoke("t2", now=NOON)
    await directory.close()


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lived")
    asyncio.run(live(f"sqlite:///{folder}/t.db"))
    return folder


@pytest.fixture
def database(lived: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(sealing.ENVIRONMENT, raising=False)
    for name in ("t.db", "t.db.key"):
        shutil.copy(lived / name, tmp_path / name)
    return tmp_path / "t.db"


def verify(database: str | Path) -> tuple[int, list[dict[str, Any]]]:
    said = CliRunner().invoke(app, ["audit", "verify", str(database), "--json"])
    found = orjson.loads(said.output)
    assert all(chain["problem"] is None for chain in found["chains"])
    return said.exit_code, found["differences"]


def swapped(sql: str, column: str) -> str:
    """A statement in which SWAP(one|other) stands for a change within the column `detail`."""
    before, found, rest = sql.partition("SWAP(")
    if not found:
        return sql
    words, _, after = rest.partition(") WHERE")
    one, _, other = words.partition("|")
    return f"{before}detail={column.format(one=one, other=other)} WHERE{after}"


def test_what_was_done_through_the_gate_differs_in_nothing(database: Path) -> None:
    assert verify(database) == (0, [])
    database.with_name("t.db.key").unlink()  # without the key too, as of a backup
    assert verify(database) == (0, [])


def test_a_page_of_rows_at_a_time_is_compared(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "PAGE", 2)
    monkeypatch.setattr(people, "PAGE", 1)
    assert verify(database) == (0, [])
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE tool_executions SET started_at='2020-01-01 00:00:00'")
        connection.execute("UPDATE accounts SET kind='admin'")
        connection.commit()
    found = verify(database)[1]
    assert sum(one["kind"] == "call" for one in found) == 8
    assert {one["id"] for one in found if one["kind"] == "account"} == {"ann", "bob"}


@pytest.mark.parametrize("forgery", FORGERIES.values(), ids=FORGERIES)
def test_a_forged_row_is_named(database: Path, forgery: Forgery) -> None:
    with closing(sqlite3.connect(database)) as connection:
        done = connection.execute(swapped(forgery.sql, "replace(detail, '{one}', '{other}')")).rowcount
        connection.commit()
    assert done == 1
    code, found = verify(database)
    assert code == 1
    named = [one for one in found if one["kind"] == forgery.kind and forgery.words in one["what"]]
    assert named, found


@needs_postgres
async def test_every_forged_row_is_named_on_postgresql(postgres_url: str) -> None:
    await live(postgres_url)
    sealer = sealing.load_shared(None)
    connection = await asyncpg.connect(postgres_url)
    await connection.execute("SELECT set_config('toolgate.projects', '*', false)")
    assert await compare_on(connection, sealer) == []
    missed = []
    for name, forgery in FORGERIES.items():
        forging = connection.transaction()
        await forging.start()
        await connection.execute("ALTER TABLE tokens DROP CONSTRAINT fk_tokens_account")
        await connection.execute(swapped(forgery.sql, "replace(detail::text, '{one}', '{other}')::json"))
        found = await compare_on(connection, sealer)
        if not any(one.kind == forgery.kind and forgery.words in one.what for one in found):
            missed.append((name, found))
        await forging.rollback()
    await connection.close()
    assert missed == []
