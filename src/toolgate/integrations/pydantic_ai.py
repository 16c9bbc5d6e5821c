"""Pydantic AI: a capability, or a toolset around another one, that takes every tool call through the gate.

A call that waits for a person raises `ApprovalRequired`, so the run ends with `DeferredToolRequests`, as it does for
approvals of the framework's own. Its resume asks the gate again: what the framework was told does not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import orjson
from pydantic_ai import RunContext, ToolReturn
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ApprovalRequired, ToolFailed
from pydantic_ai.messages import ModelResponse, ToolCallPart, tool_return_ta
from pydantic_ai.tools import ToolDenied
from pydantic_ai.toolsets import AbstractToolset, WrapperToolset
from pydantic_ai.toolsets.abstract import ToolsetTool

from toolgate.errors import ToolInputError, ToolOutputError
from toolgate.gate import Gate
from toolgate.gate.bridge import Bridge, Outcome, check_version
from toolgate.kernel.call import Status
from toolgate.kernel.context import Context
from toolgate.kernel.payload import encode
from toolgate.kernel.policy import NOTHING

NAME = "Pydantic AI"
TESTED = ((2, 66), (3,))
_ASKS = {"requires_approval": True}


@dataclass
class GatedToolset(WrapperToolset[Any]):
    """The tools of another toolset, through the gate."""

    bridge: Bridge

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """What the framework would ask about by itself is left to the gate, which asks about all of it."""
        return {name: _unasked(tool) for name, tool in (await self.wrapped.get_tools(ctx)).items()}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        told, bridge = tool.tool_def, self.bridge
        bridge.define(name, told.parameters_json_schema, told.description or "", _ASKS if _asks(tool) else NOTHING)
        try:
            sent = encode(tool_args, what="arguments")
        except ToolOutputError as error:
            raise ToolInputError(f"{NAME}: tool `{name}` was not called. {error}", tool=name) from None

        async def run(arguments: dict[str, Any]) -> Any:
            # What the framework holds may have been changed while somebody was asked about it.
            is_same = arguments == orjson.loads(sent) and encode(tool_args) == sent
            args = tool_args if is_same else tool.args_validator.validate_json(orjson.dumps(arguments))
            return await self.wrapped.call_tool(name, args, ctx, tool)

        run_id, step = _place(ctx)
        outcome = await bridge.carry(
            name,
            sent,
            run,
            call_id=bridge.id_of(run_id, ctx.tool_call_id) if ctx.tool_call_id else None,
            context=bridge.context_of(run=run_id, step=step),
            record=_record,
        )
        return _answer(outcome)


@dataclass(init=False)
class Toolgate(AbstractCapability[Any]):
    """`Agent(..., capabilities=[Toolgate(gate)])`: every tool the agent has goes through the gate.

    `effects` says what tools do, such as `{"wire": "irreversible"}`; `context` who the agent is. With `wait` a question
    is waited for inside the run, which then never pauses. Give sub-agents the same capability.
    """

    _: KW_ONLY
    bridge: Bridge

    def __init__(
        self,
        gate: Gate,
        *,
        effects: Mapping[str, str] | None = None,
        context: Context | None = None,
        wait: bool = False,
        any_version: bool = False,
    ) -> None:
        if not any_version:
            check_version(NAME, "pydantic-ai-slim", *TESTED)
        self.bridge = Bridge(gate, NAME, effects=effects, context=context, wait=wait)

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return GatedToolset(toolset, self.bridge)

    def around(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        """Return one toolset governed, where an agent's others are not to be."""
        return GatedToolset(toolset, self.bridge)


def _asks(tool: ToolsetTool[Any]) -> bool:
    return bool((tool.tool_def.metadata or {}).get("toolgate_asks"))


def _unasked(tool: ToolsetTool[Any]) -> ToolsetTool[Any]:
    told = tool.tool_def
    if told.kind != "unapproved":
        return tool
    return replace(
        tool, tool_def=replace(told, kind="function", metadata={**(told.metadata or {}), "toolgate_asks": True})
    )


def _place(ctx: RunContext[Any]) -> tuple[str, str]:
    """The run and the step in which the model made a call: the same when the run is resumed from its messages."""
    for index in range(len(ctx.messages) - 1, -1, -1):
        message = ctx.messages[index]
        if isinstance(message, ModelResponse) and any(
            isinstance(part, ToolCallPart) and part.tool_call_id == ctx.tool_call_id for part in message.parts
        ):
            run_id = message.run_id or message.timestamp.isoformat()
            return run_id, f"{run_id}:{index}"
    run_id = ctx.run_id or ""
    return run_id, f"{run_id}:{ctx.run_step}"


def _record(value: Any) -> Any:
    returned = value.return_value if isinstance(value, ToolReturn) else value
    try:
        return tool_return_ta.dump_python(returned, mode="json")
    except ValueError as error:
        raise ToolOutputError(
            f"The output cannot be written as JSON ({str(error)[:200]}); return JSON types."
        ) from None


def _answer(outcome: Outcome) -> Any:
    if outcome.is_paused:
        raise ApprovalRequired(metadata={"toolgate": outcome.question})
    if outcome.is_success:
        return outcome.value if outcome.note is None else _noted(outcome.value, outcome.note)
    if outcome.raised is not None:
        raise outcome.raised
    if outcome.result.status in (Status.FAILED, Status.UNKNOWN):
        raise ToolFailed(outcome.text)
    return ToolDenied(outcome.text)


def _noted(value: Any, note: str) -> ToolReturn[Any]:
    """What the tool returned, with a word of the arguments it really ran with."""
    made = value if isinstance(value, ToolReturn) else ToolReturn(return_value=value)
    content = (
        [note] if made.content is None else [note, *([made.content] if isinstance(made.content, str) else made.content)]
    )
    return replace(made, content=content)
