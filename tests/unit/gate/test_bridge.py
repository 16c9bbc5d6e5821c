"""What every adapter stands on: tested versions, ids that can be told, questions that pause, one effect."""

from __future__ import annotations

import asyncio
import importlib.metadata
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from tests.journeys.scene import saying

import toolgate
from toolgate import Gate, Status
from toolgate.errors import DefinitionError, UsageError
from toolgate.gate.bridge import Bridge, check_version
from toolgate.testing.patience import until

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}


@pytest_asyncio.fixture
async def gate() -> AsyncIterator[Gate]:
    async with toolgate.open("memory://") as opened:
        yield opened


class Tool:
    def __init__(self) -> None:
        self.given: list[Any] = []

    async def __call__(self, arguments: dict[str, Any]) -> Any:
        self.given.append(arguments)
        await asyncio.sleep(0)
        return {"sent": arguments.get("n")}


def bridge(gate: Gate, effects: str | None = "irreversible", **options: Any) -> Bridge:
    made = Bridge(gate, "test", effects={} if effects is None else {"send": effects}, **options)
    made.define("send", SCHEMA, "Send it.")
    return made


async def test_a_call_pauses_and_goes_on_once_after_the_yes(gate: Gate) -> None:
    way, tool = bridge(gate), Tool()
    paused = await way.carry("send", {"n": 1}, tool, call_id="c1")
    assert paused.is_paused
    assert paused.question == {"call_id": "c1", "approval_id": paused.result.approval_id, "tool": "send"}
    assert "waits for a person's approval" in paused.text
    assert not tool.given
    await gate.decide(str(paused.result.approval_id), "approve", by="ann")
    outcomes = await asyncio.gather(*(way.carry("send", {"n": 1}, tool, call_id="c1") for _ in range(10)))
    assert [one.value for one in outcomes] == [{"sent": 1}] * 10
    assert ([one.ran for one in outcomes].count(True), tool.given) == (1, [{"n": 1}])


async def test_edited_arguments_run_and_are_told(gate: Gate) -> None:
    way, tool = bridge(gate), Tool()
    paused = await way.carry("send", {"n": 1}, tool, call_id="c1")
    await gate.approvals.edit(str(paused.result.approval_id), {"n": 2}, by="ann")
    done = await way.carry("send", {"n": 1}, tool, call_id="c1")
    assert (done.value, done.edited, tool.given) == ({"sent": 2}, {"n": 2}, [{"n": 2}])
    assert done.note == 'A person changed the arguments before it ran: {"n":2}'
    again = await way.carry("send", {"n": 1}, tool, call_id="c1")
    assert (again.ran, again.value, again.edited) == (False, {"sent": 2}, {"n": 2})


async def test_other_arguments_under_the_same_id_run_nothing(gate: Gate) -> None:
    way, tool = bridge(gate), Tool()
    paused = await way.carry("send", {"n": 1}, tool, call_id="c1")
    await gate.decide(str(paused.result.approval_id), "approve", by="ann")
    changed = await way.carry("send", {"n": 100}, tool, call_id="c1")
    assert (changed.result.status, tool.given) == (Status.DENIED, [])
    assert "`send` did not run" in changed.text


async def test_a_policy_that_denies_meanwhile_stops_it(gate: Gate) -> None:
    way, tool = bridge(gate), Tool()
    paused = await way.carry("send", {"n": 1}, tool, call_id="c1")
    await gate.decide(str(paused.result.approval_id), "approve", by="ann")
    await gate.set_policy(saying("deny"), by="ops")
    stopped = await way.carry("send", {"n": 1}, tool, call_id="c1")
    assert (stopped.result.status, tool.given) == (Status.DENIED, [])


async def test_a_definition_that_changed_is_asked_about_again(gate: Gate) -> None:
    way, tool = bridge(gate), Tool()
    paused = await way.carry("send", {"n": 1}, tool, call_id="c1")
    await gate.decide(str(paused.result.approval_id), "approve", by="ann")
    way.define("send", SCHEMA, "Send it twice.")
    again = await way.carry("send", {"n": 1}, tool, call_id="c1")
    assert (again.is_paused, tool.given) == (True, [])
    assert again.result.approval_id != paused.result.approval_id


async def test_an_answer_instead_of_a_run_is_told(gate: Gate) -> None:
    way, tool = bridge(gate), Tool()
    paused = await way.carry("send", {"n": 1}, tool, call_id="c1")
    await gate.approvals.respond(str(paused.result.approval_id), "use the other account", by="ann")
    told = await way.carry("send", {"n": 1}, tool, call_id="c1")
    assert (told.is_success, tool.given) == (False, [])
    assert told.text == 'A person answered instead of letting `send` run: "use the other account"'


async def test_a_question_from_inside_a_call_is_waited_for(gate: Gate) -> None:
    way, tool = bridge(gate), Tool()
    way.define("outer", {}, "Ask another agent.")

    async def outer(_arguments: dict[str, Any]) -> Any:
        return (await way.carry("send", {"n": 1}, tool)).value

    running = asyncio.create_task(way.carry("outer", {}, outer, call_id="o1"))
    await until(gate.pending)
    [question] = await gate.pending()
    await gate.decide(question.id, "approve", by="ann")
    assert (await running).value == {"sent": 1}
    [inner] = await gate.calls.list(toolgate.CallQuery(tool_name="send"))
    assert (inner.context.parent_call_id, inner.context.depth) == ("o1", 1)


async def test_ids_are_told_as_they_read_or_as_a_digest(gate: Gate) -> None:
    way = bridge(gate)
    assert way.id_of("run", "call_1") == "run:call_1"
    for parts in (("a/b", "c"), ("x" * 200,), ("ghp_" + "a1B2" * 9,)):
        assert len(way.id_of(*parts)) == 40
    assert way.id_of("a/b", "c") != way.id_of("a", "b/c")
    context = way.context_of(run="r1", step="r1:3")
    assert (context.run_id, context.step_id) == ("r1", "r1:3")
    own = Bridge(gate, "test", context=toolgate.Context(run_id="mine")).context_of(run="r1")
    assert (own.run_id, own.step_id) == ("mine", None)


async def test_what_cannot_be_governed_is_named_with_its_adapter(gate: Gate) -> None:
    way = Bridge(gate, "test")
    with pytest.raises(DefinitionError, match="test: tool `loose` has no schema"):
        way.define("loose", None)
    with pytest.raises(DefinitionError, match="test: tool `bad` cannot be governed, so nothing is run"):
        way.define("bad", {"type": "no such type"})


async def test_a_call_that_needs_nobody_is_one_claim_and_one_report(gate: Gate) -> None:
    way, tool = bridge(gate, effects=None), Tool()
    done = await way.carry("send", {"n": 3}, tool, call_id="c1")
    assert (done.ran, done.value, done.result.approved_by) == (True, {"sent": 3}, "policy:auto")
    assert [event.type for event in await gate.events()] == ["tool.invoked", "tool.started", "tool.completed"]


def test_versions_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda _name: "2.66.1rc1")
    assert check_version("Pydantic AI", "pydantic-ai", (2, 66), (3,)) == "2.66.1rc1"
    with pytest.raises(UsageError, match=r"from 2\.67 to below 3; 2\.66\.1rc1 is installed, so nothing is run"):
        check_version("Pydantic AI", "pydantic-ai", (2, 67), (3,))
    with pytest.raises(UsageError, match="from 1 to below 2"):
        check_version("Pydantic AI", "pydantic-ai", (1,), (2,))


def test_a_framework_that_is_not_there_is_named() -> None:
    with pytest.raises(UsageError, match="needs no-such-framework, which is not installed"):
        check_version("Nothing", "no-such-framework", (1,), (2,))
