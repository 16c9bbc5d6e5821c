"""What the gate does beyond the journeys: misuse, interrupted waits, bookkeeping that must not grow."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable
from typing import Any

import pytest

import toolgate
from toolgate import Gate, Result, ToolDefinition, ToolInput, ToolOutput
from toolgate.adapters.memory.bus import MemoryBus
from toolgate.adapters.memory.store import MemoryStore
from toolgate.adapters.runners.inline import InlineRunner
from toolgate.errors import GateClosedError, UsageError
from toolgate.gate import messenger
from toolgate.gate import parked as parked_calls
from toolgate.kernel.approval import Approval
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change
from toolgate.kernel.record import evolve
from toolgate.pipeline.steps import asking
from toolgate.ports.bus import Hint, Listener
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
        attendance = gate._parked
        assert attendance._homes == {}
        assert attendance._waiters._waiting == {}
        assert gate._flights._flying == {}
        await until(lambda: not attendance._strays)


async def _is(gate: Gate, call_id: str, status: Status) -> bool:
    return (await gate.get(call_id)).status is status


async def test_an_approved_call_nobody_took_is_offered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "DISPATCH_GRACE_S", 0.02)
    async with toolgate.open(tools=[ASKING]) as gate:
        parked = await gate.call("write", wait=False)
        gate.registry.discard("write")
        await gate.decide(str(parked.approval_id), "approve", by="ann")
        await until(lambda: not gate._parked._strays)
        gate.register(ASKING)
        await until(lambda: _is(gate, parked.call_id, Status.COMPLETED))


async def test_an_approved_call_somebody_waits_for_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    async with toolgate.open(tools=[ASKING]) as gate:
        parked = await gate.call("write", wait=False)
        waiting = asyncio.ensure_future(gate.wait(parked.call_id))
        await until(lambda: ("default", parked.call_id) in gate._parked._waiters)
        gate._parked.offer(await gate.calls.get(parked.call_id))
        assert not gate._parked._strays
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


def test_events_are_followed_in_a_plain_loop_that_ends_them() -> None:
    with toolgate.open(tools=[ToolDefinition(name="write", handler=write)]) as gate:
        gate.sync.call("write")
        told = gate.sync.follow()
        assert [next(told).seq, next(told).seq] == [1, 2]
        told.close()  # before its end, and nothing is left waiting
        last = len(gate.sync.events())
        later = gate.sync.follow(after=last)
        calling = threading.Timer(0.05, gate.sync.call, ["write"])
        calling.start()
        assert next(later).seq == last + 1
        calling.join()
    with pytest.raises(GateClosedError):
        next(gate.sync.follow())
    with pytest.raises(GateClosedError):
        next(later)


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
    gate._parked._dispatch(("default", parked.call_id))
    assert not gate._parked._strays


class DyingLoop:
    """An event loop that looks alive when asked and is gone when used."""

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return True

    def call_soon_threadsafe(self, *_work: Any) -> None:
        raise RuntimeError("Event loop is closed")


def test_a_call_whose_loop_dies_while_it_is_sent_there_runs_on_the_gates_own() -> None:
    with toolgate.open(tools=[ASKING]) as gate:
        parked = gate.sync.call("write", wait=False)
        gate._parked._homes[("default", parked.call_id)] = DyingLoop()  # type: ignore[assignment]
        gate.sync.decide(str(parked.approval_id), "approve", by="ann")
        assert gate.sync.wait(parked.call_id).data == "written"


@pytest.mark.parametrize(("effects", "status"), [(None, Status.UNKNOWN), ("read", Status.CANCELLED)])
def test_a_call_whose_loop_was_closed_under_it_can_be_ended(effects: str | None, status: Status) -> None:
    async def wait(_given: ToolInput) -> ToolOutput:
        await asyncio.Event().wait()
        return ToolOutput.ok()

    with toolgate.open(tools=[ToolDefinition(name="wait", handler=wait, effects=effects)]) as gate:
        loop = asyncio.new_event_loop()
        left: list[asyncio.Task[Any]] = []

        async def begin() -> None:
            left.append(loop.create_task(gate.call("wait", call_id="c1")))
            await asyncio.sleep(0)

        loop.run_until_complete(begin())
        loop.close()
        assert gate.sync.get("c1").status is Status.EXECUTING
        assert gate.sync.cancel("c1").status is status
        left.clear()
        gc.collect()  # asyncio complains about the abandoned task here rather than in some other test


async def test_a_call_left_by_a_loop_that_is_gone_is_looked_after(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parked_calls, "LOOK_AFTER_S", 0.01)
    async with toolgate.open(tools=[ASKING]) as gate:
        parked = await gate.call("write", wait=False)
        gate.registry.discard("write")
        await gate.decide(str(parked.approval_id), "approve", by="ann")
        gate.register(ASKING)
        gone = asyncio.new_event_loop()
        gone.close()
        gate._parked._minded["default", parked.call_id] = gone
        await gate._parked._look_after()
        assert (await gate.get(parked.call_id)).data == "written"


async def test_a_question_cancelled_on_a_loop_that_lives_on_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messenger, "ENDING_S", 0.02)
    asked: list[Approval] = []

    async def approver(approval: Approval) -> bool:
        asked.append(approval)
        if len(asked) == 1:
            await asyncio.Event().wait()
        return True

    async with toolgate.open(tools=[ASKING], approver=approver) as gate:
        parked = await gate.call("write", wait=False)
        await until(lambda: asked)
        for task in asyncio.all_tasks():
            if task.get_name() == "toolgate-ask":
                task.cancel()
        assert (await gate.wait(parked.call_id)).data == "written"
        assert len(asked) == 2


@pytest.mark.parametrize("nobody", ["", " ", None, "ann\x00"], ids=repr)
async def test_an_answer_of_nobody_is_refused(nobody: Any) -> None:
    async with toolgate.open(tools=[ASKING]) as gate:
        parked = await gate.call("write", wait=False)
        with pytest.raises(UsageError, match="Say who does this"):
            await gate.decide(str(parked.approval_id), "approve", by=nobody)
        assert (await gate.get(parked.call_id)).status is Status.AWAITING_APPROVAL
        with pytest.raises(UsageError, match="Say who does this"):
            await gate.grants.revoke("any", by=nobody)
        with pytest.raises(UsageError, match="Say who does this"):
            await gate.set_mode("LOCKDOWN", by=nobody)
        with pytest.raises(UsageError, match="Say who does this"):
            await gate.settle(parked.call_id, happened=True, by=nobody, reason="seen")
        assert gate.mode.value == "NORMAL"


async def test_what_undo_data_hides_stays_hidden_when_the_undo_handler_says_it_again() -> None:
    async def change(_given: ToolInput) -> ToolOutput:
        return ToolOutput.ok(undo_metadata={"old_password": "correct-horse-9", "row": "row-1234567"})

    async def restore(kept: Any) -> None:
        raise RuntimeError(f"no {kept.undo_data['old_password']} in {kept.undo_data['row']}")

    tool = ToolDefinition(name="change", handler=change, undoable=True, undo_handler=restore)
    async with toolgate.open(tools=[tool]) as gate:
        done = await gate.call("change")
        undone = await gate.undo(done.call_id)
        assert undone.error == "no *** in row-1234567"
        assert "correct-horse" not in str(await gate.events())


async def test_a_claim_does_not_say_what_the_arguments_hide() -> None:
    async with toolgate.open(tools=[ASKING]) as gate:
        parked = await gate.call("write", {"password": "correct-horse-9"}, claim="it is correct-horse-9", wait=False)
        assert (await gate.approvals.artifact(str(parked.approval_id))).claim == "it is ***"
        assert "correct-horse" not in str(await gate.events())


class Talkative(MemoryBus):
    """A bus on which something happens while somebody subscribes, as on one that others share."""

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        leave = super().subscribe(listener)
        listener(Hint("default", "c1", Status.APPROVED))
        return leave


async def test_a_gate_can_be_told_of_a_call_while_it_is_opened() -> None:
    async with Gate(store=MemoryStore(), bus=Talkative(), runners={"inline": InlineRunner()}, tools=[ASKING]) as gate:
        assert (await gate.call("write", wait=False)).status is Status.AWAITING_APPROVAL


@pytest.mark.parametrize("times", [1, 3])
async def test_a_call_whose_row_changes_while_it_is_taken_up_is_taken_up_again(
    times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "DISPATCH_GRACE_S", 3600)  # nobody offers it again meanwhile
    async with toolgate.open(tools=[ASKING]) as gate:
        resume, left = gate._pipeline.resume, [None] * times

        async def disturbed(call: Call) -> Result:
            if left:
                left.pop()
                moved = evolve(call.stay(), due_at=call.due_at)
                change = Change(project=call.project, at=call.created_at, call=moved, expect=call.version)
                writing = gate._driver.store.commit(change)  # so that nobody is told
                if writing is not None:
                    await writing
            return await resume(call)

        monkeypatch.setattr(gate._pipeline, "resume", disturbed)
        parked = await gate.call("write", wait=False)
        await gate.decide(str(parked.approval_id), "approve", by="ann")
        await until(lambda: _is(gate, parked.call_id, Status.COMPLETED))
        assert not left
