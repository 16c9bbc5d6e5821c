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
    from toolgate.adapters.runners.client import ClientRunner
    from toolgate.adapters.runners.inline import InlineRunner
    from toolgate.adapters.sqlite.place import workspace_database
    from toolgate.bootstrap import open
    from toolgate.errors import NotExecuted
    from toolgate.gate import Gate
    from toolgate.kernel.approval import Approval, ApprovalStatus
    from toolgate.kernel.call import Call, Status
    from toolgate.kernel.context import Context, Mode, Principal, PrincipalKind
    from toolgate.kernel.doubt import nothing_sent
    from toolgate.kernel.event import Event, verify
    from toolgate.kernel.grant import Remember
    from toolgate.kernel.input import ToolInput
    from toolgate.kernel.output import Result, ToolOutput
    from toolgate.kernel.policy import Default, Facts, Policy, Verdict, Word
    from toolgate.kernel.signature import tool
    from toolgate.kernel.surfaces import to_html, to_markdown, to_plain, to_terminal
    from toolgate.kernel.terms import ApprovalTerms
    from toolgate.kernel.text.canonical import Limits
    from toolgate.kernel.text.diff import diff_json, diff_structured, diff_text
    from toolgate.kernel.text.formats import parse_calls
    from toolgate.kernel.text.formats.results import render_message, render_result
    from toolgate.kernel.text.formats.schemas import export_tools
    from toolgate.kernel.text.masking import Masker
    from toolgate.kernel.tool import Effects, Placement, Prepared, RiskLevel, Thresholds, ToolDefinition
    from toolgate.kernel.undo import UndoMetadata
    from toolgate.ports.channel import Answer, Decision
    from toolgate.ports.store import ApprovalQuery, CallQuery, DelegationQuery, GrantQuery
    from toolgate.stages import StageContext, StageKind, StageOutput

__version__ = "0.1.0"

_HOMES = {
    "Answer": "toolgate.ports.channel",
    "Approval": "toolgate.kernel.approval",
    "ApprovalQuery": "toolgate.ports.store",
    "ApprovalStatus": "toolgate.kernel.approval",
    "ApprovalTerms": "toolgate.kernel.terms",
    "Call": "toolgate.kernel.call",
    "CallQuery": "toolgate.ports.store",
    "CallbackChannel": "toolgate.adapters.channels.callback",
    "ClientRunner": "toolgate.adapters.runners.client",
    "Context": "toolgate.kernel.context",
    "Decision": "toolgate.ports.channel",
    "Default": "toolgate.kernel.policy",
    "DelegationQuery": "toolgate.ports.store",
    "Effects": "toolgate.kernel.tool",
    "Event": "toolgate.kernel.event",
    "Facts": "toolgate.kernel.policy",
    "Gate": "toolgate.gate",
    "GrantQuery": "toolgate.ports.store",
    "InlineRunner": "toolgate.adapters.runners.inline",
    "Limits": "toolgate.kernel.text.canonical",
    "Masker": "toolgate.kernel.text.masking",
    "Mode": "toolgate.kernel.context",
    "NotExecuted": "toolgate.errors",
    "Placement": "toolgate.kernel.tool",
    "Policy": "toolgate.kernel.policy",
    "Prepared": "toolgate.kernel.tool",
    "Principal": "toolgate.kernel.context",
    "PrincipalKind": "toolgate.kernel.context",
    "Remember": "toolgate.kernel.grant",
    "Result": "toolgate.kernel.output",
    "RiskLevel": "toolgate.kernel.tool",
    "StageContext": "toolgate.stages",
    "StageKind": "toolgate.stages",
    "StageOutput": "toolgate.stages",
    "Status": "toolgate.kernel.call",
    "TerminalChannel": "toolgate.adapters.channels.terminal",
    "Thresholds": "toolgate.kernel.tool",
    "ToolDefinition": "toolgate.kernel.tool",
    "ToolInput": "toolgate.kernel.input",
    "ToolOutput": "toolgate.kernel.output",
    "UndoMetadata": "toolgate.kernel.undo",
    "Verdict": "toolgate.kernel.policy",
    "WebhookChannel": "toolgate.adapters.channels.webhook",
    "Word": "toolgate.kernel.policy",
    "diff_json": "toolgate.kernel.text.diff",
    "diff_structured": "toolgate.kernel.text.diff",
    "diff_text": "toolgate.kernel.text.diff",
    "export_tools": "toolgate.kernel.text.formats.schemas",
    "nothing_sent": "toolgate.kernel.doubt",
    "open": "toolgate.bootstrap",
    "parse_calls": "toolgate.kernel.text.formats",
    "render_message": "toolgate.kernel.text.formats.results",
    "render_result": "toolgate.kernel.text.formats.results",
    "to_html": "toolgate.kernel.surfaces",
    "to_markdown": "toolgate.kernel.surfaces",
    "to_plain": "toolgate.kernel.surfaces",
    "to_terminal": "toolgate.kernel.surfaces",
    "tool": "toolgate.kernel.signature",
    "verify": "toolgate.kernel.event",
    "workspace_database": "toolgate.adapters.sqlite.place",
}

__all__ = [
    "Answer",
    "Approval",
    "ApprovalQuery",
    "ApprovalStatus",
    "ApprovalTerms",
    "Call",
    "CallQuery",
    "CallbackChannel",
    "ClientRunner",
    "Context",
    "Decision",
    "Default",
    "DelegationQuery",
    "Effects",
    "Event",
    "Facts",
    "Gate",
    "GrantQuery",
    "InlineRunner",
    "Limits",
    "Masker",
    "Mode",
    "NotExecuted",
    "Placement",
    "Policy",
    "Prepared",
    "Principal",
    "PrincipalKind",
    "Remember",
    "Result",
    "RiskLevel",
    "StageContext",
    "StageKind",
    "StageOutput",
    "Status",
    "TerminalChannel",
    "Thresholds",
    "ToolDefinition",
    "ToolInput",
    "ToolOutput",
    "UndoMetadata",
    "Verdict",
    "WebhookChannel",
    "Word",
    "diff_json",
    "diff_structured",
    "diff_text",
    "export_tools",
    "nothing_sent",
    "open",
    "parse_calls",
    "render_message",
    "render_result",
    "to_html",
    "to_markdown",
    "to_plain",
    "to_terminal",
    "tool",
    "verify",
    "workspace_database",
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
