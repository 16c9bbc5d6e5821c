"""The LangChain adapter, given what LangGraph was seen to give it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field, replace
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import pytest_asyncio
from tests.unit.integrations.fakes import standing_in

import toolgate
from toolgate import Gate
from toolgate.errors import UsageError

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}


class Paused(Exception):
    """What `interrupt` raises where nobody has answered."""


class Graph:
    """The resume values of a task: `interrupt` gives them out in order, and pauses where there is none."""

    def __init__(self) -> None:
        self.answers: list[Any] = []
        self.asked: list[Any] = []
        self._at = 0

    def interrupt(self, value: Any) -> Any:
        self._at += 1
        if self._at > len(self.answers):
            self.asked.append(value)
            self._at = 0
            raise Paused
        return self.answers[self._at - 1]


class Base:
    def __class_getitem__(cls, _item: object) -> type[Base]:
        return cls


@dataclass
class BaseMessage:
    content: Any = ""

    def model_copy(self, *, update: dict[str, Any]) -> Any:
        return replace(self, **update)


@dataclass
class AIMessage(BaseMessage):
    tool_calls: list[Any] = field(default_factory=list)
    id: str = "m1"


@dataclass
class ToolMessage(BaseMessage):
    name: str = ""
    tool_call_id: str = ""
    status: str = "success"


@dataclass
class Command:
    graph: Any = None
    update: Any = None
    goto: Any = ()
    resume: Any = None


@dataclass
class Request:
    tool_call: dict[str, Any]
    tool: Any
    state: Any
    runtime: Any = None

    def override(self, **changed: Any) -> Request:
        return replace(self, **changed)


@pytest.fixture
def graph() -> Graph:
    return Graph()


@pytest.fixture
def adapter(graph: Graph) -> Iterator[ModuleType]:
    messages = {
        "BaseMessage": BaseMessage,
        "AIMessage": AIMessage,
        "ToolMessage": ToolMessage,
        "message_to_dict": vars,
        "messages_from_dict": lambda all: [ToolMessage(**one) for one in all],
    }
    with standing_in(
        "langchain",
        "1.4.7",
        langchain__agents__middleware={"AgentMiddleware": Base},
        langchain_core__messages=messages,
        langgraph__prebuilt__tool_node={"ToolCallRequest": Request},
        langgraph__types={"Command": Command, "interrupt": graph.interrupt},
    ) as module:
        yield module


@pytest_asyncio.fixture
async def gate() -> AsyncIterator[Gate]:
    async with toolgate.open("memory://") as opened:
        yield opened


def request(state: Any = None, *, id: str | None = "c1", config: Any = None, schema: Any = None) -> Request:
    call = {"id": id, "name": "send", "args": {"n": 1}}
    runtime = SimpleNamespace(config=config or {"configurable": {"thread_id": "t1"}})
    tool = SimpleNamespace(tool_call_schema=schema or SCHEMA, description="Send it.")
    return Request(call, tool, {"messages": [AIMessage(tool_calls=[call])]} if state is None else state, runtime)


class Handler:
    def __init__(self, answer: Any = None) -> None:
        self.given: list[Any] = []
        self._answer = answer

    def plain(self, asked: Request) -> Any:
        self.given.append(asked.tool_call["args"])
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer or ToolMessage(f"sent {asked.tool_call['args']['n']}", "send", "c1")

    async def later(self, asked: Request) -> Any:
        return self.plain(asked)


SENDS = {"send": "irreversible"}


async def paused(gated: Any, handler: Handler, graph: Graph) -> dict[str, Any]:
    with pytest.raises(Paused):
        await gated.awrap_tool_call(request(), handler.later)
    question: dict[str, Any] = graph.asked[-1]
    return question


async def test_a_question_interrupts_and_the_node_that_runs_again_goes_on(
    adapter: ModuleType, gate: Gate, graph: Graph
) -> None:
    gated, handler = adapter.Toolgate(gate, effects=SENDS), Handler()
    question = await paused(gated, handler, graph)
    assert (question["type"], question["tool_call_id"], question["args"]) == ("tool_approval", "c1", {"n": 1})
    await gate.approvals.edit(question["toolgate"]["approval_id"], {"n": 2}, by="ann")
    graph.answers = [{"type": "approve"}]
    for _ in range(2):
        said = await gated.awrap_tool_call(request(), handler.later)
        assert said.content.endswith("sent 2")
        assert "changed the arguments" in said.content
    assert handler.given == [{"n": 2}]


async def test_a_decision_nobody_vouches_for_pauses_again(adapter: ModuleType, gate: Gate, graph: Graph) -> None:
    gated, handler = adapter.Toolgate(gate, effects=SENDS), Handler()
    await paused(gated, handler, graph)
    graph.answers = [{"type": "approve"}]
    with pytest.raises(Paused):
        await gated.awrap_tool_call(request(), handler.later)
    assert not handler.given


@pytest.mark.parametrize(
    ("answer", "words", "given"),
    [
        ({"type": "approve"}, "sent 1", [{"n": 1}]),
        ({"type": "edit", "edited_action": {"name": "send", "args": {"n": 3}}}, "sent 3", [{"n": 3}]),
        ({"type": "reject", "message": "too many"}, "too many", []),
        ({"type": "respond", "message": "use the other"}, "use the other", []),
    ],
    ids=["approve", "edit", "reject", "respond"],
)
async def test_a_decision_counts_where_the_host_says_whose_it_is(
    adapter: ModuleType, gate: Gate, graph: Graph, answer: Any, words: str, given: Any
) -> None:
    gated, handler = adapter.Toolgate(gate, effects=SENDS, by=lambda _request: "ann"), Handler()
    await paused(gated, handler, graph)
    graph.answers = [answer]
    said = await asyncio.to_thread(gated.wrap_tool_call, request(), handler.plain)
    assert (words in said.content, handler.given) == (True, given)


async def test_what_is_no_decision_is_not_heard(adapter: ModuleType, gate: Gate, graph: Graph) -> None:
    gated, handler = adapter.Toolgate(gate, effects=SENDS, by="ann"), Handler()
    await paused(gated, handler, graph)
    graph.answers = [{"type": "shrug"}, "yes"]
    with pytest.raises(Paused):
        await gated.awrap_tool_call(request(), handler.later)


async def test_commands_are_recorded_and_told_again(adapter: ModuleType, gate: Gate) -> None:
    command = Command(update={"messages": [ToolMessage("moved", "send", "c1"), "x"], "seen": [1]})
    gated, handler = adapter.Toolgate(gate), Handler(command)
    assert await gated.awrap_tool_call(request(), handler.later) is command
    again = await gated.awrap_tool_call(request(), handler.later)
    assert (again.update["messages"][0].content, again.update["seen"], len(handler.given)) == ("moved", [1], 1)


async def test_an_edited_command_says_so_in_its_message(adapter: ModuleType, gate: Gate, graph: Graph) -> None:
    command = Command(update={"messages": [ToolMessage([{"type": "text", "text": "moved"}], "send", "c1"), "x"]})
    gated, handler = adapter.Toolgate(gate, effects=SENDS), Handler(command)
    question = await paused(gated, handler, graph)
    await gate.approvals.edit(question["toolgate"]["approval_id"], {"n": 2}, by="ann")
    said = await gated.awrap_tool_call(request(), handler.later)
    assert "changed the arguments" in said.update["messages"][0].content[0]["text"]


async def test_what_the_tool_raises_is_the_frameworks(adapter: ModuleType, gate: Gate) -> None:
    gated = adapter.Toolgate(gate)
    with pytest.raises(LookupError):
        await gated.awrap_tool_call(request(), Handler(LookupError("gone")).later)


async def test_a_tool_that_is_not_there_is_left_to_the_framework(adapter: ModuleType, gate: Gate) -> None:
    gated, handler = adapter.Toolgate(gate), Handler()
    missing = replace(request(), tool=None)
    await gated.awrap_tool_call(missing, handler.later)
    gated.wrap_tool_call(missing, handler.plain)
    assert await gate.calls.list(toolgate.CallQuery()) == []


@pytest.mark.parametrize(
    "state", [[], SimpleNamespace(messages=None), {"messages": [AIMessage()]}], ids=["list", "object", "elsewhere"]
)
async def test_calls_are_placed_whatever_the_state_is(adapter: ModuleType, gate: Gate, state: Any) -> None:
    class Model:
        @staticmethod
        def model_json_schema() -> Any:
            return SCHEMA

    asked = request(state, id=None, schema=Model, config={"configurable": {}})
    assert (await adapter.Toolgate(gate).awrap_tool_call(asked, Handler().later)).content == "sent 1"


async def test_a_version_outside_the_tested_range_is_refused(
    adapter: ModuleType, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda _name: "0.9")
    with pytest.raises(UsageError, match="LangChain adapter was tested with langchain"):
        adapter.Toolgate(gate)
    adapter.Toolgate(gate, any_version=True)
