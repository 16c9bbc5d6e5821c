"""OpenAI Agents SDK: an agent whose tools, MCP servers and handoffs go through the gate.

`needs_approval` asks the gate, so the run is interrupted in the framework's own way; `on_invoke_tool` claims and runs.
A saved RunState can be altered and resumed any number of times: what it says was approved does not count.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from hashlib import sha256
from typing import Any
from weakref import WeakKeyDictionary

from agents import Agent, AgentHooks, FunctionTool, Handoff, RunContextWrapper, RunState
from agents.tool_context import ToolContext

from toolgate.errors import DefinitionError, NotFoundError, UsageError
from toolgate.gate import Gate
from toolgate.gate.bridge import Bridge, Outcome, check_version
from toolgate.kernel.call import Status
from toolgate.kernel.context import Context
from toolgate.kernel.output import Result
from toolgate.kernel.payload import encode

NAME = "OpenAI Agents"
TESTED = ((0, 24), (0, 25))


def govern(
    agent: Agent[Any],
    gate: Gate,
    *,
    effects: Mapping[str, str] | None = None,
    context: Context | None = None,
    ungoverned: Collection[str] = (),
    any_version: bool = False,
) -> Agent[Any]:
    """Return a copy of an agent, and of those it hands off to, whose tools go through the gate.

    `effects` says what tools do, such as `{"wire": "irreversible"}`; `context` who the agent is. Tools that run at the
    provider or are no functions are refused, unless they are named in `ungoverned`. An agent that is a tool is governed
    before it becomes one: `govern(agent, gate).as_tool(...)`.
    """
    if not any_version:
        check_version(NAME, "openai-agents", *TESTED)
    return _Governing(Bridge(gate, NAME, effects=effects, context=context), frozenset(ungoverned)).agent(agent)


async def hear(agent: Agent[Any], state: RunState[Any]) -> None:
    """Let a saved state go on with every call that was answered at the gate, whatever the answer; others stay paused.

    `agent` is the one that `govern` returned.
    """
    if not isinstance(agent, GovernedAgent):
        raise UsageError(f"{NAME}: agent `{agent.name}` is not governed; pass the one that `govern` returned.")
    for item in state.get_interruptions():
        call = item.raw_item
        told = call if isinstance(call, Mapping) else {"call_id": call.call_id, "arguments": call.arguments}
        if await agent._toolgate.is_answered(str(item.tool_name), told["call_id"], json.loads(told["arguments"])):
            state.approve(item)


class GovernedAgent(Agent[Any]):
    """An agent whose tools of MCP servers are governed as they are listed."""

    _toolgate: _Governing

    async def get_mcp_tools(self, run_context: RunContextWrapper[Any]) -> list[Any]:
        return [self._toolgate.tool(tool) for tool in await super().get_mcp_tools(run_context)]


class _Governing:
    def __init__(self, bridge: Bridge, ungoverned: frozenset[str]) -> None:
        self.bridge, self._ungoverned = bridge, ungoverned
        self._agents: dict[int, Agent[Any]] = {}
        self._fresh: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()
        """By run: ids of calls its model has just made, which no saved state can know of."""

    def agent(self, agent: Agent[Any]) -> Agent[Any]:
        if isinstance(agent, GovernedAgent):
            return agent
        if id(agent) in self._agents:
            return self._agents[id(agent)]
        if type(agent) is not Agent:
            raise DefinitionError(f"{NAME}: {type(agent).__name__} cannot be governed; make an `Agent` of it.")
        own = {item.name: getattr(agent, item.name) for item in fields(agent) if item.init}
        governed = GovernedAgent(**{**own, "hooks": _Hooks(agent.hooks or AgentHooks(), self._fresh)})
        governed._toolgate, self._agents[id(agent)] = self, governed
        governed.tools = [self.tool(tool) for tool in agent.tools]
        governed.handoffs = [self._handoff(one) for one in agent.handoffs]
        return governed

    async def is_answered(self, name: str, call_id: str, arguments: Mapping[str, Any]) -> bool:
        id = await _id(self.bridge, name, call_id, arguments)
        standing = await _standing(self.bridge, id)
        return standing is not None and standing.status is not Status.AWAITING_APPROVAL

    def _handoff(self, handoff: Any) -> Any:
        if not isinstance(handoff, Handoff):
            return self.agent(handoff)
        invoke = handoff.on_invoke_handoff

        async def governed(ctx: RunContextWrapper[Any], given: str) -> Agent[Any]:
            return self.agent(await invoke(ctx, given))

        return replace(handoff, on_invoke_handoff=governed)

    def tool(self, tool: Any) -> Any:
        name = str(getattr(tool, "name", type(tool).__name__))
        if name in self._ungoverned:
            return tool
        if not isinstance(tool, FunctionTool):
            raise DefinitionError(
                f"{NAME}: tool `{name}` ({type(tool).__name__}) is not run by a function here, so the gate cannot hold "
                f"it. Leave it out, or name it: `ungoverned=[{name!r}]`."
            )
        inner = getattr(tool, "_agent_instance", None)
        if inner is not None:
            if isinstance(inner, GovernedAgent):
                return tool  # its own tools ask, and its pauses are the outer run's
            raise DefinitionError(
                f"{NAME}: the agent behind tool `{name}` is not governed. Use `govern(agent, gate).as_tool(...)`."
            )
        self.bridge.define(name, tool.params_json_schema, tool.description, _options(tool))
        made = _Tool(self.bridge, tool, self._fresh)
        return replace(tool, needs_approval=made.needs_approval, on_invoke_tool=made.invoke)


class _Tool:
    """A function tool through the gate."""

    def __init__(self, bridge: Bridge, tool: FunctionTool, fresh: WeakKeyDictionary[Any, set[str]]) -> None:
        self._bridge, self._tool, self._fresh = bridge, tool, fresh

    async def needs_approval(self, ctx: RunContextWrapper[Any], arguments: dict[str, Any], call_id: str) -> bool:
        """Ask the gate; True while a person has yet to answer there."""
        noted = self._fresh.get(ctx, set())
        is_fresh = call_id in noted
        noted.discard(call_id)
        id = await _id(self._bridge, self._tool.name, call_id, arguments, is_fresh=is_fresh)
        asked = await self._bridge.ask(self._tool.name, arguments, call_id=id, context=self._context(id))
        return asked.result.status is Status.AWAITING_APPROVAL and not self._bridge.waits

    async def invoke(self, ctx: ToolContext[Any], text: str) -> Any:
        tool = self._tool
        try:
            arguments = json.loads(text) if text else {}
        except ValueError:
            return await tool.on_invoke_tool(ctx, text)  # it says what is wrong with them, and runs nothing
        if not isinstance(arguments, dict):
            return await tool.on_invoke_tool(ctx, text)

        async def run(approved: dict[str, Any]) -> Any:
            return await tool.on_invoke_tool(ctx, text if approved == arguments else json.dumps(approved))

        id = await _id(self._bridge, tool.name, ctx.tool_call_id, arguments)
        outcome = await self._bridge.carry(tool.name, arguments, run, call_id=id, context=self._context(id))
        return _answer(outcome)

    def _context(self, id: str) -> Context:
        return self._bridge.context_of(step=id)


async def _id(bridge: Bridge, name: str, call_id: str, arguments: Mapping[str, Any], *, is_fresh: bool = False) -> str:
    """The id of a call at the gate.

    A saved state has no id of its own, and models repeat short ids. So a call is known by its id and arguments, and
    numbered: one that a model has just made is new if the last one has ended, one from a saved state is the last.
    """
    digest = sha256(encode([name, arguments])).hexdigest()[:16]
    base = bridge.id_of(*filter(None, (bridge.context.run_id, call_id, digest)))
    number, last = 0, None
    while (standing := await _standing(bridge, f"{base}.{number}")) is not None:
        number, last = number + 1, standing
    return f"{base}.{number if last is None or (is_fresh and last.is_final) else number - 1}"


async def _standing(bridge: Bridge, id: str) -> Result | None:
    try:
        return await bridge.gate.get(id, project=bridge.context.project)
    except NotFoundError:
        return None


class _Hooks(AgentHooks[Any]):
    """An agent's own hooks, and a note of the calls its model makes."""

    def __init__(self, inner: AgentHooks[Any], fresh: WeakKeyDictionary[Any, set[str]]) -> None:
        self._inner, self._noted = inner, fresh

    def __getattribute__(self, name: str) -> Any:
        is_theirs = name.startswith("on_") and name != "on_llm_end"
        return getattr(object.__getattribute__(self, "_inner"), name) if is_theirs else super().__getattribute__(name)

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        made = {item.call_id for item in response.output if getattr(item, "type", None) == "function_call"}
        self._noted.setdefault(context, set()).update(made)
        await self._inner.on_llm_end(context, agent, response)


def _options(tool: FunctionTool) -> dict[str, Any]:
    """What the framework would ask about by itself, the gate asks about."""
    return {"requires_approval": True} if tool.needs_approval is not False else {}


def _answer(outcome: Outcome) -> Any:
    if outcome.raised is not None:
        raise outcome.raised
    if not outcome.is_success:
        return outcome.text
    if outcome.note is None:
        return outcome.value
    return f"{outcome.note}\n{outcome.value if isinstance(outcome.value, str) else encode(outcome.value).decode()}"
