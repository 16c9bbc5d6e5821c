"""Toolgate: every tool call an agent makes goes through one gate.

    gate = toolgate.open("memory://", tools=[my_tool])
    result = await gate.call("my_tool", {"x": 1})

Names are loaded at first use, so importing the package is cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolgate.adapters.channels.callback import CallbackChannel
    from toolgate.adapters.channels.terminal import TerminalChannel
    from toolgate.adapters.channels.webhook import WebhookChannel
    from toolgate.bootstrap import open
    from toolgate.gate import Gate
    from toolgate.kernel.approval import Approval
    from toolgate.kernel.context import Context, Mode, Principal, PrincipalKind
    from toolgate.kernel.event import verify
    from toolgate.kernel.grant import Remember
    from toolgate.kernel.input import ToolInput
    from toolgate.kernel.output import Result, ToolOutput
    from toolgate.kernel.policy import Policy
    from toolgate.kernel.signature import tool
    from toolgate.kernel.terms import ApprovalTerms
    from toolgate.kernel.tool import Prepared, ToolDefinition
    from toolgate.kernel.undo import UndoMetadata
    from toolgate.ports.channel import Answer, Decision
    from toolgate.ports.store import GrantQuery
    from toolgate.stages import StageContext, StageKind, StageOutput

__version__ = "0.1.0"

_HOMES = {
    "Answer": "toolgate.ports.channel",
    "Approval": "toolgate.kernel.approval",
    "ApprovalTerms": "toolgate.kernel.terms",
    "CallbackChannel": "toolgate.adapters.channels.callback",
    "Context": "toolgate.kernel.context",
    "Decision": "toolgate.ports.channel",
    "Gate": "toolgate.gate",
    "GrantQuery": "toolgate.ports.store",
    "Mode": "toolgate.kernel.context",
    "Policy": "toolgate.kernel.policy",
    "Prepared": "toolgate.kernel.tool",
    "Principal": "toolgate.kernel.context",
    "PrincipalKind": "toolgate.kernel.context",
    "Remember": "toolgate.kernel.grant",
    "Result": "toolgate.kernel.output",
    "StageContext": "toolgate.stages",
    "StageKind": "toolgate.stages",
    "StageOutput": "toolgate.stages",
    "TerminalChannel": "toolgate.adapters.channels.terminal",
    "ToolDefinition": "toolgate.kernel.tool",
    "ToolInput": "toolgate.kernel.input",
    "ToolOutput": "toolgate.kernel.output",
    "UndoMetadata": "toolgate.kernel.undo",
    "WebhookChannel": "toolgate.adapters.channels.webhook",
    "open": "toolgate.bootstrap",
    "tool": "toolgate.kernel.signature",
    "verify": "toolgate.kernel.event",
}

__all__ = [
    "Answer",
    "Approval",
    "ApprovalTerms",
    "CallbackChannel",
    "Context",
    "Decision",
    "Gate",
    "GrantQuery",
    "Mode",
    "Policy",
    "Prepared",
    "Principal",
    "PrincipalKind",
    "Remember",
    "Result",
    "StageContext",
    "StageKind",
    "StageOutput",
    "TerminalChannel",
    "ToolDefinition",
    "ToolInput",
    "ToolOutput",
    "UndoMetadata",
    "WebhookChannel",
    "open",
    "tool",
    "verify",
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
