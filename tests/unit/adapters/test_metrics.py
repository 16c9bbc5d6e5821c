"""Counts of what became of calls, as Prometheus reads them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

import toolgate
from toolgate import metrics
from toolgate.kernel.approval import Approval

SAMPLE = "tool_execution_duration_ms"


@pytest.fixture(autouse=True)
def at_zero() -> Iterator[None]:
    metrics.clear()
    yield
    metrics.clear()


def samples() -> dict[tuple[str, ...], float]:
    found = {}
    for family in text_string_to_metric_families(metrics.render()):
        for sample in family.samples:
            labels = sample.labels
            found[(sample.name, *(labels[name] for name in ("tool", "outcome", "le") if name in labels))] = sample.value
    return found


@toolgate.tool(undoable=True, undo_handler=lambda _undo: None)
async def nap(seconds: float) -> None:
    await asyncio.sleep(seconds)


@toolgate.tool(requires_approval=True)
async def ask() -> None:
    raise RuntimeError("no")


async def test_calls_are_counted_and_timed_by_tool_and_outcome() -> None:
    async with toolgate.open(tools=[nap, ask], approver=lambda _approval: True) as gate:
        done = await gate.call("nap", {"seconds": 0.002})
        await gate.call("nap", {"seconds": 0})
        await gate.call("nap", {"seconds": "x"})
        await gate.call("ask")
        await gate.call("a name a caller made up")
        await gate.undo(done.call_id)
    found = samples()
    assert found[(f"{SAMPLE}_count", "nap", "completed")] == 2
    assert found[(f"{SAMPLE}_sum", "nap", "completed")] >= 2
    assert found[(f"{SAMPLE}_bucket", "nap", "completed", "+Inf")] == 2
    assert found[(f"{SAMPLE}_bucket", "nap", "completed", "1.0")] <= 1
    assert found[(f"{SAMPLE}_count", "ask", "failed")] == 1
    assert (f"{SAMPLE}_count", "nap", "failed") not in found
    assert found[("tool_calls_total", "nap", "completed")] == 2
    assert found[("tool_calls_total", "nap", "failed")] == 1
    assert found[("tool_calls_total", "(unknown)", "failed")] == 1
    assert found[("tool_undos_total", "nap", "completed")] == 1
    assert found[("tool_approvals_total", "ask", "requested")] == 1
    assert found[("tool_approvals_total", "ask", "approved")] == 1


async def test_nothing_is_counted_at_first_or_after_clearing() -> None:
    async with toolgate.open(tools=[nap]) as gate:
        await gate.call("nap", {"seconds": 0})
    metrics.clear()
    assert samples() == {}
    assert f"# TYPE {SAMPLE} histogram" in metrics.render()
    assert metrics.CONTENT_TYPE.startswith("text/plain")


async def test_a_call_that_waits_is_counted_when_it_ends_and_names_no_arguments() -> None:
    seen: list[Approval] = []
    async with toolgate.open(tools=[ask], approver=lambda approval: seen.append(approval)) as gate:
        parked = await gate.call("ask", wait=False)
        assert ("tool_calls_total", "ask", "cancelled") not in samples()
        await gate.cancel(parked.call_id)
    assert samples()[("tool_calls_total", "ask", "cancelled")] == 1
    assert samples()[("tool_approvals_total", "ask", "expired")] == 1


@toolgate.tool(effects="irreversible", risk_level="low")
async def lose() -> None:
    raise ConnectionResetError


async def test_settled_calls_are_counted_apart() -> None:
    async with toolgate.open(tools=[lose]) as gate:
        lost = await gate.call("lose")
        assert samples()[("tool_calls_total", "lose", "unknown")] == 1
        for happened in (None, True):
            await gate.settle(lost.call_id, happened=happened, by="ann", reason="looked")
    assert samples()[("tool_settled_total", "lose", "completed")] == 1
