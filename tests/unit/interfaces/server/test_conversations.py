"""The server's own agent: messages, conversations and runs over HTTP, for their account alone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.unit.interfaces.server.house import SECRET, House, P, open_house

from toolgate.errors import UsageError
from toolgate.interfaces.server.serve import agent_of, build
from toolgate.interfaces.server.settings import ServerSettings
from toolgate.ports.agent import ResidentAgent
from toolgate.testing.patience import PATIENCE_S


async def send(client: httpx2.AsyncClient, content: str, session: str = "s1") -> Any:
    answer = await client.post(f"{P}/chat/messages", json={"content": content, "session_id": session})
    assert answer.status_code == 202, answer.text
    return answer.json()


async def ended(client: httpx2.AsyncClient, run_id: str) -> Any:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            run = (await client.get(f"{P}/chat/runs/{run_id}")).json()["run"]
            if run["ended_at"] is not None:
                return run
            await asyncio.sleep(0.01)


async def waits(client: httpx2.AsyncClient, run_id: str) -> Any:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            run = (await client.get(f"{P}/chat/runs/{run_id}")).json()["run"]
            if run["status"] == "waiting":
                return run
            await asyncio.sleep(0.01)


async def test_a_conversation_over_http() -> None:
    async with open_house(agent="settings") as house:
        ann = house.client("ann")
        async with house.listen("ann", f"{P}/chat/stream?session_id=s1") as own, house.listen("bob") as other:
            await own.ready()
            await other.ready()
            sent = await send(
                ann, '/tool add {"left": 2, "right": 3}\n/tool pay {"amount": 7, "password": "' + SECRET + '"}'
            )
            asked = await own.next("tool.approval_request")
            busy = await ann.post(f"{P}/chat/messages", json={"content": "and?", "session_id": "s1"})
            assert (busy.status_code, busy.json()["code"]) == (409, "conversation_busy")
            assert (await waits(ann, sent["run_id"]))["waiting_for"] == [asked["tool_id"]]
            approved = await ann.post(f"{P}/approvals/{asked['approval_id']}/approve", json={})
            assert approved.status_code == 200
            async with asyncio.timeout(PATIENCE_S):
                while (told := await own.next("chat.message"))["final"] is False:
                    continue
            assert [one["status"] for one in told["tool_results"]] == ["completed", "completed"]
            assert "returned" in told["answer"]
            assert (told["session_id"], told["run_id"]) == ("s1", sent["run_id"])
            assert SECRET not in str(own.heard) + str(told)
            await other.next("tool.completed")
            assert not [name for name in other.names if name.startswith("chat.")]
        run = await ended(ann, sent["run_id"])
        assert (run["status"], run["steps"]) == ("completed", 2)
        read = (await ann.get(f"{P}/chat/conversations/s1/messages")).json()
        assert [one["role"] for one in read["messages"]] == ["person", "agent", "tools", "agent"]
        assert [one["position"] for one in read["messages"]] == [1, 2, 3, 4]
        assert SECRET not in str(read)
        later = (await ann.get(f"{P}/chat/conversations/s1/messages?after=2&limit=1")).json()
        assert ([one["position"] for one in later["messages"]], later["next"]) == ([3], 3)


async def test_conversations_and_runs_are_listed_for_their_account_alone() -> None:
    async with open_house(agent="settings") as house:
        ann, bob, bot, root = (house.client(who) for who in ("ann", "bob", "bot", "root"))
        runs = [await send(ann, "help", f"s{number}") for number in range(3)]
        for one in runs:
            await ended(ann, one["run_id"])
        listed = (await ann.get(f"{P}/chat/conversations?limit=2")).json()
        assert [one["title"] for one in listed["conversations"]] == ["help", "help"]
        rest = (await ann.get(f"{P}/chat/conversations?before={listed['next']}")).json()
        assert len(rest["conversations"]) == 1
        assert (await bob.get(f"{P}/chat/conversations")).json()["conversations"] == []
        assert (await bot.get(f"{P}/chat/conversations")).json()["conversations"] == [], "though it works for ann"
        found = (await ann.get(f"{P}/chat/runs?status=completed&limit=2")).json()
        assert [one["session_id"] for one in found["runs"]] == ["s2", "s1"]
        assert len((await ann.get(f"{P}/chat/runs?before={found['next']}")).json()["runs"]) == 1
        assert len((await ann.get(f"{P}/chat/runs?session_id=s1")).json()["runs"]) == 1
        foreign = [
            await bob.get(f"{P}/chat/conversations/s1/messages"),
            await bob.get(f"{P}/chat/runs/{runs[0]['run_id']}"),
            await bob.post(f"{P}/chat/runs/{runs[0]['run_id']}/cancel"),
            await bob.get(f"{P}/chat/runs?before={runs[0]['run_id']}"),
            await bob.get(f"{P}/chat/conversations?before=s1"),
            await house.client("eve").get(f"{P}/chat/conversations"),
        ]
        assert [one.status_code for one in foreign] == [404] * 6
        assert (await root.get(f"{P}/chat/runs/{runs[0]['run_id']}")).status_code == 200
        mine = await send(bob, "help", "s1")
        assert (await ended(bob, mine["run_id"]))["status"] == "completed"
        assert len((await ann.get(f"{P}/chat/conversations/s1/messages")).json()["messages"]) == 2


async def test_an_agent_that_works_for_somebody_has_conversations_of_its_own() -> None:
    async with open_house(agent="settings") as house:
        ann, bot = house.client("ann"), house.client("bot")
        said = await send(ann, "help", "s1")
        await ended(ann, said["run_id"])
        async with house.listen("bot", f"{P}/chat/stream?session_id=s1") as own:
            await own.ready()
            sent = await send(bot, '/tool pay {"amount": 7}', "s1")
            asked = await own.next("tool.approval_request")
            approved = await ann.post(f"{P}/approvals/{asked['approval_id']}/approve", json={})
            assert approved.status_code == 200, "its calls are still ann's, too"
            async with asyncio.timeout(PATIENCE_S):
                while (told := await own.next("chat.message"))["final"] is False:
                    continue
        assert told["status"] == "completed"
        assert (await ended(bot, sent["run_id"]))["status"] == "completed"
        foreign = [
            await bot.get(f"{P}/chat/runs/{said['run_id']}"),
            await bot.post(f"{P}/chat/runs/{said['run_id']}/cancel"),
            await ann.get(f"{P}/chat/runs/{sent['run_id']}"),
        ]
        assert [one.status_code for one in foreign] == [404] * 3
        kept = (await ann.get(f"{P}/chat/conversations/s1/messages")).json()["messages"]
        assert [one["content"] for one in kept if one["role"] == "person"] == ["help"]


async def test_a_run_can_be_cancelled() -> None:
    async with open_house(agent="settings") as house:
        ann = house.client("ann")
        sent = await send(ann, '/tool pay {"amount": 7}')
        await waits(ann, sent["run_id"])
        run = (await ann.post(f"{P}/chat/runs/{sent['run_id']}/cancel")).json()["run"]
        assert (run["status"], run["error"]) == ("cancelled", "cancelled by ann")
        assert (await ann.get(f"{P}/approvals?status=pending")).json()["approvals"] == []


async def test_somebody_who_was_removed_does_not_go_on() -> None:
    async with open_house(agent="settings") as house:
        bob = house.client("bob")
        sent = await send(bob, '/tool pay {"amount": 7}')
        run = await waits(bob, sent["run_id"])
        await house.add("bob", "person", ("elsewhere",))
        [asked] = await house.gate.pending()
        await house.gate.decide(asked.id, "approve", by="ann")
        admin = house.client("root")
        ended_run = await ended(admin, run["run_id"])
        assert (ended_run["status"], ended_run["error"]) == ("stopped", "not allowed")


async def test_without_a_resident_agent_nothing_is_kept(house: House) -> None:
    ann = house.client("ann")
    for path in ("conversations", "conversations/s/messages", "runs", "runs/r"):
        answer = await ann.get(f"{P}/chat/{path}")
        assert (answer.status_code, answer.json()["code"]) == (501, "no_agent")


async def test_a_model_that_cannot_be_used_is_said_at_the_start(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for name in ("nonsense", "nowhere:x", "openai:gpt-5"):
        with pytest.raises(UsageError):
            agent_of(ServerSettings(database="memory://", agent_model=name), house.gate)


@pytest.mark.parametrize("is_on", [True, False])
def test_the_agent_can_be_turned_off(is_on: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLGATE_AGENT", str(is_on).lower())
    (tmp_path / "toolgate.yaml").write_text("version: 1\ndefault: ask\n")
    app = build(ServerSettings(database=f"sqlite:///{tmp_path}/t.db", policy=tmp_path))
    services = app.state.services
    assert isinstance(services.agent, ResidentAgent) is is_on
    if is_on:
        asyncio.run(services.agent.close())
    services.gate.close()
    asyncio.run(services.directory.close())
