"""The tools a layer offers, in document 003's words: registered with an executor, listed by mode and category."""

from __future__ import annotations

from toolgate.errors import DefinitionError
from toolgate.governance.config import GovernanceConfig
from toolgate.governance.definitions import Executor, ToolDefinition, definition_of, tool_of
from toolgate.governance.modes import read_mode
from toolgate.kernel.context import Mode
from toolgate.kernel.misuse import explained_class
from toolgate.kernel.registry import ToolRegistry as Registry
from toolgate.kernel.tool import ToolDefinition as Tool


@explained_class
class ToolRegistry(Registry):
    """Keeps each definition as it was given, beside the tool that the gate runs."""

    def __init__(self) -> None:
        self._given: dict[str, tuple[ToolDefinition, Executor]] = {}
        super().__init__()

    def register(self, tool_def: ToolDefinition | Tool, executor: Executor | None = None) -> None:
        """Offer a tool: a definition with its executor, or a tool made elsewhere (`@tool`)."""
        if isinstance(tool_def, Tool):
            if executor is not None:
                raise DefinitionError(f"Tool `{tool_def.name}` brings its own handler; leave the executor out.")
            self.add(tool_def)
            return
        if not isinstance(tool_def, ToolDefinition):
            raise DefinitionError(f"{type(tool_def).__name__} is not a tool definition.")
        if executor is None:
            raise DefinitionError(f"Tool `{tool_def.name}` needs an executor: register(definition, executor).")
        own = tool_def.model_copy(deep=True)  # what is governed is what was registered
        self.add(tool_of(own, executor))
        self._given[own.name] = (own, executor)

    def add(self, tool: Tool) -> None:
        super().add(tool)
        self._given[tool.name] = (definition_of(tool), tool.function or tool.handler)  # type: ignore[assignment]  # a tool has a handler

    def discard(self, name: str) -> None:
        super().discard(name)
        self._given.pop(name, None)

    def placed(self, governance: GovernanceConfig) -> GovernanceConfig:
        """Return the governance file as it holds where this registry's tools work."""
        return governance

    def govern(self, _governance: GovernanceConfig) -> None:
        """Told which governance file its tools answer to; those that look at files, commands or hosts follow it."""

    def get_tool(self, name: str) -> tuple[ToolDefinition, Executor] | None:
        """Return a tool's definition and executor, or None."""
        tool = self.find(name)
        return None if tool is None else self._given[tool.name]

    def list_tools(self, mode: Mode | str | None = None) -> list[ToolDefinition]:
        """Return the tools that may run in a mode; all of them without one."""
        wanted = None if mode is None else read_mode(mode)
        return [self._given[tool.name][0] for tool in self if wanted is None or tool.allows_mode(wanted)]

    def filter_by_category(self, category: str) -> list[ToolDefinition]:
        """Return the tools of a category."""
        return [definition for definition, _ in self._given.values() if definition.category == category]
