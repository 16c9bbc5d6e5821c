"""The built-in tools: files, the system, the web and code. `built_in_tools` gives them for one set of edges."""

from __future__ import annotations

from toolgate.catalog.web import SearchProvider
from toolgate.guards.edges import EdgeSource
from toolgate.kernel.tool import ToolDefinition


def built_in_tools(edges: EdgeSource, *, search: SearchProvider | None = None) -> list[ToolDefinition]:
    """Return every built-in tool. What they may touch is what `edges` says at the time of each call."""
    from toolgate.catalog import changes, code, execute, filesystem, system, web

    return [
        *filesystem.tools(edges),
        *changes.tools(edges),
        *system.tools(),
        *web.tools(edges, search),
        *execute.tools(edges),
        *code.tools(edges),
    ]
