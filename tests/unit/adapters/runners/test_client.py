"""Who is offered a call that runs at a client: exactly one connection, and never a stranger's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from toolgate import Context
from toolgate.adapters.runners.client import ClientRunner, Offer, Seat
from toolgate.kernel.call import Call, Status
from toolgate.kernel.tool import ToolDefinition
from toolgate.ports.runner import PARKED, Job
from toolgate.testing.conformance.rows import a_call

FAR = ToolDefinition("far", {}, lambda _given: None, placement="client")


class Stage:
    """A runner, and what each of its seats heard."""

    def __init__(self) -> None:
        self.runner = ClientRunner()
        self.heard: dict[str, list[str]] = {}
        self.recalled: list[tuple[str, str]] = []

    def seat(self, label: str, **fields: Any) -> Seat:
        heard = self.heard.setdefault(label, [])
        fields.setdefault("principal", "ann")
        seat = Seat(
            project="p",
            offer=lambda offer: heard.append(offer.call_id),
            recall=lambda call_id, reason: self.recalled.append((call_id, reason)),
            **fields,
        )
        self.runner.join(seat)
        return seat

    async def call(self, call_id: str = "c1", **context: Any) -> Call:
        context.setdefault("principal", "agent:ann")
        context.setdefault("user", "ann")
        call = a_call(
            id=call_id,
            project="p",
            status=Status.EXECUTING,
            placement="client",
            tool_name="far",
            context=Context(project="p", **context),
            due_at=context.pop("due_at", None),
        )
        job = Job(call, FAR, FAR.handler, False, None)  # type: ignore[arg-type]  # a tool has a handler
        assert await self.runner.run(job) is PARKED
        return call


@pytest.fixture
def stage() -> Stage:
    return Stage()


async def test_a_registered_runner_comes_before_any_stream(stage: Stage) -> None:
    stage.seat("stream")
    stage.seat("runner", tools=frozenset({"far"}), principal="runner:1", is_runner=True)
    stage.seat("other", tools=frozenset({"near"}), principal="runner:2", is_runner=True)
    await stage.call()
    assert stage.heard == {"stream": [], "runner": ["c1"], "other": []}


async def test_runners_take_turns(stage: Stage) -> None:
    stage.seat("one", tools=frozenset({"*"}))
    stage.seat("two", tools=frozenset({"*"}))
    for number in range(4):
        await stage.call(f"c{number}")
    assert stage.heard == {"one": ["c0", "c2"], "two": ["c1", "c3"]}


async def test_the_most_recent_stream_of_the_session_is_offered_the_call(stage: Stage) -> None:
    stage.seat("old", session_id="s")
    stage.seat("new", session_id="s")
    stage.seat("newest", session_id="t")
    await stage.call(session_id="s")
    assert stage.heard == {"old": [], "new": ["c1"], "newest": []}


async def test_without_a_session_the_most_recent_stream_of_who_asked_is_offered_the_call(stage: Stage) -> None:
    stage.seat("own", session_id="s")
    stage.seat("stranger", principal="bob")
    await stage.call()
    assert stage.heard == {"own": ["c1"], "stranger": []}


async def test_a_stream_that_names_no_session_serves_the_sessions_of_its_person(stage: Stage) -> None:
    stage.seat("session", session_id="s")
    stage.seat("plain")
    stage.seat("stranger", principal="bob")
    await stage.call(session_id="s")
    await stage.call("c2", session_id="t")
    assert stage.heard == {"session": ["c1"], "plain": ["c2"], "stranger": []}


async def test_a_stranger_who_listens_to_the_session_is_not_offered_what_runs_for_somebody_else(stage: Stage) -> None:
    stage.seat("stranger", principal="bob", session_id="s")
    await stage.call(session_id="s")
    assert stage.heard == {"stranger": []}
    assert stage.runner.waiting_count == 1


async def test_naming_somebodys_session_gives_their_client_nothing_to_run(stage: Stage) -> None:
    stage.seat("editor", principal="bob", session_id="s")
    await stage.call(principal="agent:x", user=None, session_id="s")
    assert stage.heard == {"editor": []}


@pytest.mark.parametrize("tools", [{"*"}, {"far"}])
async def test_nobody_but_a_runner_takes_other_peoples_calls(stage: Stage, tools: set[str]) -> None:
    stage.seat("person", principal="bob", tools=frozenset(tools))
    await stage.call("c1")
    await stage.call("c2", user="bob")
    assert stage.heard == {"person": ["c2"]}


async def test_another_project_hears_nothing(stage: Stage) -> None:
    heard: list[Offer] = []
    stage.runner.join(
        Seat(project="q", principal="ann", offer=heard.append, recall=lambda *_: None, tools=frozenset({"*"}))
    )
    await stage.call()
    assert heard == []


async def test_a_call_waits_for_the_first_connection_that_fits(stage: Stage) -> None:
    await stage.call()
    stage.seat("stranger", principal="bob")
    stage.seat("own")
    stage.seat("later")
    assert stage.heard == {"stranger": [], "own": ["c1"], "later": []}


async def test_what_a_connection_did_not_take_is_offered_to_another(stage: Stage) -> None:
    first = stage.seat("first")
    await stage.call()
    stage.seat("second")
    stage.runner.leave(first)
    assert stage.heard == {"first": ["c1"], "second": ["c1"]}


async def test_what_a_connection_took_is_not_offered_to_another(stage: Stage) -> None:
    first = stage.seat("first")
    await stage.call()
    stage.runner.took(first, "c1")
    stage.seat("second")
    stage.runner.leave(first)
    stage.runner.leave(first)
    assert stage.heard == {"first": ["c1"], "second": []}


async def test_an_undo_is_offered_only_to_who_can_undo(stage: Stage) -> None:
    stage.seat("plain")
    able = stage.seat("able", can_undo=True)
    undoing = a_call(
        project="p", status=Status.EXECUTING, undo_of="c0", context=Context(project="p", principal="ann"), id="u1"
    )
    await stage.runner.run(Job(undoing, FAR, FAR.handler, False, None))  # type: ignore[arg-type]
    assert stage.heard == {"plain": [], "able": ["u1"]}
    stage.runner.dropped(able, "u1")
    stage.runner.leave(able)
    assert stage.runner.waiting_count == 0


async def test_who_runs_a_call_is_asked_to_stop(stage: Stage) -> None:
    seat = stage.seat("editor")
    call = await stage.call()
    stage.runner.recall(call, "too early")
    stage.runner.took(seat, "c1")
    stage.runner.took(seat, "unheard of")
    stage.runner.recall(call, "changed my mind")
    assert stage.recalled == [("c1", "changed my mind")]


async def test_offers_whose_time_is_over_are_forgotten(stage: Stage) -> None:
    long_ago = datetime.now(UTC) - timedelta(hours=1)
    stage.runner.place(Offer("p", "old", "far", "a", None, None, False, long_ago))
    stage.runner.place(Offer("p", "new", "far", "a", None, None, False, None))
    assert stage.runner.waiting_count == 1
    await stage.runner.close()
    assert stage.runner.waiting_count == 0
