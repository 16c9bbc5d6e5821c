"""Tools whose every run leaves a line in a file, on the server's side and on the runner's."""

from __future__ import annotations

import asyncio
import os

import toolgate
from toolgate import ToolDefinition, ToolInput, ToolOutput

LOG = "RUNNER_EFFECTS"
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "hold_s": {"type": "number"}},
    "required": ["name"],
    "additionalProperties": False,
}


def _write(name: str) -> None:
    with open(os.environ[LOG], "a", encoding="utf-8") as log:
        log.write(name + "\n")
        log.flush()
        os.fsync(log.fileno())


async def _leave_a_line(given: ToolInput) -> ToolOutput:
    name = given.payload["name"]
    _write(name)
    await asyncio.sleep(given.payload.get("hold_s", 0))
    return ToolOutput.ok({"name": name})


def _tools(placement: str, lease_s: float) -> list[ToolDefinition]:
    define = toolgate.ToolDefinition
    return [
        define("mark", SCHEMA, _leave_a_line, placement=placement, effects="irreversible", risk_level="low"),
        define("peek", SCHEMA, _leave_a_line, placement=placement, effects="read", timeout_seconds=lease_s),
    ]


SERVED = _tools("client", 12.0)  # a busy machine must get through a run and a death in it
RUN = _tools("inline", 30.0)
