"""What the fleet's calls do: each effect is one line in a file outside the database, whoever runs it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import toolgate
from toolgate import ToolInput, ToolOutput

FOLDER = "FLEET_FOLDER"


def note(file: str, line: str) -> None:
    """Append a line at once, so that a kill leaves all of it or nothing."""
    descriptor = os.open(Path(os.environ[FOLDER], file), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, f"{line}\n".encode())
    finally:
        os.close(descriptor)


async def _act(given: ToolInput) -> ToolOutput:
    payload = given.payload
    note("begun", str(given.action_id))
    await asyncio.sleep(payload.get("before_s", 0.0))
    note("effects", str(given.action_id))
    await asyncio.sleep(payload.get("after_s", 0.0))
    return ToolOutput.ok({"by": os.getpid()})


async def _look(given: ToolInput) -> ToolOutput:
    await asyncio.sleep(given.payload.get("before_s", 0.0))
    return ToolOutput.ok({"by": os.getpid()})


TOOLS = [
    toolgate.ToolDefinition("send", {}, _act, placement="worker", risk_level="low", timeout_seconds=30),
    toolgate.ToolDefinition("pay", {}, _act, placement="worker", requires_approval=True, timeout_seconds=30),
    toolgate.ToolDefinition("look", {}, _look, placement="worker", effects="read", timeout_seconds=30),
    toolgate.ToolDefinition("here", {}, _act, risk_level="low", timeout_seconds=30),
]
AT_MOST_ONCE = frozenset({"send", "pay", "here"})
