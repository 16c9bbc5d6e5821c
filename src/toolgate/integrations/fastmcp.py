"""FastMCP: a middleware that takes every tool call of a server people already have through the gate.

MCP has no pause that every client knows, so a question is waited for inside the request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastmcp.exceptions import ToolError
from fastmcp.server.middleware import Middleware
from fastmcp.tools.base import ToolResult
from mcp.types import TextContent

from toolgate.gate import Gate
from toolgate.gate.bridge import Bridge, check_version
from toolgate.kernel.context import Context

NAME = "FastMCP"
TESTED = ((4, 1), (5,))


class Toolgate(Middleware):
    """`server.add_middleware(Toolgate(gate))`: every tool of the server goes through the gate.

    `effects` says what tools do, such as `{"wire": "irreversible"}`; what a tool's annotations hint at does not count.
    `context` is who calls.
    """

    def __init__(
        self,
        gate: Gate,
        *,
        effects: Mapping[str, str] | None = None,
        context: Context | None = None,
        any_version: bool = False,
    ) -> None:
        if not any_version:
            check_version(NAME, "fastmcp", *TESTED)
        self.bridge = Bridge(gate, NAME, effects=effects, context=context, wait=True)

    async def on_call_tool(self, context: Any, call_next: Any) -> Any:
        message, server = context.message, context.fastmcp_context.fastmcp
        tool = await server.get_tool(message.name)
        if tool is None:
            return await call_next(context)  # there is no such tool: the server says so
        self.bridge.define(message.name, tool.parameters, tool.description or "")

        async def run(arguments: dict[str, Any]) -> Any:
            return await call_next(context.copy(message=message.model_copy(update={"arguments": arguments})))

        outcome = await self.bridge.carry(message.name, message.arguments or {}, run, record=_record)
        if outcome.raised is not None:
            raise outcome.raised
        if not outcome.is_success:
            raise ToolError(outcome.text)
        result = outcome.value if outcome.ran else ToolResult(**outcome.value)
        return result if outcome.note is None else _noted(result, outcome.note)


def _record(result: Any) -> dict[str, Any]:
    content = [block.model_dump(mode="json") for block in result.content]
    return {"content": content, "structured_content": result.structured_content, "is_error": result.is_error}


def _noted(result: Any, note: str) -> Any:
    """A result with a word of the arguments it really ran with."""
    said = [TextContent(type="text", text=note), *result.content]
    return ToolResult(
        content=said, structured_content=result.structured_content, meta=result.meta, is_error=result.is_error
    )
