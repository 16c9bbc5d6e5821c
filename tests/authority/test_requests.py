"""Every verb by request, by every kind of account, on its own and on others' things, before and after a demotion."""

from __future__ import annotations

import pytest
from tests.authority.accounts import HOME, PROJECTS, STATES, WHO, Who, change, come, expected
from tests.authority.requests import OWN_ALONE, REQUESTS, Request, made_by, reads_all
from tests.unit.interfaces.server.house import House

from toolgate.authority import RIGHTS, Verb, Whose
from toolgate.interfaces.server.routes import OPERATIONS

REFUSED = frozenset({401, 403, 404})
BASE = f"/my/projects/{HOME}"
MAKERS = {HOME: "ann", "elsewhere": "eve"}
Things = dict[tuple[str, str], dict[str, str]]


def tries(who: Who) -> list[tuple[Request, str, str]]:
    """Each request in each project: about what another account made there, about its own, and what is not there."""
    found = [(request, project, "other") for request in REQUESTS for project in PROJECTS]
    if who.makes_things:
        found += [(request, who.place, "own") for request in REQUESTS]
    return found + [(request, HOME, "stray") for request in REQUESTS if request.names_something]


def cases() -> int:
    return sum(len(tries(who)) for who in WHO) * len(STATES)


async def things_for(house: House, who: Who) -> Things:
    things = {(project, "other"): await made_by(house, maker, project) for project, maker in MAKERS.items()}
    things[HOME, "stray"] = things["elsewhere", "other"]  # ids of another project
    if who.makes_things:
        things[who.place, "own"] = await made_by(house, who.name, who.place)
    return things


@pytest.mark.parametrize("who", WHO, ids=lambda who: who.name)
async def test_the_server_lets_through_whom_the_table_lets_through(house: House, who: Who) -> None:
    await come(house, who)
    things = await things_for(house, who)
    wrong = []
    for state in STATES:
        await come(house, who)
        await change(house, who, state)
        client = house.client(who.name)
        for request, project, whose in tries(who):
            path, body = request.filled(things[project, whose])
            answer = await client.request(request.method, f"/my/projects/{project}{path}", json=body)
            refusals = request.refusals(who, state, project, is_own=whose == "own")
            if whose == "stray":
                refusals = refusals if refusals & {401} or not reads_all(who, state, project) else refusals | {404}
            given, other = answer.status_code, request.also if not refusals else frozenset()
            if (refusals and given not in refusals) or (not refusals and given in REFUSED - other) or given >= 500:
                wrong.append((request.verb, path, project, state, whose, given, sorted(refusals), answer.text[:200]))
    assert wrong == []


def test_every_request_there_is_is_tried() -> None:
    def shape(path: str) -> list[str]:
        return ["{}" if part.startswith("{") else part for part in path.split("/")]

    tried = {(one.method, "/".join(shape(one.path.replace("/none", "/{}")))) for one in (*REQUESTS, OWN_ALONE)}
    served = {
        (one.method, "/".join(shape(one.path.removeprefix("/my/projects/{project_id}"))))
        for one in OPERATIONS
        if one.stream is None and "{project_id}" in one.path
    }
    assert served == tried


async def test_what_does_not_exist_is_told_as_what_is_not_theirs(house: House) -> None:
    """Somebody who may not know hears the same of an id that exists and of one that does not."""
    real = await made_by(house, "ann", HOME)
    nothing = dict.fromkeys(real, "00000000-0000-7000-8000-000000000000")
    for who in WHO:
        await come(house, who)
        client = house.client(who.name)
        for request in (*REQUESTS, OWN_ALONE):
            may_know = not expected(request.verb, who, "member")
            if not request.names_something or (may_know and request is not OWN_ALONE):
                continue
            answers = [
                await client.request(request.method, BASE + request.path.format(**things), json=request.body)
                for things in (real, nothing)
            ]
            assert answers[0].status_code == answers[1].status_code, (who, request)
            assert answers[0].json() == answers[1].json(), (who, request)


async def test_a_refusal_says_what_is_missing_and_who_has_it(house: House) -> None:
    made = await made_by(house, "ann", HOME)
    for who in WHO:
        await come(house, who)
        for request in REQUESTS:
            if expected(request.verb, who, "member") != {403}:
                continue
            path, body = request.filled(made)
            answer = await house.client(who.name).request(request.method, BASE + path, json=body)
            lacked = next(verb for verb in request.asks if expected(verb, who, "member"))
            assert f"{who.name} may not {lacked}" in answer.json()["detail"], request
            assert f"ability to {RIGHTS[lacked].ability}" in answer.json()["detail"], request
            assert "admin" in answer.json()["detail"], request


def test_every_call_that_is_somebodys_is_asked_for() -> None:
    own = {Whose.OWN, Whose.OWN_OR_DECIDERS}
    about = {request.verb for request in REQUESTS if request.is_about and not request.is_overseen}
    assert about == {verb for verb in (Verb.JOIN, Verb.CLAIM, Verb.CANCEL, Verb.UNDO) if RIGHTS[verb].whose in own}
