"""The tools an app offers, in this door's words, and the process-wide registry.

What is registered is what `get` returns; what runs is the definition made of it, and it runs through the gate.
"""

from __future__ import annotations

import builtins
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from toolgate.doors.process import ProcessWide
from toolgate.errors import DefinitionError, UsageError
from toolgate.kernel.context import Mode
from toolgate.kernel.misuse import explained_class, fits
from toolgate.kernel.registry import ToolRegistry as KernelRegistry
from toolgate.kernel.text.formats import DEFAULT_LIMITS as DEFAULT_FORMAT_LIMITS
from toolgate.kernel.text.formats import (
    FieldNames,
    Format,
    FormatLimits,
    ResolvedToolCall,
    UnresolvedToolCall,
    parse_calls,
)
from toolgate.kernel.text.formats.schemas import export_tools
from toolgate.kernel.tool import ToolDefinition
from toolgate.tools.definitions import Action, ToolInput, ToolOutput, action_of, definition_of

if TYPE_CHECKING:
    from toolgate.tools.executor import ToolExecutor

T = TypeVar("T")


class GovernedTool:
    """A registered tool whose `execute` passes the gate. Everything else is as it was registered."""

    def __init__(self, registry: ToolRegistry, definition: ToolDefinition, registered: Any) -> None:
        self._registry = registry
        self._registered = registered
        self.definition = definition
        self.name = definition.name
        self.description = definition.description
        self.action_type = definition.action_type
        self.input_schema = definition.input_schema

    async def execute(self, input: ToolInput | Any, ctx: Any = None) -> ToolOutput:
        """Run the tool as `registry.execute` does; `input` is a ToolInput, an action or plain arguments."""
        given = input if isinstance(input, ToolInput) else ToolInput(action=input)
        action = Action(id=given.action_id or Action().id, type=self.name, payload=given.payload)
        return await self._registry.execute(action, given.ctx if ctx is None else ctx)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._registered, name)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, GovernedTool):
            return other._registered is self._registered
        return other is self._registered

    def __hash__(self) -> int:
        return hash(id(self._registered))

    def __repr__(self) -> str:
        return f"GovernedTool({self.name!r})"


@explained_class
class ToolRegistry(KernelRegistry):
    """Tools by name and by action type. Registering a name again replaces its tool."""

    def __init__(self, tools: Iterable[Any] = ()) -> None:
        super().__init__()
        self._registered: dict[str, Any] = {}
        self._factories: dict[str, Callable[[], Any]] = {}
        self._making = threading.RLock()
        self._own: ToolExecutor | None = None
        for tool in tools:
            self.register(tool)

    def register(self, tool: Any, executor: Callable[..., Any] | None = None) -> None:
        """Offer a tool: a ToolDefinition, an object with `name` and `execute`, or a description and its executor."""
        self._offer(tool, definition_of(tool, executor))

    register_tool = register

    def register_factory(self, action_type: str, factory: Callable[[], Any]) -> None:
        """Offer a tool under an action type; it is made, once, when it is looked for or the tools are listed."""
        with self._making:
            self._factories[action_type] = factory

    def _offer(self, tool: Any, definition: ToolDefinition) -> None:
        self.add(definition)
        self._registered[definition.name] = tool

    def _make(self, action_types: Iterable[str]) -> None:
        with self._making:
            for action_type in action_types:
                if action_type in self._factories:  # nobody made it while we waited
                    made = self._factories[action_type]()
                    self._offer(made, replace(definition_of(made), action_type=action_type))
                    del self._factories[action_type]

    def find(self, name: str) -> ToolDefinition | None:
        if self._factories:
            with self._making:
                if super().find(name) is None:  # which names the others bring shows when they are made
                    self._make((name,) if name in self._factories else tuple(self._factories))
        return super().find(name)

    def resolve(self, name: str) -> ToolDefinition:
        self.find(name)
        return super().resolve(name)

    def discard(self, name: str) -> None:
        with self._making:
            self._factories.pop(name, None)
        super().discard(name)
        self._registered.pop(name, None)

    unregister = discard

    def __iter__(self) -> Iterator[ToolDefinition]:
        self._make(tuple(self._factories))
        return super().__iter__()

    def __len__(self) -> int:
        return super().__len__() + len(self._factories)

    def __contains__(self, name: object) -> bool:
        return name in self._factories or (isinstance(name, str) and self.find(name) is not None)

    def get(self, name: str) -> Any:
        """Return what was registered under this name, else under this action type; None where nothing was."""
        definition = self.find(name)
        return None if definition is None else self._registered.get(definition.name, definition)

    def get_by_action_type(self, action_type: str) -> Any:
        """Return what was registered under this action type; None where nothing was."""
        found = self.find(action_type)
        if found is None or found.action_type != action_type:
            found = next((tool for tool in self if tool.action_type == action_type), None)
        return None if found is None else self.get(found.name)

    def get_tool(self, name: str) -> tuple[ToolDefinition, Any] | None:
        """Return a tool's definition and what it runs; None where there is none."""
        definition = self.find(name)
        return None if definition is None else (definition, definition.function or definition.handler)

    def has(self, name: str) -> bool:
        """Whether there is a tool of this name or action type."""
        return name in self

    can_execute = has

    def list_tools(self, mode: Mode | str | None = None) -> builtins.list[Any]:
        """Return the tools that may run in a mode; all of them without one."""
        wanted = None if mode is None else Mode(mode)
        return [self._presented(tool) for tool in self if wanted is None or tool.allows_mode(wanted)]

    def filter_by_category(self, category: str) -> builtins.list[Any]:
        """Return the tools of a category."""
        return [self._presented(tool) for tool in self if tool.category == category]

    def governed(self, name: str) -> GovernedTool:
        """Return a tool whose `execute` passes the gate; raise ToolNotFoundError."""
        definition = self.resolve(name)
        return GovernedTool(self, definition, self.get(definition.name))

    def _presented(self, definition: ToolDefinition) -> Any:
        """What was registered, if it can be shown to a model as it is: by name, description and schema."""
        registered = self.get(definition.name)
        whole = all(hasattr(registered, name) for name in ("name", "description", "input_schema"))
        return registered if whole else self.governed(definition.name)

    def parse_and_resolve(
        self,
        tool_calls: Any,
        *,
        id_field: str = "id",
        name_field: str = "name",
        arguments_field: str = "arguments",
        function_wrapper: str | None = "function",
        limits: FormatLimits = DEFAULT_FORMAT_LIMITS,
    ) -> tuple[builtins.list[ResolvedToolCall], builtins.list[UnresolvedToolCall]]:
        """Return a model's tool calls: those that can run, whose `tool.execute` passes the gate, and those that cannot.

        Understands a response, a message, a list of calls or one call of any known provider, as dicts or SDK
        objects. With field names of your own every call is read by these alone. Nothing raises and nothing runs.
        """
        names = FieldNames(id_field, name_field, arguments_field, function_wrapper)
        resolved, unresolved = parse_calls(tool_calls, self.find, names=names, limits=limits)
        return [replace(call, tool=self.governed(call.tool.name)) for call in resolved], unresolved

    def export(self, format: Format | str, *, strict: bool = False) -> builtins.list[dict[str, Any]]:
        """Return all tools as a provider's `tools` parameter takes them."""
        return export_tools(self, format, strict=strict)

    async def execute(self, action: Any, ctx: Any = None) -> ToolOutput:
        """Run an action's tool through the gate, as ToolExecutor.execute does, in a project of this registry's own."""
        return await self.executor.execute(action_of(action), ctx)

    @property
    def executor(self) -> ToolExecutor:
        """The executor behind `execute`; its `undo_action` takes back what that did."""
        if self._own is None:
            from toolgate.tools.executor import ToolExecutor  # here: an executor has a registry

            self._own = ToolExecutor(self)
        return self._own

    def list(self) -> builtins.list[Any]:
        """Return all tools, each with `name`, `description` and `input_schema`."""
        return self.list_tools()


_registry = ProcessWide(ToolRegistry)


def get_tool_registry() -> ToolRegistry:
    """Return the process-wide registry."""
    return _registry.get()


def set_tool_registry(registry: ToolRegistry) -> None:
    """Make a registry the process-wide one."""
    if not fits(registry, ToolRegistry):
        raise UsageError(f"A registry is a ToolRegistry, not {type(registry).__name__}.")
    _registry.put(registry)


def clear_tool_registry() -> None:
    """Forget the process-wide registry; the next one asked for is new and empty."""
    _registry.put(None)


def register_tool(tool: T) -> T:
    """Register a tool with the process-wide registry and return it. A class is registered as an instance of it."""
    if isinstance(tool, type):
        try:
            instance = tool()
        except TypeError as error:
            raise DefinitionError(
                f"{tool.__name__} cannot be registered as a class, for it cannot be made without arguments ({error}); "
                "register an instance."
            ) from None
        get_tool_registry().register(instance)
    else:
        get_tool_registry().register(tool)
    return tool


def tool(action_type: str, name: str | None = None, description: str | None = None) -> Callable[[type[T]], type[T]]:
    """Register a class with the process-wide registry under an action type; it is made when it is first looked for.

    `name` and `description` count where the class declares none. For a function use `toolgate.tool`.
    """

    def register(cls: type[T]) -> type[T]:
        if not isinstance(cls, type) or not isinstance(action_type, str):
            raise UsageError('`@tool("ACTION_TYPE")` is for classes; for a function use `@toolgate.tool`.')
        said = {"action_type": action_type, "name": name or cls.__name__, "description": description or ""}
        for field, value in said.items():
            setattr(cls, f"_tool_{field}", value)
            if not getattr(cls, field, None):
                setattr(cls, field, value)
        get_tool_registry().register_factory(action_type, cls)
        return cls

    return register if isinstance(action_type, str) else register(action_type)  # `@tool` without a word
