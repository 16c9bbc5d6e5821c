from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.journeys.scene import Open, names

import toolgate
from toolgate import Result, ToolDefinition, ToolInput, ToolOutput, tool
from toolgate.errors import ToolExecutionError, ToolInputError, ToolNotFoundError, ToolOutputError, UsageError
from toolgate.kernel.call import Status
from toolgate.kernel.text.canonical import Limits
from toolgate.testing.patience import PATIENCE_S

ran: list[str] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


@tool
async def add(a: int, b: int = 0) -> int:
    ran.append("add")
    return a + b


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


async def test_an_unknown_tool_fails_and_is_recorded(open_gate: Open) -> None:
    async with open_gate(tools=[add]) as gate:
        result = await gate.call("subtract", {"a": 1})
        assert (result.status, result.error_code) == (Status.FAILED, "tool_not_found")
        assert "registered tools: add" in str(result.error)
        assert names(await gate.events(call_id=result.call_id)) == ["tool.failed"]
        with pytest.raises(ToolNotFoundError):
            result.unwrap()


@pytest.mark.parametrize(
    "raw", ['{"a": 1', '{"a": 1, "a": 2}', '{"a": NaN}', "[1]", '"text"', b"\xff\xfe", "", "null", '{"a": 1} {}']
)
async def test_arguments_that_are_not_one_strict_object_are_refused(open_gate: Open, raw: str | bytes) -> None:
    async with open_gate(tools=[add]) as gate:
        result = await gate.call("add", raw)
        assert (result.status, result.error_code, ran) == (Status.FAILED, "invalid_arguments", [])
        assert names(await gate.events(call_id=result.call_id)) == ["tool.invoked", "tool.failed"]
        with pytest.raises(ToolInputError):
            result.unwrap()


async def test_arguments_too_deep_or_too_large_are_refused(open_gate: Open) -> None:
    any_object = ToolDefinition(name="any", handler=lambda _given: ToolOutput.ok())
    async with open_gate(tools=[any_object], limits=Limits(max_bytes=1000, max_depth=8)) as gate:
        for arguments in ({"a": deep(8)}, {"a": "x" * 1000}):
            result = await gate.call("any", arguments)
            assert result.error_code == "invalid_arguments"
        assert (await gate.call("any", {"a": deep(6)})).success


async def test_a_schema_violation_names_where_it_is(open_gate: Open) -> None:
    async with open_gate(tools=[add]) as gate:
        result = await gate.call("add", {"a": "one"})
        assert "/a" in str(result.error)
        assert "Correct them and call again" in str(result.error)
        assert (await gate.call("add", {"a": 1, "c": 2})).error_code == "invalid_arguments"


@pytest.mark.parametrize("value", [object(), {1, 2}, b"bytes", float("nan"), deep(2000), {"a": float("inf")}])
async def test_output_without_a_json_form_fails_the_call(open_gate: Open, value: object) -> None:
    @tool
    async def give() -> object:
        return value

    async with open_gate(tools=[give]) as gate:
        result = await gate.call("give")
        assert (result.status, result.error_code) == (Status.FAILED, "invalid_output")
        with pytest.raises(ToolOutputError):
            result.unwrap()


async def test_a_handler_that_returns_no_tool_output_fails(open_gate: Open) -> None:
    async with open_gate(tools=[ToolDefinition(name="give", handler=lambda _given: 3)]) as gate:
        result = await gate.call("give")
        assert result.error_code == "invalid_output"
        assert "int instead of ToolOutput" in str(result.error)


async def test_output_against_its_schema_fails_the_call(open_gate: Open) -> None:
    schema = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}

    async def handler(given: ToolInput) -> ToolOutput:
        return ToolOutput.ok({"id": given.payload["id"]})

    async with open_gate(tools=[ToolDefinition(name="give", handler=handler, output_schema=schema)]) as gate:
        assert (await gate.call("give", {"id": 1})).data == {"id": 1}
        broken = await gate.call("give", {"id": "one"})
        assert (broken.status, broken.error_code) == (Status.FAILED, "invalid_output")
        assert "/id" in str(broken.error)


async def _fails_with(open_gate: Open, handler: Any) -> Result:
    async with open_gate(tools=[ToolDefinition(name="broken", handler=handler)]) as gate:
        return await asyncio.wait_for(gate.call("broken"), PATIENCE_S)


class Abort(BaseException):
    """What some frameworks stop their own work with; it is no Exception."""


@pytest.mark.parametrize(
    "kind", [ValueError, SystemExit, KeyboardInterrupt, Abort, StopIteration, RecursionError, TimeoutError]
)
async def test_whatever_a_plain_handler_raises_is_its_failure(open_gate: Open, kind: type[BaseException]) -> None:
    def handler(_given: ToolInput) -> ToolOutput:
        raise kind("broke")

    result = await _fails_with(open_gate, handler)
    assert (result.status, result.error_code) == (Status.FAILED, "execution_failed")


@pytest.mark.parametrize("kind", [ValueError, SystemExit, StopIteration, RecursionError, TimeoutError])
async def test_whatever_an_async_handler_raises_is_its_failure(open_gate: Open, kind: type[BaseException]) -> None:
    async def handler(_given: ToolInput) -> ToolOutput:
        await asyncio.sleep(0)
        raise kind("broke")

    result = await _fails_with(open_gate, handler)
    assert (result.status, result.error_code) == (Status.FAILED, "execution_failed")


@pytest.mark.parametrize("kind", [KeyboardInterrupt, Abort])
@pytest.mark.parametrize("steps", [0, 1], ids=["at once", "later"])
def test_an_interrupt_inside_an_async_handler_is_recorded_and_goes_on(steps: int, kind: type[BaseException]) -> None:
    async def handler(_given: ToolInput) -> ToolOutput:
        for _ in range(steps):
            await asyncio.sleep(0)
        raise kind

    with toolgate.open(tools=[ToolDefinition(name="broken", handler=handler)]) as gate:
        with pytest.raises(kind):
            asyncio.run(gate.call("broken", call_id="c1"))
        assert gate.sync.get("c1").status is Status.FAILED


async def test_a_handler_that_is_closed_with_its_event_loop_is_not_waited_for() -> None:
    async def handler(_given: ToolInput) -> ToolOutput:
        raise GeneratorExit  # as its coroutine is told when it is closed

    async with toolgate.open(tools=[ToolDefinition(name="closed", handler=handler)]) as gate:
        with pytest.raises(GeneratorExit):
            await gate.call("closed")


async def test_the_original_exception_is_at_hand_for_the_caller(open_gate: Open) -> None:
    async def handler(_given: ToolInput) -> ToolOutput:
        raise LookupError("no such row")

    result = await _fails_with(open_gate, handler)
    with pytest.raises(ToolExecutionError, match="no such row") as caught:
        result.unwrap()
    assert isinstance(caught.value.__cause__, LookupError)


async def test_an_exception_without_words_is_told_by_its_name(open_gate: Open) -> None:
    async def handler(_given: ToolInput) -> ToolOutput:
        raise LookupError

    assert (await _fails_with(open_gate, handler)).error == "LookupError"


@pytest.mark.parametrize(("error", "told"), [("disk full", "disk full"), ("", "without saying why")])
async def test_a_reported_failure_keeps_its_words_and_data(open_gate: Open, error: str, told: str) -> None:
    async def handler(_given: ToolInput) -> ToolOutput:
        return ToolOutput.fail(error, data={"tried": 3})

    async with open_gate(tools=[ToolDefinition(name="broken", handler=handler)]) as gate:
        result = await gate.call("broken")
        assert result.status is Status.FAILED
        assert told in str(result.error)
        assert (await gate.calls.get(result.call_id)).shown_result == {"tried": 3}


async def test_artifacts_are_counted_and_returned(open_gate: Open) -> None:
    async def handler(_given: ToolInput) -> ToolOutput:
        return ToolOutput.ok(artifacts=[{"path": "/a"}, {"path": "/b"}])

    async with open_gate(tools=[ToolDefinition(name="make", handler=handler, artifact_type="file")]) as gate:
        result = await gate.call("make")
        assert result.artifacts == ({"path": "/a"}, {"path": "/b"})
        last = (await gate.events(call_id=result.call_id))[-1].data
        assert (last["artifacts_count"], last["artifact_type"]) == (2, "file")


async def test_large_arguments_and_results_are_outlined_in_events(open_gate: Open) -> None:
    async def handler(given: ToolInput) -> ToolOutput:
        return ToolOutput.ok(given.payload)

    async with open_gate(tools=[ToolDefinition(name="echo", handler=handler)]) as gate:
        result = await gate.call("echo", {"text": "x" * 5000})
        invoked, _started, completed = await gate.events(call_id=result.call_id)
        assert invoked.data["payload_summary"]["truncated"]
        assert completed.data["output_summary"]["keys"] == ["text"]
        assert len(result.data["text"]) == 5000


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan")])
async def test_an_approval_timeout_is_a_real_span(open_gate: Open, seconds: float) -> None:
    async with open_gate(tools=[add]) as gate:
        with pytest.raises(UsageError):
            await gate.call("add", {"a": 1}, approval_timeout_s=seconds)


async def test_a_definition_that_is_not_registered_is_refused(open_gate: Open) -> None:
    async with open_gate(tools=[add]) as gate:
        assert (await gate.call(add, {"a": 1})).data == 1
        with pytest.raises(UsageError, match="register it first"):
            await gate.call(ToolDefinition(name="add", handler=lambda _given: None), {"a": 1})


@pytest.mark.parametrize("placement", ["client", "worker"])
async def test_a_tool_no_runner_can_run_fails_before_anybody_is_asked(open_gate: Open, placement: str) -> None:
    def handler(_given: ToolInput) -> ToolOutput:
        ran.append("handler")
        return ToolOutput.ok()

    far = ToolDefinition(name="far", handler=handler, placement=placement, requires_approval=True)
    async with open_gate(tools=[far]) as gate:
        result = await gate.call("far")
        assert (result.status, result.error_code) == (Status.FAILED, "no_runner")
        assert (await gate.pending(), ran) == ([], [])
