"""The agent in a server that is killed in the middle of a conversation: it goes on exactly once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.fake_provider import FakeProvider
from tests.integration.noting import NOTES
from tests.integration.server_process import P, ServerProcess

from toolgate.testing.patience import until


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ServerProcess]:
    monkeypatch.setenv(NOTES, str(tmp_path))
    server = ServerProcess(tmp_path, tools="tests.integration.noting:TOOLS")
    await asyncio.to_thread(server.make_token, "ann", "person")
    yield server
    await server.stop()


async def send(client: httpx2.AsyncClient, content: str) -> str:
    answer = await client.post(f"{P}/chat/messages", json={"content": content, "session_id": "s1"})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["run_id"])


async def until_run(client: httpx2.AsyncClient, run_id: str, *statuses: str) -> dict[str, Any]:
    found: dict[str, Any] = {}

    async def is_there() -> bool:
        found.update((await client.get(f"{P}/chat/runs/{run_id}")).json()["run"])
        return found["status"] in statuses

    await until(is_there)
    return found


async def said(client: httpx2.AsyncClient) -> list[dict[str, Any]]:
    answer = await client.get(f"{P}/chat/conversations/s1/messages")
    return list(answer.json()["messages"])


def notes(server: ServerProcess) -> list[str]:
    file = server.folder / "notes.txt"
    return file.read_text().splitlines() if file.exists() else []


async def test_a_run_that_waits_for_a_person_goes_on_after_a_kill(server: ServerProcess) -> None:
    await server.start()
    async with server.client("ann") as ann:
        run_id = await send(ann, '/tool note {"text": "once"}')
        await until_run(ann, run_id, "waiting")
    await server.kill()
    await server.start()
    async with server.client("ann") as ann:
        assert (await until_run(ann, run_id, "waiting"))["waiting_for"] == [f"{run_id}.1.0"]
        [asked] = (await ann.get(f"{P}/approvals?status=pending")).json()["approvals"]
        answer = await ann.post(f"{P}/approvals/{asked['approval_id']}/approve", json={})
        assert answer.status_code == 200
        run = await until_run(ann, run_id, "completed", "failed", "stopped")
        assert (run["status"], run["steps"]) == ("completed", 2)
        messages = await said(ann)
        assert [one["role"] for one in messages] == ["person", "agent", "tools", "agent"]
        assert "noted once" in messages[-1]["content"]
    assert notes(server) == ["once"]


async def test_a_call_that_ran_when_the_server_was_killed_is_not_made_again(server: ServerProcess) -> None:
    await server.start()
    async with server.client("ann") as ann:
        run_id = await send(ann, '/tool stall {"text": "begun"}')
        await until(lambda: notes(server) == ["begun"])
    await server.kill()
    await server.start()
    async with server.client("ann") as ann:
        run = await until_run(ann, run_id, "completed", "failed", "stopped")
        assert run["status"] == "completed"
        [result] = (await said(ann))[2]["tool_results"]
        assert result["status"] == "unknown"
        assert "Do not repeat it" in result["result"]["advice"]
    assert notes(server) == ["begun"]


async def test_an_answer_that_was_on_its_way_is_asked_for_again(server: ServerProcess) -> None:
    """The second server asks the scripted model: it is ready sooner, and whose model goes on does not matter."""
    paused = {"text": "The beginning of an answer that nobody hears to its end", "pause": True}
    async with FakeProvider([paused]).serving() as provider:
        await server.start(agent_model="openai:m", agent_base_url=f"{provider.url}/v1", agent_key="sk-canary-77")
        async with server.client("ann") as ann:
            run_id = await send(ann, '/tool note {"text": "once"}')
            await until(lambda: len(provider.requests) == 1)
            assert (await until_run(ann, run_id, "running"))["steps"] == 0
        await server.kill()
        assert [request["key"] for request in provider.requests] == ["sk-canary-77"]
    await server.start()
    async with server.client("ann") as ann:
        await until_run(ann, run_id, "waiting")
        [asked] = (await ann.get(f"{P}/approvals?status=pending")).json()["approvals"]
        await ann.post(f"{P}/approvals/{asked['approval_id']}/approve", json={})
        assert (await until_run(ann, run_id, "completed", "failed", "stopped"))["status"] == "completed"
        assert [one["role"] for one in await said(ann)] == ["person", "agent", "tools", "agent"]
    assert notes(server) == ["once"]
    assert b"sk-canary-77" not in server.database.read_bytes()
