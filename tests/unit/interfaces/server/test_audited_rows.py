"""The server's check of the chain names the rows that say something else than their events."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.unit.interfaces.server.house import House, P, execute, open_house


def write(database: Path, sql: str) -> None:
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute(sql).rowcount == 1
        connection.commit()


async def verified(house: House, **body: Any) -> list[str]:
    answer = (await house.client("ann").post(f"{P}/audit/verify", json=body)).json()
    assert answer["problem"] is None
    return [f"{one['kind']} {one['id']}: {one['what']}" for one in answer["differences"]]


async def test_a_forged_row_is_named_beside_a_whole_chain_until_it_is_put_right(database: Path) -> None:
    async with open_house(f"sqlite:///{database}") as house:
        await house.client("bot").post(f"{P}/tools/execute", json=execute("add", {"left": 1, "right": 2}, tool_id="c1"))
        asked = execute("pay", {"amount": 5}, tool_id="c2", wait=False)
        approval = (await house.client("bot").post(f"{P}/tools/execute", json=asked)).json()["approval_id"]
        assert await verified(house) == []
        write(database, "UPDATE tool_executions SET status='FAILED', version=version + 1 WHERE call_id='c1'")
        write(database, "UPDATE approval_requests SET approval_message='fine' WHERE call_id='c2'")
        write(database, "UPDATE tool_executions SET version=version + 1 WHERE call_id='c2'")
        assert await verified(house) == []  # no event tells of them: they are looked at again from the start
        assert await verified(house, restart=True) == [
            "call c1: status is FAILED, its events say COMPLETED",
            f"approval {approval}: it does not carry the mark of this gate",
        ]
        write(database, "UPDATE tool_executions SET status='COMPLETED', version=version + 1 WHERE call_id='c1'")
        found = (await house.client("ann").get(f"{P}/audit")).json()
        assert len(found["differences"]) == 2
        assert await verified(house) == [f"approval {approval}: it does not carry the mark of this gate"]
