"""What a browser's session may do: with its cookie alone next to nothing, with its key what its account may."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest
from tests.signed_in import Keys, sign_in
from tests.unit.interfaces.server.house import SECRET, House, Listening, P, execute, open_house
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from toolgate.interfaces.server.operations import Operation
from toolgate.interfaces.server.routes import OPERATIONS
from toolgate.interfaces.server.sessions import login_link

STREAM = f"{P}/chat/stream"
NEED_SOMEBODY = [one for one in OPERATIONS if one.verb is not None and not one.takes_bare]


async def browser_of(house: House, who: str, **headers: str) -> tuple[httpx2.AsyncClient, Keys]:
    """A client that is signed in as a browser is."""
    client = house.client(**headers)
    return client, await sign_in(client, house.tokens[who])


def path_of(operation: Operation) -> str:
    return operation.path.replace("{project_id}", "demo").replace("{", "").replace("}", "")


def test_only_one_operation_takes_a_cookie_alone() -> None:
    assert [one.path for one in OPERATIONS if one.takes_bare] == ["/my/projects/{project_id}/chat/stream"]
    assert len(NEED_SOMEBODY) > 50


@pytest.mark.parametrize("operation", NEED_SOMEBODY, ids=lambda one: f"{one.method} {one.path}")
async def test_a_cookie_alone_reads_and_changes_nothing(house: House, operation: Operation) -> None:
    browser, _keys = await browser_of(house, "ann")
    vouched = {"Sec-Fetch-Site": "same-origin", "Origin": house.url}
    for headers in ({}, vouched, {"X-Toolgate-Key": ""}, {"X-Toolgate-Key": "tg_guess"}):
        answer = await browser.request(operation.method, path_of(operation), headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (401, "key_needed")


async def test_a_key_is_of_one_session_and_one_use(house: House) -> None:
    ann, anns = await browser_of(house, "ann")
    again, more = await browser_of(house, "ann")
    _bob, bobs = await browser_of(house, "bob")
    assert (await ann.get("/session", headers=anns.headers)).json()["account"] == "ann"
    path_key = anns.pages.rpartition("/")[2]
    for wrong in (more.key, bobs.key, path_key, house.tokens["ann"]):
        assert (await ann.get("/session", headers={"X-Toolgate-Key": wrong})).status_code == 401
    assert (await ann.get(f"/pages/{anns.key}/approvals")).headers["location"] == "/login"
    assert (await again.get(f"{anns.pages}/approvals")).headers["location"] == "/login"
    nobody = house.client()
    assert (await nobody.get("/session", headers=anns.headers)).status_code == 401
    assert (await nobody.get("/session", headers={"Authorization": f"Bearer {anns.key}"})).status_code == 401
    assert (await nobody.get(f"{anns.pages}/approvals")).headers["location"] == "/login"
    assert (await ann.get(f"{anns.pages}/approvals")).status_code == 200


async def test_a_cookie_is_nowhere_in_what_a_page_is_told(house: House) -> None:
    browser = house.client()
    page = await browser.post("/login", data={"token": house.tokens["ann"]})
    cookie = browser.cookies["toolgate_session"]
    assert cookie not in page.text
    assert page.headers["cache-control"] == "no-store"
    shell = await browser.get("/?project=demo")
    assert all(text not in shell.text for text in (cookie, "tg_"))


async def test_with_a_cookie_alone_a_stream_gives_masked_events_and_no_calls(house: House) -> None:
    browser, keys = await browser_of(house, "ann")
    refused = await browser.get(STREAM, params={"tools": "*"})
    assert (refused.status_code, refused.json()["code"]) == (401, "key_needed")
    async with Listening(browser, STREAM, {}) as bare:
        await bare.ready()
        ann = house.client("ann")
        told = execute("pay", {"amount": 1, "password": SECRET}, wait=False)
        asked = (await ann.post(f"{P}/tools/execute", json=told)).json()
        request = await bare.next("tool.approval_request")
        assert request["approval_id"] == asked["approval_id"]
        assert SECRET not in json.dumps(request)
        await ann.post(f"{P}/tools/execute", json=execute("look", {}, wait=False))
        async with Listening(browser, STREAM, {"headers": keys.headers}) as whole:
            assert (await whole.next("tool.execution_signal"))["tool_name"] == "look"
        await bare.until(lambda: len(house.services.hub.connections) == 1)
        house.services.hub.tell("demo", "ann", "s1", b"event: chat.message\ndata: {}\n\n", keep=True)
        async with Listening(browser, STREAM, {"headers": keys.headers}) as back:
            await back.next("chat.message")
        names = {name for name, _id, _data in bare.heard}
    assert names.isdisjoint({"tool.execution_signal", "chat.message"})


def socket_url(house: House, ticket: str = "") -> str:
    return house.url.replace("http", "ws") + f"/ws?project_id=demo{f'&ticket={ticket}' if ticket else ''}"


async def refused(house: House, ticket: str = "", **headers: str) -> bool:
    """Whether a socket is not opened."""
    try:
        async with connect(socket_url(house, ticket), additional_headers=headers, proxy=None) as connection:
            await connection.recv()
    except (InvalidStatus, ConnectionClosed):
        return True
    return False


async def test_a_socket_takes_a_page_s_ticket_from_its_own_origin_alone(house: House) -> None:
    browser, keys = await browser_of(house, "ann")

    async def ticket() -> str:
        return str((await browser.post(f"{P}/tickets", headers=keys.headers)).json()["ticket"])

    cookie = f"toolgate_session={browser.cookies['toolgate_session']}"
    assert await refused(house, Cookie=cookie, Origin=house.url)
    assert await refused(house, await ticket())
    assert await refused(house, await ticket(), Origin="http://127.0.0.1:9")
    mine = await ticket()
    assert not await refused(house, mine, Origin=house.url)
    assert await refused(house, mine, Origin=house.url)
    stream = await house.client().get(STREAM, params={"ticket": await ticket()})
    assert (stream.status_code, stream.json()["code"]) == (403, "wrong_origin")


async def test_what_a_page_s_ticket_opened_ends_when_its_person_signs_out(house: House) -> None:
    browser, keys = await browser_of(house, "ann")
    ticket = (await browser.post(f"{P}/tickets", headers=keys.headers)).json()["ticket"]
    fetched = {"headers": {"Sec-Fetch-Site": "same-origin"}}
    async with (
        Listening(house.client(), f"{STREAM}?ticket={ticket}", fetched) as opened,
        house.listen("ann") as other,
    ):
        await opened.ready()
        await other.ready()
        await browser.delete("/session", headers=keys.headers)
        await opened.until(lambda: opened.has_ended)
        assert not other.has_ended


@asynccontextmanager
async def for_development() -> AsyncIterator[House]:
    async with open_house(cookie_suffices=True) as house:
        yield house


async def test_for_development_a_cookie_can_be_enough() -> None:
    async with for_development() as house:
        browser, _keys = await browser_of(house, "ann")
        assert (await browser.get("/session")).status_code == 200
        add: Any = execute("add", {"left": 1, "right": 1})
        for headers, status in (
            ({}, 401),
            ({"Sec-Fetch-Site": "same-site", "Origin": house.url}, 401),
            ({"Sec-Fetch-Site": "same-origin"}, 200),
            ({"Origin": house.url}, 200),
        ):
            assert (await browser.post(f"{P}/tools/execute", json=add, headers=headers)).status_code == status


async def test_pages_without_a_script_tell_nobody_where_they_are(house: House) -> None:
    browser, keys = await browser_of(house, "ann")
    for path in ("approvals", "approvals/none"):
        assert (await browser.get(f"{keys.pages}/{path}")).headers["referrer-policy"] == "no-referrer"
    hidden = {"Origin": "null"}
    assert (await browser.post(f"{keys.pages}/brake", data={"mode": "LOCKDOWN"}, headers=hidden)).status_code == 404
    assert (await browser.post("/login", data={"token": "x"}, headers=hidden)).status_code == 403
    assert (await browser.get("/session", headers={**hidden, **keys.headers})).status_code == 403
    ended = await browser.post(f"{keys.pages}/sign-out", headers=hidden)
    assert ended.headers["location"] == "/login"
    assert (await browser.get(f"{keys.pages}/approvals")).headers["location"] == "/login"


async def test_nobody_s_session_is_ended_by_another_sign_in_unless_it_is_said(house: House) -> None:
    browser, keys = await browser_of(house, "ann")
    link = await login_link(house.directory, "bob", now=datetime.now(UTC), session_s=60)
    asked = await browser.post("/login/whose", data={"token": link})
    assert asked.json() == {"account": "bob", "leaves": "ann"}
    for form in ({}, {"leaves": "bob"}, {"leaves": "carol"}):
        told = await browser.post("/login", data={"token": link, **form})
        assert (told.status_code, "ann is signed in here" in told.text) == (409, True)
    assert (await browser.get("/session", headers=keys.headers)).json()["account"] == "ann"
    cookie = browser.cookies["toolgate_session"]
    bobs = await sign_in(browser, link, leaves="ann", key=keys.key)
    assert (await browser.get("/session", headers=bobs.headers)).json()["account"] == "bob"
    left = house.client(Cookie=f"toolgate_session={cookie}")
    assert (await left.get("/session", headers=keys.headers)).status_code == 401


async def test_a_cookie_alone_does_not_end_its_session(house: House) -> None:
    browser, keys = await browser_of(house, "ann")
    thief = house.client(Cookie=f"toolgate_session={browser.cookies['toolgate_session']}")
    await sign_in(thief, house.tokens["bob"], leaves="ann")
    assert (await browser.get("/session", headers=keys.headers)).json()["account"] == "ann"


async def test_asking_whose_a_link_is_does_not_use_it_up(house: House) -> None:
    link = await login_link(house.directory, "bob", now=datetime.now(UTC), session_s=60)
    nobody = house.client()
    for _ in range(3):
        assert (await nobody.post("/login/whose", data={"token": link})).json() == {"account": "bob", "leaves": ""}
    assert (await nobody.post("/login/whose", data={"token": "#ticket=tg_x"})).status_code == 401
    assert (await nobody.post("/login/whose", headers={"Origin": "http://127.0.0.1:9"})).status_code == 403
    await sign_in(nobody, link)
    assert (await nobody.post("/login/whose", data={"token": link})).status_code == 401


async def test_signing_in_again_ends_the_session_before(house: House) -> None:
    browser, keys = await browser_of(house, "ann")
    cookie = browser.cookies["toolgate_session"]
    await sign_in(browser, house.tokens["ann"], key=keys.key)
    old = house.client(Cookie=f"toolgate_session={cookie}", **keys.headers)
    assert (await old.get("/session")).status_code == 401
