from __future__ import annotations

import asyncio
import threading

import pytest
from tests.journeys.scene import Open, names, saying

import toolgate
from toolgate import Context, Gate, ToolDefinition, ToolInput, ToolOutput, tool
from toolgate.errors import GateClosedError, UsageError
from toolgate.kernel.call import Status
from toolgate.kernel.undo import UndoMetadata
from toolgate.ports.store import CallQuery
from toolgate.testing.patience import PATIENCE_S, until_sync


@tool
async def double(number: int) -> int:
    await asyncio.sleep(0)
    return number * 2


def write(given: ToolInput) -> ToolOutput:
    return ToolOutput.ok(given.payload, undo_metadata={})


def asking(**options: object) -> ToolDefinition:
    return ToolDefinition(name="write", handler=write, requires_approval=True, **options)  # type: ignore[arg-type]


def test_plain_code_calls_and_gets_the_result(open_gate: Open) -> None:
    with open_gate(tools=[double]) as gate:
        assert gate.sync.call("double", {"number": 4}).data == 8


def test_many_plain_threads_call_at_once(open_gate: Open) -> None:
    with open_gate(tools=[double]) as gate:
        given: dict[int, object] = {}

        def work(number: int) -> None:
            given[number] = gate.sync.call("double", {"number": number}).data

        threads = [threading.Thread(target=work, args=(number,)) for number in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert given == {number: number * 2 for number in range(20)}


def test_a_plain_thread_waits_until_another_decides(open_gate: Open) -> None:
    with open_gate(tools=[asking()]) as gate:
        results: list[object] = []
        waiting = threading.Thread(target=lambda: results.append(gate.sync.call("write", {"a": 1}).data))
        waiting.start()
        until_sync(gate.sync.pending)
        approval = gate.sync.pending()[0]
        assert gate.sync.approvals.get(approval.id).id == approval.id
        gate.sync.decide(approval.id, "approve", by="ann")
        waiting.join()
        assert results == [{"a": 1}]


def test_every_method_has_a_plain_form(open_gate: Open) -> None:
    undone: list[UndoMetadata] = []
    with open_gate() as gate:
        plain = gate.sync
        plain.register(asking(undoable=True, undo_handler=undone.append))
        parked = plain.call("write", context=Context(run_id="r1"), wait=False)
        assert plain.get(parked.call_id).status is Status.AWAITING_APPROVAL
        plain.approvals.extend(str(parked.approval_id), 60, by="ann")
        plain.decide(str(parked.approval_id), "approve", by="ann")
        assert plain.wait(parked.call_id).success
        assert plain.approvals.answer(str(parked.approval_id)).decided_by == "ann"
        assert plain.host.undo_data(parked.call_id) is not None
        plain.host.adopt(UndoMetadata(parked.call_id, "write", {}))
        assert plain.calls.get(parked.call_id).tool_name == "write"
        assert [call.id for call in plain.calls.list(CallQuery(run_id="r1"))] == [parked.call_id]
        assert names(plain.events(call_id=parked.call_id))[-1] == "tool.completed"
        assert plain.undo_run("r1").success
        assert plain.undo(parked.call_id).error_code == "undo_failed"
        plain.set_policy(saying("deny"), by="ann")
        assert plain.call("write").status is Status.DENIED
        plain.set_mode("ALERT", by="ann")
        assert gate.mode == "ALERT"
        assert len(undone) == 1


def test_a_parked_call_is_cancelled_from_plain_code(open_gate: Open) -> None:
    with open_gate(tools=[asking()]) as gate:
        parked = gate.sync.call("write", wait=False)
        assert gate.sync.cancel(parked.call_id).status is Status.CANCELLED


def test_it_refuses_to_wait_for_itself(open_gate: Open) -> None:
    with open_gate(tools=[double]) as gate:

        @tool
        async def inside() -> str:
            gate.sync.call("double", {"number": 1})
            return "never"

        gate.register(inside)
        result = gate.sync.call("inside")
        assert result.status is Status.FAILED
        assert "would wait for itself" in str(result.error)


def test_a_plain_handler_may_use_it(open_gate: Open) -> None:
    with open_gate(tools=[double]) as gate:

        @tool
        def inside() -> object:
            return gate.sync.call("double", {"number": 1}).data

        gate.register(inside)
        assert gate.sync.call("inside").data == 2


def test_it_is_closed_with_its_gate(open_gate: Open) -> None:
    gate = open_gate(tools=[double])
    gate.sync.call("double", {"number": 1})
    gate.close()
    with pytest.raises(GateClosedError):
        gate.sync.call("double", {"number": 1})


async def test_a_gate_is_not_closed_plainly_inside_a_loop(open_gate: Open) -> None:
    async with open_gate() as gate:
        with pytest.raises(UsageError, match="aclose"):
            gate.close()


def test_a_client_reports_and_a_person_settles_from_plain_code() -> None:
    release = threading.Event()

    def stuck(_given: ToolInput) -> ToolOutput:
        release.wait(PATIENCE_S)
        return ToolOutput.ok()

    with toolgate.open(tools=[ToolDefinition(name="stuck", handler=stuck, timeout_seconds=0.5)]) as gate:
        unknown = gate.sync.call("stuck")
        assert gate.sync.settle(unknown.call_id, happened=True, by="ann", reason="seen").success
        release.set()
        assert isinstance(gate, Gate)
