"""Every message of a socket, by every kind of account, on sockets open before and opened after a demotion."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import get_args

import pytest
from tests.authority.accounts import PROJECTS, STATES, WHO, Who, change, come, expected
from tests.authority.sockets import CLOSED, MESSAGES, Said, Talk, talk
from tests.unit.interfaces.server.house import House, execute
from websockets.exceptions import InvalidStatus

from toolgate.interfaces.server.socket import Message

OTHERS = {"demo": "ann", "elsewhere": "eve"}


def tries(who: Who) -> list[tuple[Said, str, str]]:
    """Each message about each project, and about a question of another's and of one's own."""
    found = [(said, project, OTHERS[project]) for said in MESSAGES for project in PROJECTS]
    return found + [
        (said, who.place, who.name) for said in MESSAGES if who.makes_things and "request_id" in said.fields
    ]


def cases() -> int:
    return sum(len(tries(who)) for who in WHO) * len(STATES) * len(("before", "after"))


def test_every_message_there_is_is_tried() -> None:
    assert {said.kind for said in MESSAGES} == set(get_args(Message))


async def question_of(house: House, who: str, project: str) -> str:
    body = execute("pay", {"amount": 1}, wait=False)
    answer = await house.client(who).post(f"/my/projects/{project}/tools/execute", json=body)
    return str(answer.json()["approval_id"])


@pytest.mark.parametrize("who", WHO, ids=lambda who: who.name)
async def test_a_socket_does_what_its_account_may_do_now(house: House, who: Who) -> None:
    wrong = []
    for state in STATES:
        await come(house, who)
        asked = {key: await question_of(house, key[1], key[0]) for key in {(one[1], one[2]) for one in tries(who)}}
        async with AsyncExitStack() as stack:
            before = await stack.enter_async_context(talk(house, who.name))
            await change(house, who, state)
            after = await opened(stack, house, who)
            for name, line in (("before", before), ("after", after)):
                for said, project, maker in tries(who):
                    refusals = frozenset({CLOSED}) if who.able(state) is None else frozenset[int]()
                    if said.verb is not None:
                        refusals = expected(said.verb, who, state, project)
                    message = said.about(project, asked[project, maker])
                    given = CLOSED if line is None else await line.status(message, said.answer)
                    is_right = given in refusals if refusals else given in (200, 409)  # it was answered just before
                    if not is_right:
                        wrong.append((said.kind.__name__, name, project, maker, state, given, sorted(refusals)))
    assert wrong == []


async def opened(stack: AsyncExitStack, house: House, who: Who) -> Talk | None:
    """A new socket; None where it is not let in."""
    try:
        return await stack.enter_async_context(talk(house, who.name))
    except InvalidStatus:
        return None


@pytest.mark.parametrize("who", [who for who in WHO if who.able("member", who.place)], ids=lambda who: who.name)
async def test_a_socket_tells_nothing_more_once_the_right_is_gone(house: House, who: Who) -> None:
    other = OTHERS[who.place]
    for state in STATES:
        await come(house, who)
        async with talk(house, who.name) as line:
            assert await line.status({"type": "subscribe", "project_id": who.place}, "subscribed") == 200
            await change(house, who, state)
            asked = await question_of(house, other, who.place)
            able = who.able(state, who.place)
            if able:
                while asked not in str(line.heard):
                    assert await line.until("approval.requested") is not None
            elif able is None:
                assert await line.until("nothing more") is None
            else:
                assert (await line.until("error") or {}).get("status") == 404
                assert await line.status({"type": "ping"}, "pong") == 200
            assert (asked in str(line.heard)) is bool(able)
