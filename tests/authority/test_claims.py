"""What an agent says of itself is a claim: it makes no limit wider."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path

import pytest
from tests.unit.interfaces.server.house import House, P, execute, open_house

POLICY = """version: 1
default: by_risk
tools:
  add: {budgets: [{calls: 2, window: 1h, per: run}, {calls: 3, window: 1h, per: session}]}
  pay: {approval: {timeout: 2m}}
"""


@pytest.fixture
async def limited(tmp_path: Path) -> AsyncIterator[House]:
    (tmp_path / "toolgate.yaml").write_text(POLICY, encoding="utf-8")
    async with open_house(policy=tmp_path / "toolgate.yaml") as house:
        yield house


async def outcomes(house: House, who: str, *names: dict[str, str]) -> list[str]:
    client = house.client(who)
    body = execute("add", {"left": 1, "right": 2})
    return [(await client.post(f"{P}/tools/execute", json={**body, **named})).json()["status"] for named in names]


async def test_an_agent_gets_no_new_budget_by_naming_a_new_run_or_session(limited: House) -> None:
    runs = [{"run_id": f"r{number}", "session_id": f"s{number}"} for number in range(4)]
    assert await outcomes(limited, "bot", *runs) == ["completed", "completed", "failed", "failed"]
    assert await outcomes(limited, "ann", *runs) == ["completed"] * 4


@pytest.mark.parametrize(("who", "asked_s", "most_s"), [("bot", 86_400, 121), ("bot", 30, 31), ("ann", 3600, 3601)])
async def test_an_agent_may_shorten_how_long_people_are_asked(
    limited: House, who: str, asked_s: int, most_s: int
) -> None:
    body = execute("pay", {"amount": 1}, wait=False, approval_timeout_seconds=asked_s)
    asked = (await limited.client(who).post(f"{P}/tools/execute", json=body)).json()
    shown = (await limited.client("bob").get(f"{P}/approvals/{asked['approval_id']}")).json()["approval"]
    created, expires = (datetime.fromisoformat(shown[name]) for name in ("created_at", "expires_at"))
    assert most_s - 2 <= (expires - created).total_seconds() <= most_s
