"""Rules are judged before anybody is asked and at the commit that starts a call; what changes meanwhile adds one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import pytest

import toolgate
from toolgate import Gate, Policy, Remember, Result, ToolDefinition, ToolOutput
from toolgate.kernel.call import Call, Status


class Counting:
    """Counts how often a call is looked at to judge it; runs what is planned for one look, in the middle of it."""

    name = "counting"

    def __init__(self) -> None:
        self.looks = 0
        self.then: dict[int, Callable[[], Any]] = {}

    def __call__(self, _call: Call, _tool: ToolDefinition, _arguments: Mapping[str, Any], /) -> dict[str, Any]:
        self.looks += 1
        self.then.pop(self.looks, lambda: None)()
        return {}

    def shown(self, finding: Any, _mask: Callable[[str], str], /) -> Any:
        return finding


def a_tool(name: str, **options: Any) -> ToolDefinition:
    return ToolDefinition(name, {"type": "object"}, lambda _given: ToolOutput.ok("done"), **options)


@pytest.fixture
def counting() -> Counting:
    return Counting()


@pytest.fixture
async def gate(counting: Counting) -> AsyncIterator[Gate]:
    tools = [a_tool("read"), a_tool("ask", requires_approval=True), a_tool("own", placement="caller")]
    gate = toolgate.open("memory://", tools=tools, policy=Policy(revision="counted", inspectors=(counting,)))
    yield gate
    await gate.aclose()


async def asked(gate: Gate, arguments: dict[str, Any] | None = None) -> Result:
    return await gate.call("ask", arguments, wait=False)


async def test_a_call_that_runs_where_it_is_made_is_judged_once(gate: Gate, counting: Counting) -> None:
    assert (await gate.call("read")).success
    assert counting.looks == 1


async def test_a_refused_or_rejected_call_is_judged_once(gate: Gate, counting: Counting) -> None:
    waiting = await asked(gate)
    await gate.decide(str(waiting.approval_id), "deny", by="ann")
    assert counting.looks == 1


async def test_an_asked_call_is_judged_before_the_question_and_at_its_claim(gate: Gate, counting: Counting) -> None:
    waiting = await asked(gate)
    assert counting.looks == 1
    await gate.decide(str(waiting.approval_id), "approve", by="ann")
    assert (await gate.wait(waiting.call_id)).success
    assert counting.looks == 2


async def test_a_call_its_caller_runs_is_judged_where_it_is_offered_and_claimed(gate: Gate, counting: Counting) -> None:
    waiting = await gate.call("own", wait=False)
    assert (waiting.status, counting.looks) == (Status.APPROVED, 1)
    assert (await gate.run_here(waiting.call_id, lambda _arguments: "done")).success
    assert counting.looks == 2


async def test_a_remembered_yes_adds_nothing(gate: Gate, counting: Counting) -> None:
    waiting = await asked(gate)
    await gate.decide(str(waiting.approval_id), "approve", by="ann", remember=Remember())
    assert (await gate.wait(waiting.call_id)).success
    assert (await asked(gate)).success
    assert counting.looks == 3


async def test_a_mode_changed_meanwhile_adds_one(gate: Gate, counting: Counting) -> None:
    counting.then[1] = lambda: gate.sync.set_mode("ALERT", by="ann")
    assert (await gate.call("read")).success
    assert counting.looks == 2


async def test_an_edit_adds_one(gate: Gate, counting: Counting) -> None:
    waiting = await asked(gate)
    await gate.approvals.edit(str(waiting.approval_id), {"other": 1}, by="ann")
    assert (await gate.wait(waiting.call_id)).success
    assert counting.looks == 3


async def test_a_changed_definition_adds_one_and_another_question(gate: Gate, counting: Counting) -> None:
    waiting = await asked(gate)
    gate.register(a_tool("ask", requires_approval=True, description="another"))
    await gate.decide(str(waiting.approval_id), "approve", by="ann")
    (again,) = [one async for one in until_asked(gate, str(waiting.approval_id))]
    await gate.decide(again, "approve", by="ann")
    assert (await gate.wait(waiting.call_id)).success
    assert counting.looks == 3


async def until_asked(gate: Gate, before: str) -> AsyncIterator[str]:
    """Yield the next question after this one."""
    async for event in gate.follow(after=0):
        if event.type == "approval.requested" and event.data["request_id"] != before:
            yield event.data["request_id"]
            return
