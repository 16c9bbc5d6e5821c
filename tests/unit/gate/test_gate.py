"""What the gate does beyond the journeys: misuse, interrupted waits, bookkeeping that must not grow."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import toolgate
from toolgate import Gate, ToolDefinition, ToolInput, ToolOutput
from toolgate.errors import UsageError
from toolgate.kernel.call import Status
from toolgate.pipeline import approve
from toolgate.testing.patience import until


async def write(_given: ToolInput) -> ToolOutput:
    return ToolOutput.ok("written")


ASKING = ToolDefinition(name="write", handler=write, requires_approval=True)


async def test_calls_that_ended_leave_nothing_in_the_gates_books() -> None:
    async with toolgate.open(tools=[ASKING]) as gate:
        for decision in ("approve", "deny"):
            parked = await gate.call("write", wait=False)
            await gate.decide(str(parked.approval_id), decision, by="ann")
            await gate.wait(parked.call_id)
        parked = await gate.call("write", wait=False)
        await gate.decide(str(parked.approval_id), "deny", by="ann")
        parked = await gate.call("write", wait=False)
        await gate.cancel(parked.call_id)
        parked = await gate.call("write", wait=False, approval_timeout_s=0.01)
        await until(lambda: _is(gate, parked.call_id, Status.TIMEOUT))
        attendance = gate._attendance
        assert attendance._homes == {}
        assert attendance._waiters._waiting == {}
        assert gate._performer._running == {}
        await until(lambda: not attendance._strays)


async def _is(gate: Gate, call_id: str, status: Status) -> bool:
    return (await gate.get(call_id)).status is status


async def test_an_approved_call_nobody_took_is_offered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approve, "DISPATCH_GRACE_S", 0.02)
    async with toolgate.open(tools=[ASKING]) as gate:
        parked = await gate.call("write", wait=False)
        gate.registry.discard("write")
        await gate.decide(str(parked.approval_id), "approve", by="ann")
        await until(lambda: not gate._attendance._strays)
        gate.register(ASKING)
        await until(lambda: _is(gate, parked.call_id, Status.COMPLETED))


async def test_an_approved_call_somebody_waits_for_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    async with toolgate.open(tools=[ASKING]) as gate:
        parked = await gate.call("write", wait=False)
        waiting = asyncio.ensure_future(gate.wait(parked.call_id))
        await until(lambda: ("default", parked.call_id) in gate._attendance._waiters)
        gate._attendance.offer(await gate.record(parked.call_id))
        assert not gate._attendance._strays
        await gate.decide(str(parked.approval_id), "approve", by="ann")
        assert (await waiting).success


def test_an_interrupted_plain_wait_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    with toolgate.open(tools=[ASKING]) as gate:
        submitted: list[Any] = []
        submit = gate._background.submit

        class Interrupted:
            def __init__(self, future: Any) -> None:
                self.future = future
                submitted.append(future)

            def result(self) -> None:
                raise KeyboardInterrupt

            def cancel(self) -> None:
                self.future.cancel()

        monkeypatch.setattr(gate._background, "submit", lambda coroutine: Interrupted(submit(coroutine)))
        with pytest.raises(KeyboardInterrupt):
            gate.sync.call("write")
        assert submitted[0].cancelled()


def test_the_plain_face_reports_for_clients() -> None:
    from toolgate.errors import StaleFenceError

    with toolgate.open(tools=[ToolDefinition(name="write", handler=write)]) as gate:
        done = gate.sync.call("write")
        with pytest.raises(StaleFenceError):
            gate.sync.complete(done.call_id, ToolOutput.ok())


def test_an_unknown_store_is_refused_by_name() -> None:
    for url in ("redis://x", "memory", ""):
        with pytest.raises(UsageError, match="memory://"):
            toolgate.open(url)


def test_the_package_offers_its_names_lazily() -> None:
    assert set(toolgate.__all__) <= set(dir(toolgate))
    assert toolgate.Mode("NORMAL") == "NORMAL"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = toolgate.nothing


async def test_a_call_is_dispatched_on_the_loop_that_made_it() -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    async def where(_given: ToolInput) -> ToolOutput:
        loops.append(asyncio.get_running_loop())
        return ToolOutput.ok()

    tool = ToolDefinition(name="where", handler=where, requires_approval=True)
    async with toolgate.open(tools=[tool]) as gate:
        parked = await gate.call("where", wait=False)
        deciding = threading.Thread(target=lambda: gate.sync.decide(str(parked.approval_id), "approve", by="ann"))
        deciding.start()
        await until(lambda: loops)
        await asyncio.to_thread(deciding.join)
        assert loops == [asyncio.get_running_loop()]
        assert (await gate.wait(parked.call_id)).success


async def test_a_closed_gate_dispatches_nothing() -> None:
    gate = toolgate.open(tools=[ASKING])
    parked = await gate.call("write", wait=False)
    await gate.aclose()
    gate._attendance._dispatch(("default", parked.call_id))
    assert not gate._attendance._strays
