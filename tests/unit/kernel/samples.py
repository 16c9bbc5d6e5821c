"""The smallest valid values of the kernel, for tests that care about one field."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from toolgate.kernel.approval import Approval
from toolgate.kernel.call import Call
from toolgate.kernel.context import Context
from toolgate.kernel.input import ToolInput
from toolgate.kernel.output import ToolOutput
from toolgate.kernel.tool import ToolDefinition

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


async def do_nothing(tool_input: ToolInput) -> ToolOutput:
    return ToolOutput.ok(tool_input.payload)


def a_tool(name: str = "edit", **options: Any) -> ToolDefinition:
    return ToolDefinition(**{"name": name, "handler": do_nothing, **options})


def a_call(**fields: Any) -> Call:
    given = {"id": "c1", "project": "p", "tool_name": "edit", "context": Context(), "created_at": NOW}
    return Call(**{**given, **fields})


def an_approval(**fields: Any) -> Approval:
    given = {
        "id": "a1",
        "project": "p",
        "call_id": "c1",
        "tool_name": "edit",
        "message": "Run edit?",
        "digest": "d",
        "nonce": "n",
        "definition_hash": "h",
        "requester": "agent:local",
        "created_at": NOW,
        "expires_at": NOW + timedelta(seconds=300),
    }
    return Approval(**{**given, **fields})
