"""LangChain and LangGraph: a middleware, which a ToolNode takes as well, that takes every tool call through the gate.

A call that waits for a person calls `interrupt()` with a `tool_approval` request. The node runs again when the graph is
resumed, and the gate is asked again: a decision in the resume value counts only where the host says whose it is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage, message_to_dict, messages_from_dict
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command, interrupt

from toolgate.gate import Gate
from toolgate.gate.bridge import Bridge, Outcome, check_version
from toolgate.kernel.context import Context, Principal

NAME = "LangChain"
TESTED = ((1, 4), (2,))
_MESSAGE = "langchain_message"
Answer = Any
"""A ToolMessage or a Command: what the framework takes as a tool's result."""
Who = str | Principal | Callable[[ToolCallRequest], str | Principal]


class Toolgate(AgentMiddleware[Any, Any, Any]):
    """`create_agent(..., middleware=[Toolgate(gate)])`: every tool the agent has goes through the gate.

    For tools run by hand, give a ToolNode its `wrap_tool_call` and `awrap_tool_call`. `effects` says what tools
    do, as in `{"wire": "irreversible"}`; `context` who the agent is. `by` is who answers with the decisions (approve,
    edit, reject, respond) in resume values, or a function of the request that knows it; without it they are not heard.
    With `wait` a question is waited for inside the graph, which then never pauses.
    """

    def __init__(
        self,
        gate: Gate,
        *,
        effects: Mapping[str, str] | None = None,
        context: Context | None = None,
        by: Who | None = None,
        wait: bool = False,
        any_version: bool = False,
    ) -> None:
        super().__init__()
        if not any_version:
            check_version(NAME, "langchain", *TESTED)
        self.bridge = Bridge(gate, NAME, effects=effects, context=context, wait=wait)
        self._by = by

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Answer]]
    ) -> Answer:
        if request.tool is None:
            return await handler(request)  # there is no such tool: the framework says so
        made = _Made(self.bridge, request)
        carried = made.options(handler)
        outcome = await self.bridge.carry(**carried)
        while outcome.is_paused:
            await self._hear(outcome, interrupt(made.question(outcome)), request)
            outcome = await self.bridge.carry(**carried)
        return made.answer(outcome)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Answer]) -> Answer:
        if request.tool is None:
            return handler(request)
        made = _Made(self.bridge, request)
        carried = made.options(handler)
        outcome = self.bridge.carry_sync(**carried)
        while outcome.is_paused:
            answer = interrupt(made.question(outcome))
            self.bridge.gate.host.submit(self._hear(outcome, answer, request)).result()
            outcome = self.bridge.carry_sync(**carried)
        return made.answer(outcome)

    async def _hear(self, outcome: Outcome, answer: Any, request: ToolCallRequest) -> None:
        """Give the gate a decision of LangChain's form, as the answer of whom the host says it is."""
        approval_id, project = outcome.result.approval_id, self.bridge.context.project
        if self._by is None or approval_id is None or not isinstance(answer, Mapping):
            return
        by = self._by(request) if callable(self._by) else self._by
        gate, said = self.bridge.gate, answer.get("message")
        match answer.get("type"):
            case "approve":
                await gate.decide(approval_id, "approve", by=by, project=project)
            case "edit":
                arguments = answer["edited_action"]["args"]
                await gate.approvals.edit(approval_id, arguments, by=by, project=project)
            case "reject":
                await gate.decide(approval_id, "deny", by=by, reason=said, project=project)
            case "respond":
                await gate.approvals.respond(approval_id, said, by=by, project=project)


class _Made:
    """A call the model made, as the gate and the framework each know it."""

    def __init__(self, bridge: Bridge, request: ToolCallRequest) -> None:
        self._bridge, self._request, self._call = bridge, request, request.tool_call
        tool, self.name = request.tool, self._call["name"]
        schema = tool.tool_call_schema
        told = schema if isinstance(schema, dict) else schema.model_json_schema()
        bridge.define(self.name, told, tool.description or "")

    def options(self, handler: Callable[[ToolCallRequest], Any]) -> dict[str, Any]:
        run, step = self._place()
        context = self._bridge.context_of(run=run, step=step)
        id = self._bridge.id_of(step, self._call["id"]) if self._call.get("id") else None
        return {
            "name": self.name,
            "arguments": self._call["args"],
            "function": lambda args: handler(self._request.override(tool_call={**self._call, "args": args})),
            "call_id": id,
            "context": context,
            "record": _record,
        }

    def _place(self) -> tuple[str, str]:
        """The thread and the model's message in which the call stands: both are part of the saved state."""
        config = getattr(self._request.runtime, "config", None) or {}
        thread = str(config.get("configurable", {}).get("thread_id", ""))
        for message in reversed(_messages(self._request.state)):
            if isinstance(message, AIMessage) and any(call["id"] == self._call["id"] for call in message.tool_calls):
                return thread or str(message.id), f"{thread}:{message.id}"
        return thread, thread

    def question(self, outcome: Outcome) -> dict[str, Any]:
        return {
            "type": "tool_approval",
            "tool_call_id": self._call["id"],
            "name": self.name,
            "args": self._call["args"],
            "description": outcome.text,
            "toolgate": outcome.question,
        }

    def answer(self, outcome: Outcome) -> Answer:
        if outcome.raised is not None:
            raise outcome.raised
        if not outcome.is_success:
            return self._message(outcome.text, status="error")
        value = outcome.value if outcome.ran else self._replayed(outcome.value)
        return value if outcome.note is None else self._noted(value, outcome.note)

    def _replayed(self, recorded: Any) -> Answer:
        live = _live(recorded)
        value: Answer = Command(**live["command"]) if "command" in live else live["message"]
        return value

    def _noted(self, value: Answer, note: str) -> Answer:
        if isinstance(value, ToolMessage):
            text = value.content
            content = f"{note}\n\n{text}" if isinstance(text, str) else [{"type": "text", "text": note}, *text]
            noted: ToolMessage = value.model_copy(update={"content": content})
            return noted
        update = dict(value.update) if isinstance(value.update, Mapping) else {}
        messages = [
            self._noted(one, note) if isinstance(one, ToolMessage) else one for one in update.get("messages", [])
        ]
        return Command(graph=value.graph, update={**update, "messages": messages}, goto=value.goto, resume=value.resume)

    def _message(self, text: str, **more: Any) -> ToolMessage:
        return ToolMessage(content=text, name=self.name, tool_call_id=self._call["id"], **more)


def _messages(state: Any) -> list[Any]:
    if isinstance(state, list):
        return state
    found = state.get("messages") if isinstance(state, Mapping) else getattr(state, "messages", None)
    return list(found or [])


def _record(value: Any) -> Any:
    if isinstance(value, ToolMessage):
        return {"message": _plain(value)}
    return {"command": _plain({"graph": value.graph, "update": value.update, "goto": value.goto})}


def _plain(value: Any) -> Any:
    """A result as JSON, messages in LangChain's own form."""
    if isinstance(value, BaseMessage):
        return {_MESSAGE: message_to_dict(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _live(value: Any) -> Any:
    if isinstance(value, dict):
        is_message = value.keys() == {_MESSAGE}
        return messages_from_dict([value[_MESSAGE]])[0] if is_message else {key: _live(v) for key, v in value.items()}
    return [_live(item) for item in value] if isinstance(value, list) else value
