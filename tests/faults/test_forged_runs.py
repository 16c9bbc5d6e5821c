"""Whatever somebody writes into the database by hand, nothing runs that no person approved, and nothing runs again."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from tests.postgres import needs_postgres

import toolgate
from toolgate import Gate, ToolDefinition, ToolOutput
from toolgate.kernel.call import Status
from toolgate.testing.patience import until

RAN: list[Any] = []
YES = "UPDATE approval_requests SET status='approved', decided_by_name='ann', decided_at=created_at WHERE"
CALL = "UPDATE tool_executions SET completed_at=NULL,"
APPROVED = "status='APPROVED', approved_at=created_at, owner='dead'"
CLAIMED = "status='EXECUTING', started_at=created_at, owner='dead'"
NEW = "status='PENDING', owner='dead'"
UNASKED = 'SWAP("approval_id":"WAITS"|"approval_id":null)'
TWIN = 'SWAP("approval_id":"WAITS"|"approval_id":"PAID")'
"""The approval of the same call before takes the place of the one that waits."""
WAITS, PAID, FREE = ("call_id='waits'", "call_id='paid'", "call_id='free'")

ATTACKS: dict[str, tuple[str, ...]] = {
    "the call is approved": (f"{CALL} {APPROVED} WHERE {WAITS}",),
    "the call is claimed": (f"{CALL} {CLAIMED} WHERE {WAITS}",),
    "nobody need be asked": (f"{CALL} {APPROVED}, {UNASKED} WHERE {WAITS}",),
    "nobody need be asked, claimed": (f"{CALL} {CLAIMED}, {UNASKED} WHERE {WAITS}",),
    "it is new": (f"{CALL} {NEW}, {UNASKED} WHERE {WAITS}",),
    "a whole yes": (f"{YES} {WAITS}", f"{CALL} {APPROVED} WHERE {WAITS}"),
    "a whole yes, claimed": (f"{YES} {WAITS}", f"{CALL} {CLAIMED} WHERE {WAITS}"),
    "the yes to the same call before": (f"{CALL} {APPROVED}, {TWIN} WHERE {WAITS}",),
    "the yes to the same call before, claimed": (f"{CALL} {CLAIMED}, {TWIN} WHERE {WAITS}",),
    "what ran is approved again": (f"{CALL} {APPROVED} WHERE {PAID}",),
    "what ran is claimed again": (f"{CALL} {CLAIMED} WHERE {PAID}",),
    "what ran is new": (f"{CALL} {NEW} WHERE {PAID}",),
    "what nobody need approve is approved again": (f"{CALL} {APPROVED} WHERE {FREE}",),
    "what nobody need approve is claimed again": (f"{CALL} {CLAIMED} WHERE {FREE}",),
    "what nobody need approve is new": (f"{CALL} {NEW} WHERE {FREE}",),
}


async def pay(given: toolgate.ToolInput) -> ToolOutput:
    RAN.append(given.payload)
    return ToolOutput.ok()


def open_gate(url: str, **options: Any) -> Gate:
    tools = [ToolDefinition("pay", {}, pay, requires_approval=True, **options), ToolDefinition("look", {}, pay)]
    return toolgate.open(url, tools=tools)


async def live(url: str) -> dict[str, str]:
    """One call that a person approved, the same once more, which waits, and one that nobody need approve."""
    RAN.clear()
    async with open_gate(url) as gate:
        paid = await gate.call("pay", {"sum": 1}, call_id="paid", wait=False)
        await gate.decide(str(paid.approval_id), "approve", by="ann")
        assert (await gate.wait("paid")).success
        waits = await gate.call("pay", {"sum": 1}, call_id="waits", wait=False)
        assert (await gate.call("look", call_id="free")).success
    assert len(RAN) == 2
    return {"PAID": str(paid.approval_id), "WAITS": str(waits.approval_id)}


def statement(sql: str, ids: dict[str, str], replace: str) -> str:
    """A statement in which SWAP(one|other) stands for a change within the column `detail`."""
    before, found, rest = sql.partition("SWAP(")
    if not found:
        return sql
    words, _, after = rest.partition(")")
    for name, id in ids.items():
        words = words.replace(name, id)
    one, _, other = words.partition("|")
    return f"{before}detail={replace.format(one=one, other=other)}{after}"


async def nothing_runs(url: str) -> None:
    """Have another process look after what is there."""
    for options in ({}, {"idempotent": True}, {"effects": "read"}):
        async with open_gate(url, **options) as gate:
            await gate.recover()

            async def is_quiet() -> bool:
                calls = [await gate.get(id) for id in ("paid", "waits", "free")]
                return all(call.is_final or call.status is Status.AWAITING_APPROVAL for call in calls)

            await until(is_quiet)
    assert len(RAN) == 2


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
async def test_nothing_runs_because_a_row_says_so(database: Path, attack: tuple[str, ...]) -> None:
    url = f"sqlite:///{database}"
    ids = await live(url)
    with closing(sqlite3.connect(database)) as connection:
        for sql in attack:
            done = connection.execute(statement(sql, ids, "replace(detail, '{one}', '{other}')"))
            assert done.rowcount == 1
        connection.commit()
    await nothing_runs(url)


@needs_postgres
@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
async def test_nothing_runs_because_a_row_says_so_on_postgresql(postgres_url: str, attack: tuple[str, ...]) -> None:
    ids = await live(postgres_url)
    connection = await asyncpg.connect(postgres_url)
    await connection.execute("SELECT set_config('toolgate.projects', '*', false)")
    for sql in attack:
        done = await connection.execute(statement(sql, ids, "replace(detail::text, '{one}', '{other}')::json"))
        assert done == "UPDATE 1"
    await connection.close()
    await nothing_runs(postgres_url)
