from __future__ import annotations

import asyncio

import pytest
from tests.journeys.scene import Open, names

from toolgate import ToolDefinition, ToolInput, ToolOutput, tool
from toolgate.errors import UsageError


async def climb(given: ToolInput) -> ToolOutput:
    await given.progress(0.5, "half way")
    await asyncio.sleep(0)
    await given.progress(1.0, data={"steps": 2})
    return ToolOutput.ok()


def climb_plainly(given: ToolInput) -> ToolOutput:
    given.progress(0.5, "half way")
    given.progress(1.0, data={"steps": 2})
    return ToolOutput.ok()


@pytest.mark.parametrize("handler", [climb, climb_plainly])
async def test_progress_is_told_in_order_before_the_end(open_gate: Open, handler: object) -> None:
    async with open_gate(tools=[ToolDefinition(name="climb", handler=handler)]) as gate:  # type: ignore[arg-type]
        result = await gate.call("climb")
        events = await gate.events(call_id=result.call_id)
        assert names(events) == ["tool.invoked", "tool.started", "tool.progress", "tool.progress", "tool.completed"]
        first, second = events[2].data, events[3].data
        assert (first["progress"], first["message"], first["data"]) == (0.5, "half way", None)
        assert (second["progress"], second["message"], second["data"]) == (1.0, None, {"steps": 2})


async def test_a_function_gets_the_input_it_asks_for(open_gate: Open) -> None:
    @tool
    async def climb_to(height: int, given: ToolInput) -> int:
        await given.progress(1.0)
        return height

    @tool
    def climb_down(given: ToolInput, height: int) -> int:
        given.progress(1.0)
        return height

    async with open_gate(tools=[climb_to, climb_down]) as gate:
        for name in ("climb_to", "climb_down"):
            result = await gate.call(name, {"height": 3})
            assert result.data == 3
            assert "tool.progress" in names(await gate.events(call_id=result.call_id))


async def test_progress_that_has_no_json_form_fails_the_handler(open_gate: Open) -> None:
    async def broken(given: ToolInput) -> ToolOutput:
        await given.progress(data=object())
        return ToolOutput.ok()

    async with open_gate(tools=[ToolDefinition(name="broken", handler=broken)]) as gate:
        assert (await gate.call("broken")).error_code == "invalid_output"


def test_progress_is_reported_only_while_the_gate_runs_the_handler() -> None:
    with pytest.raises(UsageError, match="while the gate runs"):
        ToolInput(payload={}).progress(0.1)


async def test_much_in_one_report_is_shortened(open_gate: Open) -> None:
    async def chatty(given: ToolInput) -> ToolOutput:
        await given.progress(0.1, "a" * 50_000 + " password=hunter2hunter2", {"rows": ["x" * 100] * 500})
        await given.progress(0.2, "b" * 200_000, {"rows": ["x" * 100] * 5000})
        return ToolOutput.ok()

    async with open_gate(tools=[ToolDefinition(name="chatty", handler=chatty)]) as gate:
        result = await gate.call("chatty")
        told = [event.data for event in await gate.events(call_id=result.call_id) if event.type == "tool.progress"]
        assert [len(data["message"]) for data in told] == [2000, 2000]
        assert told[0]["data"] == {"truncated": True, "bytes": 51_510, "keys": ["rows"]}
        assert "hunter2" not in str(told)


async def test_a_handler_in_a_loop_does_not_fill_the_record(open_gate: Open) -> None:
    async def tireless(given: ToolInput) -> ToolOutput:
        for number in range(1000):
            await given.progress(number / 1000)
        return ToolOutput.ok()

    async with open_gate(tools=[ToolDefinition(name="tireless", handler=tireless)]) as gate:
        result = await gate.call("tireless")
        assert result.success
        told = names(await gate.events(call_id=result.call_id))
        assert 100 <= told.count("tool.progress") < 200
        again = await gate.call("tireless")
        assert names(await gate.events(call_id=again.call_id)).count("tool.progress") >= 100  # each call has its own


async def test_progress_is_a_number(open_gate: Open) -> None:
    async def broken(given: ToolInput) -> ToolOutput:
        await given.progress("much" * 1000)  # type: ignore[arg-type]
        return ToolOutput.ok()

    async with open_gate(tools=[ToolDefinition(name="broken", handler=broken)]) as gate:
        assert (await gate.call("broken")).error_code == "invalid_output"
