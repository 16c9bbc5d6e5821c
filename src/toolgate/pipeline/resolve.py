"""Find the tool a call names. Nothing is recorded here; an unknown name is recorded by the walk."""

from __future__ import annotations

from toolgate.kernel.registry import ToolRegistry

resolve = ToolRegistry.resolve
"""`resolve(registry, name)` returns the tool of this name or action type; raises ToolNotFoundError."""
