"""Every verb, by every kind of account, on its own and on others' things, before and after it was demoted."""

from __future__ import annotations

import pytest
from tests.authority.accounts import STATES, WHO, Who, change, come, expected
from tests.authority.requests import REQUESTS, Request, made_by
from tests.unit.interfaces.server.house import House, P

from toolgate.authority import RIGHTS, Verb, Whose
from toolgate.kernel.tool import ToolDefinition
from toolgate.ports.directory import Ability

REFUSED = frozenset({401, 403, 404})
ELSEWHERE = (Verb.JOIN, Verb.REPEAT, Verb.STREAM, Verb.DISPATCH, Verb.OVERSEE, Verb.CHANGE_POLICY, Verb.MAKE_TOKENS)
"""Verbs that are no request of their own: tested beside, or done on the server's machine."""


def cases() -> list[tuple[Who, str]]:
    return [(who, state) for who in WHO for state in STATES]


def tries(who: Who) -> list[tuple[Request, str]]:
    """Each request about what another account made, and, where the account can make things, about its own."""
    makers = ["other", "own"] if Ability.ASK in (who.able("member") or ()) else ["other"]
    return [(request, whose) for request in REQUESTS for whose in makers]


def test_there_are_enough_cases_and_none_is_left_out() -> None:
    assert sum(len(tries(who)) for who, _ in cases()) >= 1000
    assert {request.verb for request in REQUESTS} | set(ELSEWHERE) == set(Verb)
    assert set(RIGHTS) == set(Verb)


@pytest.mark.parametrize(("who", "state"), cases(), ids=lambda value: getattr(value, "name", value))
async def test_the_server_lets_through_whom_the_table_lets_through(house: House, who: Who, state: str) -> None:
    house.gate.register(ToolDefinition("here", {}, placement="caller", effects="read"))
    await come(house, who)
    things = {"other": await made_by(house, "ann")}
    if Ability.ASK in (who.able("member") or ()):
        things["own"] = await made_by(house, who.name)
    await change(house, who, state)
    wrong, client = [], house.client(who.name)
    for request, whose in tries(who):
        path = P + request.path.format(**things[whose])
        answer = await client.request(request.method, path, json=request.body)
        is_own = whose == "own" if request.is_about else None
        refusals = expected(request.verb, who, state, is_own=is_own)
        refused = answer.status_code in REFUSED - (request.also if not refusals else frozenset())
        if refused is not bool(refusals) or (refusals and answer.status_code not in refusals):
            wrong.append((request.verb, path, whose, answer.status_code, sorted(refusals), answer.text[:200]))
    assert wrong == []


@pytest.mark.parametrize("who", WHO, ids=lambda who: who.name)
async def test_what_does_not_exist_is_told_as_what_is_not_theirs(house: House, who: Who) -> None:
    """Somebody who may not know hears the same of an id that exists and of one that does not."""
    house.gate.register(ToolDefinition("here", {}, placement="caller", effects="read"))
    await come(house, who)
    real = await made_by(house, "ann")
    nothing = dict.fromkeys(real, "00000000-0000-7000-8000-000000000000")
    client = house.client(who.name)
    for request in REQUESTS:
        right = RIGHTS[request.verb]
        if right.ability in (who.able("member") or ()) or "{" not in request.path:
            continue
        answers = [
            await client.request(request.method, P + request.path.format(**things), json=request.body)
            for things in (real, nothing)
        ]
        assert answers[0].status_code == answers[1].status_code, request
        assert answers[0].json() == answers[1].json(), request


@pytest.mark.parametrize("who", WHO, ids=lambda who: who.name)
async def test_a_refusal_says_what_is_missing_and_who_has_it(house: House, who: Who) -> None:
    await come(house, who)
    able = who.able("member") or frozenset()
    for verb, method, path in ((Verb.ASK, "POST", "/tools/execute"), (Verb.SET_MODE, "PUT", "/mode")):
        answer = await house.client(who.name).request(method, P + path, json={})
        if able and RIGHTS[verb].ability not in able:
            assert f"{who.name} may not {verb}" in answer.json()["detail"]
            assert f"ability to {RIGHTS[verb].ability}" in answer.json()["detail"]
            assert "admin" in answer.json()["detail"]


def test_every_call_that_is_somebodys_is_asked_for() -> None:
    own = {Whose.OWN, Whose.OWN_OR_DECIDERS}
    about = {request.verb for request in REQUESTS if request.is_about}
    assert about == {verb for verb in (Verb.CLAIM, Verb.CANCEL, Verb.UNDO) if RIGHTS[verb].whose in own}
