"""Messages to an agent, health and metrics."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.interfaces.server.house import House, P, execute, open_house

import toolgate
from toolgate import bootstrap
from toolgate.adapters.runners.client import ClientRunner
from toolgate.errors import StoreError, UsageError
from toolgate.gate import Gate
from toolgate.interfaces.server.app import create_app
from toolgate.interfaces.server.frames import sse
from toolgate.ports.agent import Say, Turn


class Clerk:
    """An agent that calls one tool and tells what came of it."""

    def __init__(self) -> None:
        self.gate: Gate | None = None
        self.turns: list[Turn] = []

    async def take(self, turn: Turn, say: Say) -> None:
        self.turns.append(turn)
        if turn.content == "break":
            raise RuntimeError("broken")
        assert self.gate is not None
        result = await self.gate.call("far", {"q": turn.content}, context=turn.context)
        await say("chat.message", {"role": "assistant", "content": f"got {result.data}"})


async def test_without_an_agent_nobody_answers(house: House) -> None:
    answer = await house.client("ann").post(f"{P}/chat/messages", json={"content": "hello"})
    assert (answer.status_code, answer.json()["code"]) == (501, "no_agent")


async def test_an_agent_works_for_who_wrote_to_it() -> None:
    clerk = Clerk()
    async with open_house(agent=clerk) as house:
        clerk.gate = house.gate
        ann = house.client("ann")
        async with (
            house.listen("ann", f"{P}/chat/stream?session_id=s1") as own,
            house.listen("bob", f"{P}/chat/stream?session_id=s1") as other,
            house.listen("ann", f"{P}/chat/stream?session_id=s2") as elsewhere,
        ):
            for stream in (own, other, elsewhere):
                await stream.ready()
            sent = await ann.post(f"{P}/chat/messages", json={"content": "look it up", "session_id": "s1"})
            assert (sent.status_code, sent.json()["session_id"]) == (202, "s1")
            signal = await own.next("tool.execution_signal")
            assert signal["tool_params"] == {"q": "look it up"}
            await ann.post(f"{P}/tools/{signal['tool_id']}/result", json={"status": "completed", "result": 42})
            told = await own.next("chat.message")
            assert (told["content"], told["message_id"]) == ("got 42", sent.json()["message_id"])
            assert clerk.turns[0].context.user == "ann"
            await ann.post(f"{P}/chat/messages", json={"content": "break", "session_id": "s1"})
            assert "broken" not in str(await own.next("chat.error"))
            await other.next("tool.completed")
            assert not {"chat.message", "tool.execution_signal"} & {*other.names, *elsewhere.names}


async def test_readiness_follows_the_store(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (await house.client().get("/healthz")).json() == {"status": "ok"}
    assert (await house.client().get("/readyz")).json() == {"status": "ready"}

    async def broken(**_query: object) -> None:
        raise StoreError("the disk is full: /secret/place")

    monkeypatch.setattr(house.gate, "events", broken)
    answer = await house.client().get("/readyz")
    assert (answer.status_code, "secret" in answer.text) == (503, False)
    failed = await house.client("ann").get(f"{P}/events")
    assert (failed.status_code, failed.headers["Retry-After"]) == (503, "1")


async def test_metrics_count_and_name_nobody(house: House) -> None:
    await house.client("bot").post(f"{P}/tools/execute", json=execute("pay", {"amount": 1}, wait=False))
    await house.client("ann").post(f"{P}/tools/execute", json=execute("far", wait=False))
    async with house.listen("ann") as stream:
        await stream.next("tool.execution_signal")
        text = (await house.client().get("/metrics")).text
    assert 'toolgate_http_requests_total{route="/my/projects/{project_id}/tools/execute",status="202"} 2.0' in text
    assert "toolgate_streams 1.0" in text
    assert "toolgate_approvals_pending 1.0" in text
    assert not any(word in text for word in ("ann", "bot", "demo"))


async def test_paths_and_methods_that_are_not_there_are_problems(house: House) -> None:
    ann = house.client("ann")
    missing = await ann.get("/nowhere")
    assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
    wrong = await ann.delete(f"{P}/mode")
    assert (wrong.status_code, wrong.json()["code"]) == (405, "method_not_allowed")


async def test_a_defect_of_ours_is_told_without_its_text(
    house: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_args: object, **_options: object) -> None:
        raise RuntimeError("secret thing")

    monkeypatch.setattr(house.gate, "calls", broken)
    answer = await house.client("ann").get(f"{P}/tools")
    assert (answer.status_code, "secret" in answer.text) == (500, False)


async def test_the_server_needs_a_client_runner() -> None:
    async with toolgate.open("memory://") as gate:
        with pytest.raises(UsageError, match="client runner"):
            create_app(gate, bootstrap.directory("memory://"))


async def test_an_application_leaves_a_gate_it_does_not_own_open() -> None:
    async with toolgate.open("memory://", runners={"client": ClientRunner()}) as gate:
        app = create_app(gate, bootstrap.directory("memory://"))
        async with app.router.lifespan_context(app):
            await asyncio.sleep(0)
        assert await gate.events() == []


async def test_a_message_nobody_heard_is_told_to_who_comes_back(house: House) -> None:
    hub = house.services.hub
    for number, session in enumerate(("s1", "s2", "s1")):
        hub.tell("demo", "ann", session, sse("chat.message", b'{"number": %d}' % number), keep=True)
    hub.tell("demo", "ann", "s1", sse("chat.delta", b"{}"))
    async with house.listen("bob", f"{P}/chat/stream?session_id=s1") as bob:
        await bob.ready()
        async with house.listen("ann", f"{P}/chat/stream?session_id=s1") as ann:
            assert [(await ann.next("chat.message"))["number"] for _ in range(2)] == [0, 2]
            async with house.listen("ann", f"{P}/chat/stream") as second:
                assert (await second.next("chat.message"))["number"] == 1
                await second.ready()
            assert not {"chat.message", "chat.delta"} & {*ann.names, *bob.names}
