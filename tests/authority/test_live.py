"""What is open ends with the right to it: nothing is heard or done by what an account was when it came."""

from __future__ import annotations

import asyncio
import json

import pytest
from tests.authority.accounts import WHO, Who, change, come
from tests.unit.interfaces.server.house import House, P, execute
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from toolgate.kernel.context import PrincipalKind
from toolgate.ports.directory import Ability
from toolgate.testing.patience import PATIENCE_S

MEMBERS = [who for who in WHO if who.able("member")]
LOSSES = ["viewer", "left", "revoked"]
STREAMS = ["/chat/stream?listen=1", "/events", "/inbox"]


def keeps_reading(who: Who, state: str) -> bool:
    """Whether an open stream may go on: nothing of what its account may do there has changed."""
    return who.able(state) == who.able("member")


async def something_happens(house: House) -> str:
    body = execute("add", {"left": 1, "right": 2})
    return str((await house.client("ann").post(f"{P}/tools/execute", json=body)).json()["tool_id"])


@pytest.mark.parametrize("path", STREAMS)
@pytest.mark.parametrize("state", LOSSES)
@pytest.mark.parametrize("who", MEMBERS, ids=lambda who: who.name)
async def test_a_stream_ends_before_the_next_event_is_told(house: House, who: Who, state: str, path: str) -> None:
    await come(house, who)
    headers = {"Accept": "text/event-stream"}
    async with house.listen(who.name, P + path, headers=headers) as stream:
        await stream.ready()
        await something_happens(house)
        await stream.until(lambda: any("tool" in name for name in stream.names))
        before = len(stream.heard)
        await change(house, who, state)
        call_id = await something_happens(house)
        if keeps_reading(who, state):
            await stream.until(lambda: call_id in str(stream.heard[before:]))
        else:
            await stream.until(lambda: stream.has_ended)
            assert call_id not in str(stream.heard)


@pytest.mark.parametrize("state", LOSSES)
@pytest.mark.parametrize("who", MEMBERS, ids=lambda who: who.name)
async def test_a_socket_tells_and_does_nothing_more(house: House, who: Who, state: str) -> None:
    await come(house, who)
    asked = (
        await house.client("ann").post(f"{P}/tools/execute", json=execute("pay", {"amount": 1}, wait=False))
    ).json()
    url = house.url.replace("http", "ws") + "/ws?project_id=demo"
    token = {"Authorization": f"Bearer {house.tokens[who.name]}"}
    heard: list[str] = []
    async with asyncio.timeout(PATIENCE_S), connect(url, additional_headers=token, proxy=None) as socket:
        while '"subscribed"' not in (text := str(await socket.recv())):
            heard.append(text)
        await change(house, who, state)
        able = who.able(state)
        call_id = await something_happens(house)
        decide = {"type": "approval.decide", "request_id": asked["approval_id"], "decision": "approve"}
        try:
            await socket.send(json.dumps(decide))
            while not {"decided", "error"} & {json.loads(text)["type"] for text in heard}:
                heard.append(str(await socket.recv()))
        except ConnectionClosed:
            assert able is None  # the token is gone, and so is the socket
    said = {json.loads(text)["type"] for text in heard}
    may_decide = able is not None and Ability.DECIDE in able
    assert ("decided" in said) is (may_decide and who.kind in (PrincipalKind.PERSON, PrincipalKind.ADMIN))
    if not able:
        assert call_id not in "".join(heard)
    assert (await house.gate.approvals.get(asked["approval_id"])).is_pending is not may_decide


@pytest.mark.parametrize("who", MEMBERS, ids=lambda who: who.name)
async def test_real_parameters_go_to_runners_and_to_who_asked(house: House, who: Who) -> None:
    await come(house, who)
    able = who.able("member") or frozenset()
    async with house.listen(who.name, f"{P}/chat/stream?tools=*") as stream:
        assert stream.response is not None
        assert stream.response.status_code == (200 if Ability.RUN in able else 403)
        if Ability.RUN not in able:
            return
        await stream.ready()
        asked = (await house.client("ann").post(f"{P}/tools/execute", json=execute("far", wait=False))).json()
        if who.kind is PrincipalKind.RUNNER:
            await stream.until(lambda: asked["tool_id"] in str(stream.heard))
            await change(house, who, "left")
            again = (await house.client("ann").post(f"{P}/tools/execute", json=execute("far", wait=False))).json()
            await stream.until(lambda: stream.has_ended)
            assert again["tool_id"] not in str(stream.heard)
        else:
            await something_happens(house)
            await stream.until(lambda: any("tool" in name for name in stream.names))
            assert (await house.gate.calls.get(asked["tool_id"], project="demo")).runner is None


async def test_an_agent_cannot_have_its_call_run_by_naming_a_session(house: House) -> None:
    await house.add("lone", "agent")
    async with house.listen("ann", f"{P}/chat/stream?session_id=s1") as stream:
        await stream.ready()
        body = execute("far", {"path": "/etc"}, session_id="s1", wait=False)
        asked = (await house.client("lone").post(f"{P}/tools/execute", json=body)).json()
        await something_happens(house)
        await stream.until(lambda: any("tool" in name for name in stream.names))
        assert (await house.gate.calls.get(asked["tool_id"], project="demo")).runner is None
