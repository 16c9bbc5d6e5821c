"""Deciding and listening over a WebSocket, with the messages of document 000."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.unit.interfaces.server.house import House, P, execute, open_house
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from toolgate.kernel.context import PrincipalKind
from toolgate.ports.directory import Account


class Talk:
    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.heard: list[dict[str, Any]] = []

    async def say(self, **message: Any) -> None:
        await self.connection.send(json.dumps(message))

    async def next(self, kind: str) -> dict[str, Any]:
        while True:
            message = json.loads(await self.connection.recv())
            if message["type"] == kind:
                return dict(message)
            self.heard.append(message)


@asynccontextmanager
async def talk(house: House, who: str, query: str = "?project_id=demo", **headers: str) -> AsyncIterator[Talk]:
    headers["Authorization"] = f"Bearer {house.tokens[who]}"
    url = house.url.replace("http", "ws") + "/ws" + query
    async with connect(url, additional_headers=headers, proxy=None) as connection:
        yield Talk(connection)


async def ask(house: House) -> dict[str, Any]:
    asked = await house.client("bot").post(f"{P}/tools/execute", json=execute("pay", {"amount": 1}, wait=False))
    return dict(asked.json())


@pytest.mark.parametrize(("decision", "status"), [("approve", "approved"), ("deny", "rejected")])
async def test_a_person_decides_as_document_000_says(house: House, decision: str, status: str) -> None:
    async with talk(house, "ann") as ann:
        await ann.next("subscribed")
        asked = await ask(house)
        question = await ann.next("approval.requested")
        assert question["request_id"] == asked["approval_id"]
        await ann.say(type="approval.decide", request_id=asked["approval_id"], decision=decision)
        told = await ann.next("decided")
        assert (told["request_id"], told["status"]) == (asked["approval_id"], status)
        decided = await ann.next("approval.decided")
        assert decided["decided_by"] == "ann"
        await ann.say(type="approval.decide", request_id=asked["approval_id"], decision="approve")
        late = await ann.next("error")
        assert (late["status"], late["request_id"]) == (409, asked["approval_id"])
        assert (late["decided"]["status"], late["decided"]["decided_by"]) == (status, "ann")
        assert {"decided_at", "reason", "votes"} <= late["decided"].keys()


async def test_open_questions_are_told_to_who_subscribes_late(house: House) -> None:
    asked = await ask(house)
    async with talk(house, "ann", "") as ann:
        await ann.say(type="subscribe", project_id="demo")
        await ann.next("subscribed")
        question = await ann.next("approval.requested")
        assert (question["request_id"], question["options"]) == (asked["approval_id"], ["approve", "deny"])
        await ann.say(type="unsubscribe", project_id="demo")
        await ann.say(type="unsubscribe", project_id="demo")
        await ann.say(type="ping")
        await ann.next("pong")


async def test_a_subscription_resumes_after_an_event(house: House) -> None:
    await house.client("bot").post(f"{P}/tools/execute", json=execute("add", {"left": 1, "right": 1}))
    async with talk(house, "ann", "") as ann:
        await ann.say(type="subscribe", project_id="demo", after=1)
        await ann.next("subscribed")
        assert [(await ann.next(name))["id"] for name in ("tool.started", "tool.completed")] == [2, 3]


async def test_who_may_not_decide_is_told_so_and_nothing_happens(house: House) -> None:
    asked = await ask(house)
    before = await house.gate.events(project="demo")
    for who, status in (("bot", 403), ("eve", 404)):
        async with talk(house, who, "") as other:
            await other.say(type="approval.decide", request_id=asked["approval_id"], decision="approve")
            assert (await other.next("error"))["status"] == status
            await other.say(type="approval.decide", request_id="nowhere", decision="approve")
            assert (await other.next("error"))["status"] == 404
    assert await house.gate.events(project="demo") == before


async def test_a_stranger_hears_nothing_of_a_project(house: House) -> None:
    async with talk(house, "eve") as eve:
        assert (await eve.next("error"))["status"] == 404
        await eve.say(type="subscribe", project_id="demo")
        assert (await eve.next("error"))["status"] == 404


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{", "invalid_json"),
        ('{"type": "dance"}', "invalid_request"),
        ('{"type": "approval.decide", "request_id": "x", "decision": "maybe"}', "invalid_request"),
        ('{"type": "ping", "type": "ping"}', "invalid_json"),
        ('"' + "x" * 70_000 + '"', "too_large"),
    ],
)
async def test_a_message_that_does_not_fit_is_answered_and_forgotten(house: House, text: str, code: str) -> None:
    async with talk(house, "ann", "") as ann:
        await ann.connection.send(text)
        assert (await ann.next("error"))["code"] == code
        await ann.say(type="ping")
        await ann.next("pong")


async def test_a_reason_that_is_missing_is_asked_for(house: House) -> None:
    answer = await house.client("bot").post(f"{P}/tools/execute", json=execute("drop", {"name": "x"}, wait=False))
    async with talk(house, "bob", "") as bob:
        request_id = answer.json()["approval_id"]
        await bob.say(type="approval.decide", request_id=request_id, decision="deny")
        told = await bob.next("error")
        assert (told["status"], told["request_id"]) == (400, request_id)


async def test_nobody_connects_without_a_token_or_from_a_foreign_page(house: House) -> None:
    url = house.url.replace("http", "ws") + "/ws"
    with pytest.raises((InvalidStatus, ConnectionClosed)):
        async with connect(url, proxy=None) as connection:
            await connection.recv()
    with pytest.raises((InvalidStatus, ConnectionClosed)):
        async with talk(house, "ann", Origin="http://evil.example") as ann:
            await ann.connection.recv()


async def test_a_ticket_opens_one_socket(house: House) -> None:
    ticket = (await house.client("ann").post(f"{P}/tickets")).json()["ticket"]
    url = house.url.replace("http", "ws") + f"/ws?project_id=demo&ticket={ticket}"
    async with connect(url, proxy=None) as connection:
        assert json.loads(await connection.recv())["type"] == "subscribed"
    with pytest.raises((InvalidStatus, ConnectionClosed)):
        async with connect(url, proxy=None) as connection:
            await connection.recv()


async def test_a_socket_of_somebody_in_a_named_project_stays_open(house: House) -> None:
    async with talk(house, "ann") as ann, talk(house, "bob", "") as bob:
        await ann.next("subscribed")
        await house.services.hub._check_callers(house.services.hub.connections)
        for person in (ann, bob):
            await person.say(type="ping")
            await person.next("pong")
        asked = await ask(house)
        assert (await ann.next("approval.requested"))["request_id"] == asked["approval_id"]


async def test_a_socket_leaves_a_project_its_person_left(house: House) -> None:
    async with talk(house, "ann") as ann:
        await ann.next("subscribed")
        await house.directory.put_account(Account(name="ann", kind=PrincipalKind.PERSON, roles={"other": frozenset()}))
        await house.services.hub._check_callers(house.services.hub.connections)
        assert (await ann.next("error"))["project_id"] == "demo"
        await ask(house)
        await ann.say(type="subscribe", project_id="other")
        assert (await ann.next("subscribed"))["project_id"] == "other"
        assert ann.heard == []


async def test_rights_are_those_of_the_moment_a_message_comes(house: House) -> None:
    async with talk(house, "ann") as ann:
        await ann.next("subscribed")
        asked = await ask(house)
        viewer = Account(name="ann", kind=PrincipalKind.PERSON, roles={"demo": frozenset({"viewer"})})
        await house.directory.put_account(viewer)
        await ann.say(type="approval.decide", request_id=asked["approval_id"], decision="approve")
        assert (await ann.next("error"))["status"] == 403
        assert len(await house.gate.pending(project="demo")) == 1


async def test_a_socket_ends_with_the_token_it_was_opened_with(house: House) -> None:
    async with talk(house, "ann") as ann:
        await ann.next("subscribed")
        [token] = await house.directory.tokens(account="ann")
        await house.directory.revoke(token.id, now=datetime.now(UTC))
        await ann.say(type="ping")
        with pytest.raises(ConnectionClosed):
            await ann.next("pong")


async def test_a_shutdown_closes_sockets(house: House) -> None:
    async with talk(house, "ann") as ann:
        await ann.next("subscribed")
        house.services.hub.drain()
        with pytest.raises(ConnectionClosed):
            await ann.next("never")


async def test_a_socket_that_talks_too_much_is_told_to_wait() -> None:
    async with open_house(requests_per_second=0.001, request_burst=2) as house, talk(house, "ann", "") as ann:
        for _ in range(3):
            await ann.say(type="ping")
        assert (await ann.next("error"))["status"] == 429


async def test_a_socket_listens_to_so_many_projects_only(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolgate.interfaces.server.socket.MOST_SUBSCRIPTIONS", 1)
    async with talk(house, "root") as root:
        await root.next("subscribed")
        await root.say(type="subscribe", project_id="other")
        assert (await root.next("error"))["status"] == 429
