"""The OpenAI Agents adapter, given what the SDK was seen to give it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import pytest_asyncio
from tests.unit.integrations.fakes import standing_in

import toolgate
from toolgate import Gate
from toolgate.errors import DefinitionError, UsageError

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}


class Of:
    def __class_getitem__(cls, _item: object) -> type[Of]:
        return cls


class AgentHooks(Of):
    heard: list[str]

    async def on_start(self) -> None:
        self.heard = ["start"]

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        """Nothing."""


@dataclass
class FunctionTool:
    name: str
    on_invoke_tool: Callable[..., Any]
    description: str = ""
    params_json_schema: Any = field(default_factory=lambda: SCHEMA)
    needs_approval: Any = False
    _agent_instance: Any = None


@dataclass
class Handoff(Of):
    on_invoke_handoff: Callable[..., Any]


@dataclass
class Agent(Of):
    name: str
    tools: list[Any] = field(default_factory=list)
    handoffs: list[Any] = field(default_factory=list)
    hooks: Any = None
    mcp: list[Any] = field(default_factory=list)

    async def get_mcp_tools(self, _context: Any) -> list[Any]:
        return self.mcp


class Run:
    """A RunContextWrapper or ToolContext: known by identity."""

    def __init__(self, call_id: str = "c1") -> None:
        self.tool_call_id = call_id


class State:
    def __init__(self, *calls: Any) -> None:
        self._calls, self.approved = calls, list[Any]()

    def get_interruptions(self) -> list[Any]:
        return [SimpleNamespace(tool_name="send", raw_item=call) for call in self._calls]

    def approve(self, item: Any) -> None:
        self.approved.append(item.raw_item)


@pytest.fixture
def adapter() -> Iterator[ModuleType]:
    names = {"Agent": Agent, "AgentHooks": AgentHooks, "FunctionTool": FunctionTool, "Handoff": Handoff}
    with standing_in(
        "openai_agents",
        "0.24.0",
        agents={**names, "RunContextWrapper": Of, "RunState": Of},
        agents__tool_context={"ToolContext": Of},
    ) as module:
        yield module


@pytest_asyncio.fixture
async def gate() -> AsyncIterator[Gate]:
    async with toolgate.open("memory://") as opened:
        yield opened


class Sender:
    def __init__(self, answer: Any = None) -> None:
        self.given: list[str] = []
        self._answer = answer

    async def __call__(self, _ctx: Any, text: str) -> Any:
        self.given.append(text)
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer or f"sent {text}"


def governed(adapter: ModuleType, gate: Gate, sender: Sender, **options: Any) -> Any:
    agent = Agent("a", tools=[FunctionTool("send", sender)])
    return adapter.govern(agent, gate, effects={"send": "irreversible"}, **options)


def response(*ids: str) -> Any:
    calls = [SimpleNamespace(type="function_call", call_id=id) for id in ids]
    return SimpleNamespace(output=[*calls, SimpleNamespace(type="message")])


async def test_a_question_interrupts_and_a_resume_runs_once(adapter: ModuleType, gate: Gate) -> None:
    sender = Sender()
    agent = governed(adapter, gate, sender)
    [tool] = agent.tools
    run = Run()
    await agent.hooks.on_start()
    await agent.hooks.on_llm_end(run, agent, response("c1"))
    assert await tool.needs_approval(run, {"n": 1}, "c1")
    assert "waits for a person's approval" in await tool.on_invoke_tool(Run(), '{"n": 1}')
    [question] = await gate.pending()
    state = State({"call_id": "c1", "arguments": '{"n": 1}'})
    await adapter.hear(agent, state)
    assert not state.approved
    await gate.approvals.edit(question.id, {"n": 2}, by="ann")
    state = State(SimpleNamespace(call_id="c1", arguments='{"n": 1}'))
    await adapter.hear(agent, state)
    assert len(state.approved) == 1
    assert not await tool.needs_approval(Run(), {"n": 1}, "c1")
    for _ in range(2):
        said = await tool.on_invoke_tool(Run(), '{"n": 1}')
        assert ("changed the arguments" in said, 'sent {"n": 2}' in said) == (True, True)
    assert sender.given == ['{"n": 2}']


async def test_a_call_just_made_is_new_and_one_from_a_state_is_the_last(adapter: ModuleType, gate: Gate) -> None:
    sender = Sender({"sent": 1})
    agent = adapter.govern(Agent("a", tools=[FunctionTool("send", sender)]), gate, context=toolgate.Context(run_id="r"))
    [tool] = agent.tools
    for times in (1, 2):
        run = Run()
        await agent.hooks.on_llm_end(run, agent, response("c1"))
        assert not await tool.needs_approval(run, {"n": 1}, "c1")
        assert await tool.on_invoke_tool(Run(), '{"n": 1}') == {"sent": 1}
        assert len(sender.given) == times
    assert await tool.on_invoke_tool(Run(), '{"n": 1}') == {"sent": 1}
    assert len(sender.given) == 2


async def test_arguments_that_are_no_object_are_left_to_the_tool(adapter: ModuleType, gate: Gate) -> None:
    sender = Sender("bad arguments")
    [tool] = governed(adapter, gate, sender).tools
    for text in ("{", "[1]"):
        assert await tool.on_invoke_tool(Run(), text) == "bad arguments"
    assert await gate.calls.list(toolgate.CallQuery()) == []


async def test_what_the_tool_raises_is_the_frameworks(adapter: ModuleType, gate: Gate) -> None:
    agent = adapter.govern(Agent("a", tools=[FunctionTool("send", Sender(LookupError("gone")))]), gate)
    with pytest.raises(LookupError):
        await agent.tools[0].on_invoke_tool(Run(), "")


async def test_an_edited_result_that_is_no_text_is_told_as_json(adapter: ModuleType, gate: Gate) -> None:
    [tool] = governed(adapter, gate, Sender({"sent": 2})).tools
    assert await tool.needs_approval(Run(), {"n": 1}, "c1")
    await gate.approvals.edit((await gate.pending())[0].id, {"n": 2}, by="ann")
    assert (await tool.on_invoke_tool(Run(), '{"n": 1}')).endswith('{"sent":2}')


async def test_mcp_tools_handoffs_and_agents_in_circles_are_governed(adapter: ModuleType, gate: Gate) -> None:
    second = Agent("second", mcp=[FunctionTool("send", Sender())])

    async def hand_over(_ctx: Any, _given: str) -> Any:
        return second

    first = Agent("first", handoffs=[second, Handoff(hand_over)])
    second.handoffs = [first]
    agent = adapter.govern(first, gate)
    assert agent.handoffs[0].handoffs[0] is agent
    assert await agent.handoffs[1].on_invoke_handoff(None, "") is agent.handoffs[0]
    [tool] = await agent.handoffs[0].get_mcp_tools(None)
    assert await tool.on_invoke_tool(Run(), json.dumps({"n": 1})) == 'sent {"n": 1}'
    assert adapter.govern(agent, gate) is agent


async def test_what_cannot_be_governed_is_named(adapter: ModuleType, gate: Gate) -> None:
    inner = adapter.govern(Agent("in"), gate)
    outer = Agent("out", tools=[FunctionTool("ask", Sender(), _agent_instance=inner)])
    assert adapter.govern(outer, gate).tools == outer.tools
    search = SimpleNamespace(name="web_search")
    with pytest.raises(DefinitionError, match=r"`web_search` \(SimpleNamespace\) is not run by a function here"):
        adapter.govern(Agent("x", tools=[search]), gate)
    assert adapter.govern(Agent("x", tools=[search]), gate, ungoverned=["web_search"]).tools == [search]
    with pytest.raises(DefinitionError, match="the agent behind tool `ask` is not governed"):
        adapter.govern(Agent("x", tools=[FunctionTool("ask", Sender(), _agent_instance=Agent("y"))]), gate)
    with pytest.raises(DefinitionError, match="SimpleNamespace cannot be governed"):
        adapter.govern(SimpleNamespace(), gate)
    with pytest.raises(UsageError, match="agent `bare` is not governed"):
        await adapter.hear(Agent("bare"), State())


async def test_what_the_framework_asks_about_the_gate_asks_about(
    adapter: ModuleType, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = Agent("a", tools=[FunctionTool("look", Sender(), needs_approval=True)])
    [tool] = adapter.govern(agent, gate).tools
    assert await tool.needs_approval(Run(), {"n": 1}, "c1")
    monkeypatch.setattr("importlib.metadata.version", lambda _name: "0.9")
    with pytest.raises(UsageError, match="OpenAI Agents adapter was tested with openai-agents"):
        adapter.govern(agent, gate)
    adapter.govern(Agent("b"), gate, any_version=True)
