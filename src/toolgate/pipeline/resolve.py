"""Find the tool a call names. Nothing is recorded here; an unknown name is recorded by the driver."""

from __future__ import annotations

from toolgate.kernel.registry import ToolRegistry
from toolgate.kernel.tool import ToolDefinition


def resolve(registry: ToolRegistry, name: str) -> ToolDefinition:
    """Return the tool of this name or action type; raise ToolNotFoundError."""
    return registry.resolve(name)
