"""A handler that cannot be stopped leaves an honest answer: nobody knows, until somebody finds out."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from tests.journeys.scene import Open, names

from toolgate import Gate, Principal, ToolDefinition, ToolInput, ToolOutput
from toolgate.errors import ConflictError, NotAllowedError, ToolTimeoutError, ToolUnknownOutcomeError, UsageError
from toolgate.kernel.call import Status
from toolgate.kernel.context import PrincipalKind
from toolgate.kernel.tool import Prepared
from toolgate.pipeline import flight
from toolgate.testing.patience import PATIENCE_S, until

SHORT_S = 2.0  # long enough for a busy machine to start a thread


class Stuck:
    """A plain handler that goes on until it is released."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.error: Exception | None = None
        self.told_to_stop = False

    def handler(self, given: ToolInput) -> ToolOutput:
        self.release.wait(PATIENCE_S)
        self.told_to_stop = given.is_cancelled
        if self.error is not None:
            raise self.error
        return ToolOutput.ok("too late")

    def tool(self, **options: Any) -> ToolDefinition:
        return ToolDefinition(name="pay", handler=self.handler, timeout_seconds=SHORT_S, **options)


@pytest.fixture
def stuck() -> Iterator[Stuck]:
    stuck = Stuck()
    yield stuck
    stuck.release.set()


async def test_a_plain_handler_past_its_time_leaves_an_unknown_outcome(open_gate: Open, stuck: Stuck) -> None:
    async with open_gate(tools=[stuck.tool()]) as gate:
        result = await gate.call("pay")
        assert (result.status, result.error_code) == (Status.UNKNOWN, "unknown")
        assert f"`pay` timed out after {SHORT_S:g} s and could not be stopped" in str(result.error)
        for kind in (ToolUnknownOutcomeError, ToolTimeoutError):
            with pytest.raises(kind):
                result.unwrap()
        last = (await gate.events(call_id=result.call_id))[-1]
        assert (last.type, last.data["error_code"]) == ("tool.failed", "unknown")


@pytest.mark.parametrize(("error", "raised"), [(None, None), (LookupError("x"), "LookupError")])
async def test_a_late_result_is_evidence_and_changes_nothing(
    open_gate: Open, stuck: Stuck, error: Exception | None, raised: str | None
) -> None:
    async with open_gate(tools=[stuck.tool()]) as gate:
        result = await gate.call("pay")
        stuck.error = error
        stuck.release.set()
        await until(lambda: _ends_with(gate, result.call_id, "tool.late_result"))
        assert (await gate.get(result.call_id)).status is Status.UNKNOWN
        assert (await gate.events(call_id=result.call_id))[-1].data["raised"] == raised
        assert stuck.told_to_stop


async def _ends_with(gate: Gate, call_id: str, name: str) -> bool:
    return names(await gate.events(call_id=call_id))[-1] == name


async def test_a_reading_tool_past_its_time_simply_failed(open_gate: Open, stuck: Stuck) -> None:
    async with open_gate(tools=[stuck.tool(effects="read")]) as gate:
        result = await gate.call("pay")
        assert (result.status, result.error_code) == (Status.FAILED, "timeout")
        assert "timed out" in str(result.error)
        with pytest.raises(ToolTimeoutError):
            result.unwrap()


async def test_an_async_handler_past_its_time_was_stopped(open_gate: Open) -> None:
    stopped: list[bool] = []

    async def wait(_given: ToolInput) -> ToolOutput:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(True)
        return ToolOutput.ok()

    async with open_gate(tools=[ToolDefinition(name="wait", handler=wait, timeout_seconds=SHORT_S)]) as gate:
        result = await gate.call("wait")
        assert (result.status, result.error_code, stopped) == (Status.FAILED, "timeout", [True])


async def test_an_async_handler_that_refuses_to_stop_leaves_an_unknown_outcome(
    open_gate: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flight, "STOP_GRACE_S", SHORT_S)
    release = asyncio.Event()

    async def stubborn(_given: ToolInput) -> ToolOutput:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return ToolOutput.ok("after all")

    async with open_gate(tools=[ToolDefinition(name="stay", handler=stubborn, timeout_seconds=SHORT_S)]) as gate:
        result = await asyncio.wait_for(gate.call("stay"), PATIENCE_S)
        assert result.status is Status.UNKNOWN
        release.set()
        await until(lambda: _ends_with(gate, result.call_id, "tool.late_result"))
        assert (await gate.get(result.call_id)).status is Status.UNKNOWN


@pytest.mark.parametrize(("happened", "status"), [(True, Status.COMPLETED), (False, Status.FAILED)])
async def test_a_person_settles_what_happened(open_gate: Open, stuck: Stuck, happened: bool, status: Status) -> None:
    async with open_gate(tools=[stuck.tool()]) as gate:
        unknown = await gate.call("pay")
        settled = await gate.settle(unknown.call_id, happened=happened, by="ann", reason="the bank says so")
        assert settled.status is status
        last = (await gate.events(call_id=unknown.call_id))[-1]
        assert (last.type, last.data["settled_by"], last.data["outcome"]) == ("tool.settled", "ann", status.value)
        with pytest.raises(ConflictError, match="only an UNKNOWN call"):
            await gate.settle(unknown.call_id, happened=True, by="bob", reason="again")


async def test_only_a_person_with_a_reason_settles(open_gate: Open, stuck: Stuck) -> None:
    async with open_gate(tools=[stuck.tool()]) as gate:
        unknown = await gate.call("pay")
        agent = Principal(name="robot", kind=PrincipalKind.AGENT)
        with pytest.raises(NotAllowedError):
            await gate.settle(unknown.call_id, happened=True, by=agent, reason="I think so")
        with pytest.raises(UsageError, match="how is it known"):
            await gate.settle(unknown.call_id, happened=True, by="ann", reason=" ")


async def test_what_was_settled_as_done_can_be_undone_with_prepared_data(open_gate: Open, stuck: Stuck) -> None:
    undone: list[Any] = []

    async def prepare(_given: ToolInput) -> Prepared:
        return Prepared(undo_data={"old": 1})

    tool = stuck.tool(
        undoable=True,
        undo_handler=lambda undo: undone.append(undo.undo_data),
        prepare=prepare,
    )
    async with open_gate(tools=[tool]) as gate:
        unknown = await gate.call("pay")
        assert (await gate.undo(unknown.call_id)).error_code == "undo_failed"
        await gate.settle(unknown.call_id, happened=True, by="ann", reason="seen it")
        assert (await gate.undo(unknown.call_id)).success
        assert undone == [{"old": 1}]
