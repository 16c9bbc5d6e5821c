"""What a tool is in this door: a ToolDefinition, or any object that satisfies `Tool`; both become the same record."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import fields, replace
from functools import partial
from typing import Any, Protocol, TypeAlias, runtime_checkable

from toolgate.errors import DefinitionError, UsageError
from toolgate.kernel.input import Action, ToolInput
from toolgate.kernel.output import ToolOutput
from toolgate.kernel.tool import Effects, Prepared, RiskLevel, ToolDefinition, is_async
from toolgate.kernel.undo import UndoMetadata

__all__ = [
    "Action",
    "BaseTool",
    "Effects",
    "Prepared",
    "RiskLevel",
    "Tool",
    "ToolDefinition",
    "ToolHandler",
    "ToolInput",
    "ToolOutput",
    "UndoHandler",
    "UndoMetadata",
    "action_of",
    "definition_of",
]

ToolHandler: TypeAlias = Callable[[ToolInput], Awaitable[ToolOutput] | ToolOutput]
UndoHandler: TypeAlias = Callable[[UndoMetadata], Awaitable[None] | None]


@runtime_checkable
class Tool(Protocol):
    """An object that is a tool: three names, and `execute`, async or plain."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def action_type(self) -> str: ...

    async def execute(self, input: ToolInput, ctx: dict[str, Any]) -> ToolOutput: ...


class BaseTool:
    """A tool by class attributes. Every field of ToolDefinition may be declared beside these three."""

    name: str = ""
    description: str = ""
    action_type: str = ""
    input_schema: Mapping[str, Any] = {}

    async def execute(self, input: ToolInput, ctx: dict[str, Any]) -> ToolOutput:
        raise NotImplementedError(f"{type(self).__name__} needs its own `execute`.")


_NOT_ASKED = frozenset({"name", "handler", "function", "bind", "inject", "schema", "result_schema", "hash"})
_DECLARED = tuple(item.name for item in fields(ToolDefinition) if item.init and item.name not in _NOT_ASKED)


def definition_of(tool: object, executor: Callable[..., Any] | None = None) -> ToolDefinition:
    """Return the definition a tool stands for: itself, or what its attributes declare.

    With an `executor`, `tool` only describes (document 003's definitions) and the executor gets the arguments.
    """
    if isinstance(tool, ToolDefinition):
        if executor is not None:
            raise DefinitionError(f"Tool `{tool.name}` brings its own handler; leave the executor out.")
        return tool
    if isinstance(tool, type):
        raise DefinitionError(f"{tool.__name__} is a class; register an instance: {tool.__name__}().")
    name = getattr(tool, "name", None)
    if not isinstance(name, str) or not name:
        raise DefinitionError(f"{type(tool).__name__} is not a tool: it has no `name`.")
    declared = {field: value for field in _DECLARED if (value := _declared(tool, field)) is not None}
    if executor is not None:
        return ToolDefinition(name=name, handler=executor, function=executor, **declared)
    execute = getattr(tool, "execute", None)
    if not callable(execute):
        raise DefinitionError(f"Tool `{name}` needs an `execute` method: `async def execute(self, input, ctx)`.")
    run = _run_async if is_async(execute) else _run_plain
    return ToolDefinition(name=name, handler=partial(run, execute), **declared)


def _declared(tool: object, field: str) -> Any:
    value = getattr(tool, field, None)
    if field == "input_schema" and callable(value):
        return value()
    return tuple(value) if field in ("allowed_behaviors", "allowed_modes") and isinstance(value, list) else value


async def _run_async(execute: Callable[..., Awaitable[ToolOutput]], input: ToolInput) -> ToolOutput:
    return await execute(input, _ctx_of(input))


def _run_plain(execute: Callable[..., ToolOutput], input: ToolInput) -> ToolOutput:
    return execute(input, _ctx_of(input))


def _ctx_of(input: ToolInput) -> Any:
    return {} if input.ctx is None else input.ctx


def action_of(action: object) -> Action:
    """Return an action's id, type and payload, from an object or a mapping that has them; make an id if it has none."""

    def read(name: str) -> Any:
        return action.get(name) if isinstance(action, Mapping) else getattr(action, name, None)

    kind, payload, id = read("type"), read("payload"), read("id")
    if not isinstance(kind, str) or not kind:
        raise UsageError("An action needs a `type`: the action type or the name of its tool.")
    if payload is not None and not isinstance(payload, Mapping):
        raise UsageError(f"An action's payload must be a mapping, not {type(payload).__name__}.")
    own = Action(type=kind, payload={} if payload is None else dict(payload))
    return own if id is None or id == "" else replace(own, id=id)
