"""The tools an app offers: found by name, then by action type, never ambiguously."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from toolgate.errors import DefinitionError, ToolNotFoundError
from toolgate.kernel.tool import ToolDefinition


class ToolRegistry:
    """Tools by name and by action type. Registering a tool again replaces the one of the same name."""

    def __init__(self, tools: Iterable[ToolDefinition] = ()) -> None:
        self._by_name: dict[str, ToolDefinition] = {}
        self._found: dict[str, ToolDefinition] = {}
        for tool in tools:
            self.add(tool)

    def add(self, tool: ToolDefinition) -> None:
        """Add a tool, or replace the one of this name; refuse one that would make a string ambiguous."""
        if not isinstance(tool, ToolDefinition):
            raise DefinitionError(
                f"{type(tool).__name__} is not a tool: decorate the function with `@tool` or pass a ToolDefinition."
            )
        others = {name: other for name, other in self._by_name.items() if name != tool.name}
        for other in others.values():
            clash = {tool.name, tool.action_type} & {other.name, other.action_type}
            if clash:
                raise DefinitionError(
                    f"Tool `{tool.name}` cannot be registered: '{clash.pop()}' already names tool `{other.name}`."
                )
        self._set({**others, tool.name: tool})

    def discard(self, name: str) -> None:
        """Forget the tool of this name, if there is one."""
        self._set({other: tool for other, tool in self._by_name.items() if other != name})

    def _set(self, tools: dict[str, ToolDefinition]) -> None:
        # Readers on other threads see the old tables or the new ones, never a mixture.
        found = {tool.action_type: tool for tool in tools.values()}
        found.update(tools)
        self._by_name, self._found = tools, found

    def find(self, name: str) -> ToolDefinition | None:
        """Return the tool of this name or action type, or None."""
        return self._found.get(name)

    def resolve(self, name: str) -> ToolDefinition:
        """Return the tool of this name or action type; raise ToolNotFoundError naming what there is."""
        tool = self._found.get(name)
        if tool is None:
            known = ", ".join(sorted(self._by_name)[:20]) or "none"
            raise ToolNotFoundError(
                f"Tool `{str(name)[:128]}` is not registered; registered tools: {known}.",
                tool=str(name)[:128],
            )
        return tool

    def __iter__(self) -> Iterator[ToolDefinition]:
        return iter(tuple(self._by_name.values()))

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._found
