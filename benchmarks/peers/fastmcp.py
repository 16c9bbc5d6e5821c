"""FastMCP: the server's own `call_tool`, and for information the same call through its in-memory client.

The client case adds a protocol round trip (request, response, output-schema check), which the other
contenders do not have.
"""

# mypy: disable-error-code="import-not-found"

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from benchmarks.workload import Step, Workload
from fastmcp import Client, FastMCP

DISTRIBUTION = "fastmcp"


def server(work: Workload) -> Any:
    """Return a server that offers the workload's tool."""
    built = FastMCP("benchmark")
    built.tool(work.function)
    return built


@asynccontextmanager
async def on_the_server(work: Workload) -> AsyncIterator[Step]:
    """Yield a step that calls the tool where it is registered; the text block is already JSON."""
    target, sent = server(work), work.sent()

    async def step() -> str:
        result = await target.call_tool(work.name, json.loads(next(sent)))
        return str(result.content[0].text)

    yield step


@asynccontextmanager
async def through_the_client(work: Workload) -> AsyncIterator[Step]:
    """Yield a step that calls the tool through a client connected in memory."""
    sent = work.sent()
    async with Client(server(work)) as client:

        async def step() -> str:
            result = await client.call_tool(work.name, json.loads(next(sent)))
            return str(result.content[0].text)

        yield step


CASES = {"fastmcp": on_the_server, "fastmcp_client": through_the_client}
