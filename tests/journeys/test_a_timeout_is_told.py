"""A handler that runs longer than allowed is told as a timeout in every door, also where nobody knows what it did."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from tests.journeys.scene import Open

import toolgate
from toolgate import agent_tools, governance, tools
from toolgate.errors import ToolExecutionError, ToolTimeoutError, ToolUnknownOutcomeError
from toolgate.kernel.call import Status

SHORT_S = 0.2
"""Long enough for a thread to begin on a busy machine: what never began ends otherwise."""


@pytest.fixture
def stuck() -> Iterator[Any]:
    release = threading.Event()
    yield lambda: release.wait(60)
    release.set()


@pytest.mark.parametrize(
    ("effects", "status", "code"),
    [(None, Status.UNKNOWN, "unknown"), ("read", Status.FAILED, "timeout")],
)
async def test_the_gate_and_the_executors_say_that_it_timed_out(
    open_gate: Open, stuck: Any, effects: str | None, status: Status, code: str
) -> None:
    slow = toolgate.tool(name="slow", timeout_seconds=SHORT_S, effects=effects)(stuck)
    async with open_gate(tools=[slow]) as gate:
        result = await gate.call("slow")
        assert (result.status, result.error_code, result.timed_out) == (status, code, True)
        executor = tools.ToolExecutor(gate=gate)
        with pytest.raises(ToolTimeoutError, match="timed out") as raised:
            await executor.execute({"type": "slow"})
        assert isinstance(raised.value, ToolUnknownOutcomeError) == (status is Status.UNKNOWN)
        assert isinstance(raised.value, ToolExecutionError)
        told = [await executor.execute_tool("slow"), await agent_tools.ToolExecutor(gate).execute_tool("slow")]
        assert {(one.status, one.error_type) for one in told} == {("failed", code)}
        assert all("timed out after 0.2 s" in str(text) for text in (result.error, *(one.error for one in told)))


@pytest.mark.parametrize("is_sandboxed", [False, True])
def test_the_layer_says_that_it_timed_out(stuck: Any, is_sandboxed: bool) -> None:
    registry = governance.ToolRegistry()
    definition = governance.ToolDefinition(
        name="slow",
        description="",
        category="x",
        parameters=[],
        risk_level="low",
        allowed_modes=["NORMAL"],
        requires_sandbox=is_sandboxed,
        timeout_seconds=1,
    )
    registry.register(definition, wait_for_long if is_sandboxed else stuck)
    with governance.ToolExecutionLayer(registry, "tools: {}", governance.ModeManager()) as layer:
        result = layer.execute_tool("slow")
    assert (result.success, result.metadata["category"]) == (False, "timeout")
    assert "timed out" in str(result.error)


def wait_for_long() -> None:
    threading.Event().wait(60)
