"""The tools of the load report. Each has effects, so that no handler starts before its claim is on the disk."""

import time
from pathlib import Path

import toolgate
from toolgate import ToolInput, ToolOutput

POLICY = Path(__file__).with_name("policy.yaml")
PAYLOAD = {"order": "A-1", "amount": 12}


async def _act(given: ToolInput) -> ToolOutput:
    """Say when the handler started, on the clock all processes of a machine share."""
    return ToolOutput.ok({"started_ns": time.monotonic_ns(), "order": given.payload["order"]})


TOOLS = [
    toolgate.ToolDefinition("send", {}, _act, risk_level="low"),
    toolgate.ToolDefinition("pay", {}, _act, requires_approval=True),
    toolgate.ToolDefinition("pay_far", {}, _act, requires_approval=True, placement="worker", timeout_seconds=60),
]
