"""Objects of the doors in a program that closes none of them: it ends, and prints nothing of ours."""

from __future__ import annotations

import subprocess
import sys

import pytest

LAYER = """
import asyncio, gc
from toolgate.governance import ModeManager, ToolDefinition, ToolExecutionLayer, ToolRegistry

def layer():
    registry = ToolRegistry()
    definition = ToolDefinition(
        name="f", description="", category="x", parameters=[], risk_level="low", allowed_modes=["NORMAL"]
    )
    registry.register(definition, lambda: 1)
    return ToolExecutionLayer(registry, "tools: {}", ModeManager())
"""

PROGRAMS = {
    "a layer": LAYER
    + """
kept = layer()
print(kept.execute_tool("f").success)
""",
    "a layer let go in a coroutine": LAYER
    + """
async def main():
    made = layer()
    print((await made.aexecute_tool("f")).success)
    del made
    gc.collect()

asyncio.run(main())
""",
    "a layer in an async with": LAYER
    + """
async def main():
    async with layer() as made:
        print((await made.aexecute_tool("f")).success)
    print((await made.aexecute_tool("f")).success)

asyncio.run(main())
""",
    "executors and services": """
import asyncio
from toolgate.tools import AdvancedToolExecutor, ApprovalRequest, ToolRegistry, get_approval_service, get_undo_store
from toolgate import tool

@tool
def f() -> bool:
    return True

async def main():
    registry = ToolRegistry([f])
    print((await registry.execute({"type": "f"})).data)
    print((await AdvancedToolExecutor(registry).execute({"type": "f"})).data)
    await get_approval_service().request(ApprovalRequest("a", "f", "May it?", {}))
    get_undo_store()

asyncio.run(main())
""",
    "functions that ask": """
import asyncio
from toolgate.hitl import hitl_tool, is_hitl_pending

@hitl_tool()
async def f() -> bool:
    return True

print(is_hitl_pending(asyncio.run(f())))
""",
    "the agent's executor": """
import asyncio
from toolgate.agent_tools import ApprovalManager, PathValidator, ToolExecutor

async def main():
    refused = await ToolExecutor().execute_tool("no_such_tool")
    print(refused.status == "failed")
    await ApprovalManager().request_tool_approval("f")
    print(PathValidator(".").validate_directory_path(".").valid)

asyncio.run(main())
""",
}


def run(program: str) -> list[str]:
    """The words a program prints; it must end well and say nothing else."""
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_nobody_closed_prints_nothing_at_the_end(name: str) -> None:
    assert run(PROGRAMS[name])[0] == "True"


def test_a_layer_that_was_closed_says_so() -> None:
    assert run(PROGRAMS["a layer in an async with"]) == ["True", "False"]
