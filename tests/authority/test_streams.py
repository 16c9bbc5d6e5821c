"""Every stream of events, by every kind of account: opened after a demotion, and open while it happens."""

from __future__ import annotations

from contextlib import AsyncExitStack
from itertools import product

import pytest
from tests.authority.accounts import LOSSES, PROJECTS, STATES, WHO, Who, change, come, expected
from tests.unit.interfaces.server.house import House, Listening, execute

from toolgate.authority import Verb
from toolgate.interfaces.server.routes import OPERATIONS
from toolgate.kernel.context import PrincipalKind
from toolgate.ports.directory import Ability

STREAMS = [one.path.removeprefix("/my/projects/{project_id}") for one in OPERATIONS if one.stream is not None]
QUERIES = ("?listen=1", "", "?tools=*")
"""How a stream says what it is for: to listen, to run what its person asks for, to run what anybody does."""
OTHERS = {"demo": "ann", "elsewhere": "eve"}
ACCEPT = {"Accept": "text/event-stream"}


def doors() -> list[tuple[str, str]]:
    """Each stream with the verb it takes; one that names tools is there to run them."""
    return [(path + query, query) for path, query in product(STREAMS, QUERIES) if path == "/chat/stream" or not query]


def cases() -> int:
    opened = len(WHO) * len(STATES) * len(PROJECTS) * len(doors())
    open_before = len(members()) * len(LOSSES) * len(STREAMS)
    given = len(members()) * len(MAKERS) * len(QUERIES)
    return opened + open_before + given


def members() -> list[Who]:
    return [who for who in WHO if who.able("member", who.place)]


async def something_happens(house: House, project: str) -> str:
    body = execute("add", {"left": 1, "right": 2})
    answer = await house.client(OTHERS[project]).post(f"/my/projects/{project}/tools/execute", json=body)
    return str(answer.json()["tool_id"])


async def test_a_stream_begins_for_whom_the_table_lets_in(house: House) -> None:
    wrong = []
    for who, state in product(WHO, STATES):
        await come(house, who)
        await change(house, who, state)
        for project, (path, query) in product(PROJECTS, doors()):
            verb = Verb.DISPATCH if query == "?tools=*" else Verb.STREAM
            async with house.listen(who.name, f"/my/projects/{project}{path}", headers=ACCEPT) as stream:
                assert stream.response is not None
                given, refusals = stream.response.status_code, expected(verb, who, state, project)
            if given not in (refusals or {200}):
                wrong.append((who.name, state, project, path, given, sorted(refusals)))
    assert wrong == []


@pytest.mark.parametrize("who", members(), ids=lambda who: who.name)
async def test_a_stream_ends_before_the_next_event_is_told(house: House, who: Who) -> None:
    for state in LOSSES:
        await come(house, who)
        async with AsyncExitStack() as stack:
            streams = [await opened(stack, house, who, path) for path in STREAMS]
            await change(house, who, state)
            call_id = await something_happens(house, who.place)
            for stream in streams:
                is_over = who.able(state, who.place) != who.able("member", who.place)
                assert await tells(stream, call_id) is not is_over, state
                assert stream.has_ended is is_over, state


async def tells(stream: Listening, call_id: str) -> bool:
    """Whether a stream tells of a call before it ends."""
    await stream.until(lambda: stream.has_ended or call_id in str(stream.heard))
    return call_id in str(stream.heard)


async def opened(stack: AsyncExitStack, house: House, who: Who, path: str) -> Listening:
    listening = house.listen(who.name, f"/my/projects/{who.place}{path}", headers=ACCEPT)
    stream = await stack.enter_async_context(listening)
    await stream.ready()
    return stream


MAKERS = ("other", "own", "for them")


@pytest.mark.parametrize("who", members(), ids=lambda who: who.name)
async def test_real_parameters_go_to_runners_and_to_who_asked(house: House, who: Who) -> None:
    """What a stream is given to run, and what it is not given any more once its account may not."""
    await come(house, who)
    await house.add("helper", "agent", (who.place,), acts_for=who.name)
    makers = {"other": OTHERS[who.place], "own": who.name, "for them": "helper"}
    able = who.able("member", who.place) or frozenset()
    for query, (whose, maker) in product(QUERIES, makers.items()):
        is_runner = who.kind is PrincipalKind.RUNNER and query == "?tools=*"
        takes = Ability.RUN in able and query != "?listen=1" and (is_runner or whose != "other")
        if (whose == "own" and not who.makes_things) or (query == "?tools=*" and Ability.RUN not in able):
            continue  # it asks for nothing; its stream is refused
        async with house.listen(who.name, f"/my/projects/{who.place}/chat/stream{query}") as stream:
            await stream.ready()
            assert (await is_taken(house, stream, maker, who.place)) is takes, (query, whose)
        if takes:
            await losing(house, who, query, maker)


async def is_taken(house: House, stream: Listening, maker: str, project: str) -> bool:
    """Whether a call that somebody makes now is given to this stream."""
    path = f"/my/projects/{project}/tools/execute"
    asked = (await house.client(maker).post(path, json=execute("far", wait=False))).json()["tool_id"]
    after = await something_happens(house, project)
    await stream.until(lambda: stream.has_ended or after in str(stream.heard))
    is_given = any(asked in str(data) for name, _, data in stream.heard if name == "tool.execution_signal")
    held_by = (await house.gate.calls.get(asked, project=project)).runner
    assert (held_by is not None) is is_given
    await house.gate.cancel(asked, project=project, wait=False)
    return is_given


async def losing(house: House, who: Who, query: str, maker: str) -> None:
    async with house.listen(who.name, f"/my/projects/{who.place}/chat/stream{query}") as stream:
        await stream.ready()
        await change(house, who, "viewer")
        if maker != who.name:
            assert not await is_taken(house, stream, maker, who.place)
    await come(house, who)


async def test_an_agent_cannot_have_its_call_run_by_naming_a_session(house: House) -> None:
    await house.add("lone", "agent")
    async with house.listen("ann", "/my/projects/demo/chat/stream?session_id=s1") as stream:
        await stream.ready()
        body = execute("far", {}, session_id="s1", wait=False)
        answer = await house.client("lone").post("/my/projects/demo/tools/execute", json=body)
        assert answer.status_code == 403
        assert "somebody else's" in answer.json()["detail"]
