"""What an agent says of itself is a claim: it makes no limit wider."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.unit.interfaces.server.house import House, P, execute, open_house

from toolgate.interfaces.server.hosting import ChatHost
from toolgate.kernel.context import Context
from toolgate.kernel.tool import ToolDefinition
from toolgate.ports.threads import Run
from toolgate.testing.clock import NOON

POLICY = """version: 1
default: by_risk
tools:
  add: {budgets: [{calls: 2, window: 1h, per: run}, {calls: 3, window: 1h, per: session}]}
  pay: {approval: {timeout: 2m}}
  drop: {behaviors: {allowed: [repair]}}
  keep: {behaviors: {forbidden: [practice]}}
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


@pytest.mark.parametrize("field", ["run_id", "session_id"])
async def test_an_agent_names_no_run_or_session_of_somebody_else(limited: House, field: str) -> None:
    await limited.add("lone", "agent")
    for first, second in (("bob", "lone"), ("bob", "bot"), ("lone", "bot")):
        body = execute("pay", {"amount": 1}, wait=False, **{field: f"of-{first}-before-{second}"})
        assert (await limited.client(first).post(f"{P}/tools/execute", json=body)).status_code == 202
        refused = await limited.client(second).post(f"{P}/tools/execute", json=body)
        assert (refused.status_code, refused.json()["code"]) == (403, "not_allowed")
        assert "somebody else's" in refused.json()["detail"]
        assert (await limited.client(first).post(f"{P}/tools/execute", json=body)).status_code == 202


@pytest.mark.parametrize("field", ["run_id", "session_id"])
async def test_an_agent_names_runs_and_sessions_of_who_it_acts_for(limited: House, field: str) -> None:
    body = execute("pay", {"amount": 1}, wait=False, **{field: "anns"})
    for who in ("ann", "bot", "ann"):
        assert (await limited.client(who).post(f"{P}/tools/execute", json=body)).status_code == 202


async def test_an_agent_cannot_take_a_session_away_from_a_person(limited: House) -> None:
    await limited.add("lone", "agent")
    body = execute("pay", {"amount": 1}, wait=False, session_id="s1")
    for who, status in (("lone", 202), ("ann", 202), ("lone", 403), ("bot", 202)):
        assert (await limited.client(who).post(f"{P}/tools/execute", json=body)).status_code == status


@pytest.mark.parametrize(
    ("roles", "behavior", "tool", "ends"),
    [
        ((), "repair", "drop", 403),
        (("behavior:practice",), "repair", "drop", 403),
        (("behavior:practice",), None, "keep", "failed"),  # its only behavior, which it need not say
        (("behavior:practice", "behavior:repair"), None, "keep", 403),
        (("behavior:practice", "behavior:repair"), "repair", "keep", "completed"),
        (("behavior:repair",), "repair", "drop", "awaiting_approval"),
        ((), None, "keep", "completed"),
    ],
)
async def test_an_agent_is_in_no_behavior_that_its_account_does_not_have(
    limited: House, roles: tuple[str, ...], behavior: str | None, tool: str, ends: int | str
) -> None:
    await limited.add("lone", "agent", {"demo": frozenset(roles)})
    params: dict[str, Any] = {"value": 1} if tool == "keep" else {"name": "orders"}
    body = execute(tool, params, wait=False, behavior=behavior)
    answer = await limited.client("lone").post(f"{P}/tools/execute", json=body)
    assert answer.status_code == ends if isinstance(ends, int) else answer.json()["status"] == ends


@pytest.mark.parametrize(
    ("roles", "ends"),
    [((), "completed"), (("behavior:practice",), "failed"), (("behavior:practice", "behavior:repair"), 403)],
)
async def test_an_agent_undoes_in_a_behavior_of_its_account_alone(
    limited: House, roles: tuple[str, ...], ends: int | str
) -> None:
    await limited.add("lone", "agent")
    done = await limited.client("lone").post(f"{P}/tools/execute", json=execute("keep", {"value": 1}))
    await limited.add("lone", "agent", {"demo": frozenset(roles)})
    answer = await limited.client("lone").post(f"{P}/tools/{done.json()['tool_id']}/undo", json={})
    assert answer.status_code == ends if isinstance(ends, int) else answer.json()["status"] == ends


async def test_what_an_agents_account_has_the_servers_agent_do_is_its_claim(limited: House) -> None:
    await limited.add("lone", "agent", {"demo": frozenset({"behavior:practice"})})
    asked = Context(project="demo", principal="lone", behavior="practice")
    run = Run(
        project="demo",
        id="r1",
        account="lone",
        conversation_id="s1",
        message_id="m1",
        context=asked,
        created_at=NOON,
        updated_at=NOON,
    )
    context = await ChatHost(limited.services).context_of(run)
    assert context is not None
    assert (context.claimed, context.behavior) == (True, "practice")
    await limited.add("lone", "agent", {"demo": frozenset({"behavior:repair"})})
    assert await ChatHost(limited.services).context_of(run) is None


async def test_a_result_is_its_runners_even_where_another_knows_the_fence(limited: House) -> None:
    limited.gate.register(ToolDefinition("here", {}, placement="caller", effects="read"))
    asked = (await limited.client("bot").post(f"{P}/tools/execute", json=execute("here", wait=False))).json()["tool_id"]
    fence = "f" * 32
    claimed = await limited.client("bot").post(f"{P}/tools/{asked}/claim", json={"claim_id": fence})
    assert claimed.status_code == 200
    result = {"status": "completed", "result": 1, "fence": fence}
    for path, body in (("result", result), ("progress", {"progress": 0.5, "fence": fence})):
        forged = await limited.client("runner:1").post(f"{P}/tools/{asked}/{path}", json=body)
        assert (forged.status_code, forged.json()["code"]) == (403, "not_allowed")
    assert (await limited.client("bot").post(f"{P}/tools/{asked}/report", json=result)).status_code == 200


async def test_a_stream_names_no_session_that_looks_like_a_secret(limited: House) -> None:
    answer = await limited.client("ann").get(f"{P}/chat/stream?session_id=ghp_{'A' * 36}")
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_id")
