"""Streams lose nothing, repeat nothing, and nobody's slowness hurts anybody else."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.unit.interfaces.server.house import SECRET, House, P, execute, open_house

from toolgate import Context
from toolgate.errors import StoreError
from toolgate.interfaces.server import feed as feeds
from toolgate.interfaces.server import hub as hubs
from toolgate.testing.patience import until


async def ask(house: House, amount: int = 1) -> dict[str, Any]:
    body = execute("pay", {"amount": amount, "password": SECRET}, wait=False)
    asked: dict[str, Any] = (await house.client("bot").post(f"{P}/tools/execute", json=body)).json()
    return asked


async def add(house: House, times: int = 1) -> None:
    for _ in range(times):
        await house.gate.call("add", {"left": 1, "right": 1}, context=house_context())


def house_context() -> Context:
    return Context(project="demo", principal="bot")


async def test_a_question_is_sent_as_document_004_shows_it(house: House) -> None:
    async with house.listen("ann") as stream:
        await stream.ready()
        asked = await ask(house)
        told = await stream.next("tool.approval_request")
    assert told["approval_id"] == asked["approval_id"]
    assert told["tool_id"] == asked["tool_id"]
    assert (told["tool_name"], told["risk_level"], told["timeout_seconds"]) == ("pay", "MEDIUM", 300)
    assert told["timeout"] == told["timeout_seconds"]
    assert told["description"].startswith("Run pay(amount=")
    assert datetime.fromisoformat(told["timestamp"]).tzinfo is not None
    assert SECRET not in str(stream.heard) + str(told)


async def test_a_client_that_connects_late_learns_of_pending_questions_once(house: House) -> None:
    asked = [await ask(house, amount) for amount in (1, 2)]
    decided = await ask(house, 3)
    await house.gate.decide(decided["approval_id"], "deny", by="ann", project="demo")
    async with house.listen("ann") as stream:
        await stream.ready()
        requests = [data["approval_id"] for name, _, data in stream.heard if name == "tool.approval_request"]
        assert requests == [one["approval_id"] for one in asked]
        later = await ask(house, 4)
        await stream.until(lambda: sum(name == "tool.approval_request" for name in stream.names) == 3)
        assert [data["approval_id"] for name, _, data in stream.heard if name == "tool.approval_request"][2] == later[
            "approval_id"
        ]


async def test_a_question_asked_while_a_client_connects_is_told_once(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house.listen("ann") as first:
        await first.ready()
        asked: list[str] = []
        pending = house.gate.pending

        async def asked_meanwhile(**query: Any) -> Any:
            if not asked:
                result = await house.gate.call("pay", {"amount": 1}, context=house_context(), wait=False)
                asked.append(str(result.approval_id))
            return await pending(**query)

        monkeypatch.setattr(house.gate, "pending", asked_meanwhile)
        async with house.listen("bob") as second:
            await second.ready()
            await add(house)
            await second.next("tool.completed")
            told = [data["approval_id"] for name, _, data in second.heard if name == "tool.approval_request"]
            assert told == asked


async def test_a_client_resumes_after_the_last_event_it_saw(house: House) -> None:
    await add(house, 3)
    async with house.listen("ann", headers={"Last-Event-ID": "4"}) as stream:
        await stream.until(lambda: len(stream.heard) == 5)
        assert [id for _, id, _ in stream.heard] == [5, 6, 7, 8, 9]
        assert "stream.ready" not in stream.names
    async with house.listen("ann", f"{P}/chat/stream?after=8") as stream:
        await stream.until(lambda: len(stream.heard) == 1)
        assert stream.heard[0][1] == 9


@pytest.mark.parametrize("ring", [1, 4, 2048])
async def test_nothing_is_lost_or_repeated_whatever_the_ring_holds(ring: int) -> None:
    async with open_house(ring_frames=ring) as house:
        await add(house, 20)
        async with house.listen("ann", headers={"Last-Event-ID": "0"}) as stream:
            writing = asyncio.create_task(add(house, 80))
            await stream.until(lambda: len(stream.heard) >= 300)
            await writing
            assert [id for _, id, _ in stream.heard] == list(range(1, 301))


async def test_an_id_from_the_future_begins_now(house: House) -> None:
    async with house.listen("ann", headers={"Last-Event-ID": "999"}) as stream:
        assert (await stream.ready())["last_event_id"] == 0


@pytest.mark.parametrize("header", ["x", "-1", "1" * 30])
async def test_an_id_that_is_none_is_refused(house: House, header: str) -> None:
    answer = await house.client("ann").get(f"{P}/chat/stream", headers={"Last-Event-ID": header})
    assert answer.status_code == 400


async def test_events_are_paged_and_followed_with_their_exact_bodies(house: House) -> None:
    await add(house, 2)
    ann = house.client("ann")
    page = (await ann.get(f"{P}/events", params={"limit": 4})).json()
    rest = (await ann.get(f"{P}/events", params={"after": page["next"]})).json()
    assert [event["seq"] for event in page["events"] + rest["events"]] == [1, 2, 3, 4, 5, 6]
    one = (await ann.get(f"{P}/events", params={"tool_id": page["events"][0]["tool_id"]})).json()
    assert len(one["events"]) == 3
    async with house.listen("ann", f"{P}/events?after=4", headers={"Accept": "text/event-stream"}) as stream:
        await stream.until(lambda: len(stream.heard) == 2)
        assert [(name, id, data["seq"]) for name, id, data in stream.heard] == [
            ("tool.started", 5, 5),
            ("tool.completed", 6, 6),
        ]


async def test_silence_is_broken_by_heartbeats() -> None:
    async with open_house(heartbeat_s=0.05) as house, house.listen("ann") as stream:
        assert await stream.next("comment") == "heartbeat"


async def test_a_client_that_takes_nothing_is_cut_off_and_others_are_not() -> None:
    async with open_house(slow_s=0.3, heartbeat_s=60) as house, house.listen("bob") as quick:
        await quick.ready()
        slow = _deaf(house)
        await until(lambda: len(house.services.hub.connections) == 2)
        writing = asyncio.create_task(_shout(house, lambda: house.services.hub.cut_count == 0))
        await until(lambda: house.services.hub.cut_count == 1)
        await writing
        await until(lambda: len(house.services.hub.connections) == 1)
        await add(house)
        head = (await house.gate.events(project="demo", after=0, limit=100_000))[-1].seq
        await quick.until(lambda: quick.heard[-1][1] == head)
        slow.close()


async def _shout(house: House, go_on: Callable[[], bool]) -> None:
    """Make events until told otherwise, each as large as an event gets."""
    while go_on():
        await add(house, 20)
        await asyncio.sleep(0)  # calls in memory never wait


def _deaf(house: House) -> socket.socket:
    """A client that asks for a stream and never reads."""
    host, port = house.url.removeprefix("http://").split(":")
    deaf = socket.socket()
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    deaf.connect((host, int(port)))
    token = house.tokens["ann"]
    deaf.send(f"GET {P}/chat/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
    return deaf


async def test_one_account_cannot_take_all_streams() -> None:
    async with open_house(max_streams_per_account=1, max_streams=2) as house:
        async with house.listen("ann") as first:
            await first.ready()
            assert (await house.client("ann").get(f"{P}/chat/stream")).status_code == 429
            async with house.listen("bob") as second:
                await second.ready()
                assert (await house.client("root").get(f"{P}/chat/stream")).status_code == 429
        await until(lambda: not house.services.hub.connections)


async def test_a_stream_ends_when_its_token_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "CHECK_S", 0.0)
    async with (
        open_house(heartbeat_s=0.1) as house,
        house.listen("ann") as revoked,
        house.listen("bob") as moved,
        house.listen("root") as kept,
    ):
        for stream in (revoked, moved, kept):
            await stream.ready()
        token = (await house.directory.tokens(account="ann"))[0]
        await house.directory.revoke(token.id, now=datetime.now(UTC))
        await house.add("bob", "person", ("elsewhere",))
        await revoked.until(lambda: revoked.has_ended)
        await moved.until(lambda: moved.has_ended)
        assert not kept.has_ended


async def test_a_feed_nobody_listens_to_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "IDLE_S", 0.05)
    async with open_house(heartbeat_s=0.1) as house:
        async with house.listen("ann") as stream:
            await stream.ready()
            assert len(house.services.hub._feeds) == 1
        await until(lambda: not house.services.hub._feeds)


async def test_a_shutdown_lets_streams_go_and_answers_who_waits(house: House) -> None:
    async with house.listen("ann") as stream:
        await stream.ready()
        bot = house.client("bot")
        waiting = asyncio.create_task(bot.post(f"{P}/tools/execute", json=execute("pay", {"amount": 1})))
        await stream.next("tool.approval_request")
        house.services.hub.drain()
        await stream.until(lambda: stream.has_ended)
        told = await waiting
        assert (told.status_code, told.json()["status"]) == (202, "awaiting_approval")
        assert (await house.client().get("/readyz")).status_code == 503
        assert (await house.client("ann").get(f"{P}/chat/stream")).status_code == 503


async def test_a_runner_that_may_not_run_is_refused(house: House) -> None:
    assert (await house.client("bot").get(f"{P}/chat/stream?tools=far")).status_code == 403
    async with house.listen("bot") as stream:
        await stream.ready()
        await house.client("bot").post(f"{P}/tools/execute", json=execute("far", wait=False))
        await stream.next("tool.started")
        assert "tool.execution_signal" not in stream.names


async def test_a_feed_goes_on_after_the_store_failed(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "AGAIN_S", 0.01)
    events, broken = house.gate.events, [True, True]

    async def flaky(**query: Any) -> Any:
        if broken:
            broken.pop()
            raise StoreError("the disk is away")
        return await events(**query)

    monkeypatch.setattr(house.gate, "events", flaky)
    async with house.listen("ann") as stream:
        await stream.ready()
        await add(house)
        await stream.next("tool.completed")


def far(session_id: str | None = None) -> dict[str, Any]:
    return execute("far", wait=False) | ({} if session_id is None else {"session_id": session_id})


async def test_a_stream_that_only_listens_is_never_given_a_call(house: House) -> None:
    async with (
        house.listen("ann", f"{P}/chat/stream?listen=1&session_id=s") as named,
        house.listen("ann", f"{P}/chat/stream?listen=1") as stream,
    ):
        await named.ready()
        await stream.ready()
        asked = (await house.client("ann").post(f"{P}/tools/execute", json=far("s"))).json()
        assert (await stream.next("tool.started"))["tool_id"] == asked["tool_id"]
        assert house.services.clients.waiting_count == 1
        async with house.listen("runner:1", f"{P}/chat/stream?tools=far") as runner:
            assert (await runner.next("tool.execution_signal"))["tool_id"] == asked["tool_id"]
            await house.client("runner:1").post(f"{P}/tools/{asked['tool_id']}/result", json={"status": "completed"})
        await stream.next("tool.completed")
        await named.next("tool.completed")
        assert not [name for name in stream.names + named.names if name.endswith("_signal")]


async def test_a_stream_that_passes_nothing_runs_the_calls_of_its_own_account(house: House) -> None:
    async with house.listen("ann") as stream, house.listen("bob") as other:
        await stream.ready()
        await other.ready()
        asked = (await house.client("ann").post(f"{P}/tools/execute", json=far())).json()
        assert (await stream.next("tool.execution_signal"))["tool_id"] == asked["tool_id"]
        assert "tool.execution_signal" not in other.names


@pytest.mark.parametrize("query", ["", "?listen=1"])
async def test_an_agents_stream_runs_nothing_whatever_it_passes(house: House, query: str) -> None:
    async with house.listen("bot", f"{P}/chat/stream{query}") as stream:
        await stream.ready()
        await house.client("bot").post(f"{P}/tools/execute", json=far())
        await stream.next("tool.started")
        assert house.services.clients.waiting_count == 1
        assert "tool.execution_signal" not in stream.names


async def test_who_only_listens_names_no_tools(house: House) -> None:
    answer = await house.client("ann").get(f"{P}/chat/stream?listen=1&tools=far")
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
