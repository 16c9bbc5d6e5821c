"""Toolgate: every tool call an agent makes goes through one gate.

    gate = toolgate.open("memory://", tools=[my_tool])
    result = await gate.call("my_tool", {"x": 1})

Names are loaded at first use, so importing the package is cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolgate.bootstrap import open
    from toolgate.gate import Gate
    from toolgate.kernel.context import Context, Mode, Principal
    from toolgate.kernel.input import ToolInput
    from toolgate.kernel.output import Result, ToolOutput
    from toolgate.kernel.policy import Policy
    from toolgate.kernel.signature import tool
    from toolgate.kernel.tool import ToolDefinition
    from toolgate.stages import StageContext, StageKind, StageOutput

__version__ = "0.1.0"

_HOMES = {
    "Context": "toolgate.kernel.context",
    "Gate": "toolgate.gate",
    "Mode": "toolgate.kernel.context",
    "Policy": "toolgate.kernel.policy",
    "Principal": "toolgate.kernel.context",
    "Result": "toolgate.kernel.output",
    "StageContext": "toolgate.stages",
    "StageKind": "toolgate.stages",
    "StageOutput": "toolgate.stages",
    "ToolDefinition": "toolgate.kernel.tool",
    "ToolInput": "toolgate.kernel.input",
    "ToolOutput": "toolgate.kernel.output",
    "open": "toolgate.bootstrap",
    "tool": "toolgate.kernel.signature",
}

__all__ = [
    "Context",
    "Gate",
    "Mode",
    "Policy",
    "Principal",
    "Result",
    "StageContext",
    "StageKind",
    "StageOutput",
    "ToolDefinition",
    "ToolInput",
    "ToolOutput",
    "open",
    "tool",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'toolgate' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
