from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from tests.journeys.scene import Open, names, park

from toolgate import Context, ToolDefinition, ToolInput, ToolOutput
from toolgate.errors import ConflictError, NotFoundError, ToolCancelledError
from toolgate.kernel.approval import ApprovalStatus
from toolgate.kernel.call import Status
from toolgate.kernel.undo import UndoMetadata
from toolgate.testing.patience import PATIENCE_S, until


class SlowHandler:
    """An async handler that shows where it is and waits to be let go."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.stopped: list[str] = []
        self.finished: list[str] = []
        self.let_go = asyncio.Event()

    async def handler(self, given: ToolInput) -> ToolOutput:
        self.started.append(given.ctx.project)
        try:
            await self.let_go.wait()
        except asyncio.CancelledError:
            self.stopped.append(given.ctx.project)
            raise
        self.finished.append(given.ctx.project)
        return ToolOutput.ok("done", undo_metadata={})

    def tool(self, **options: Any) -> ToolDefinition:
        return ToolDefinition(name="work", handler=self.handler, **options)


@pytest.fixture
def work() -> SlowHandler:
    return SlowHandler()


async def test_who_stops_waiting_does_not_stop_the_call(open_gate: Open, work: SlowHandler) -> None:
    async with open_gate(tools=[work.tool()]) as gate:
        waiting = asyncio.ensure_future(gate.call("work", call_id="c1"))
        await until(lambda: work.started)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert (await gate.get("c1")).status is Status.EXECUTING
        work.let_go.set()
        assert (await gate.wait("c1")).data == "done"
        assert work.stopped == []


async def test_who_stops_waiting_for_a_person_leaves_the_call_parked(open_gate: Open, work: SlowHandler) -> None:
    async with open_gate(tools=[work.tool(requires_approval=True)]) as gate:
        waiting = asyncio.ensure_future(gate.call("work", call_id="c1"))
        await until(gate.pending)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        work.let_go.set()
        await gate.decide((await gate.pending())[0].id, "approve", by="ann")
        assert (await gate.wait("c1")).data == "done"


async def test_a_yes_that_reaches_only_one_who_leaves_still_runs(open_gate: Open, work: SlowHandler) -> None:
    async with open_gate(tools=[work.tool(requires_approval=True)]) as gate:
        waiting = asyncio.ensure_future(gate.call("work", call_id="c1"))
        await until(gate.pending)
        work.let_go.set()
        await gate.decide((await gate.pending())[0].id, "approve", by="ann")
        waiting.cancel()
        await asyncio.wait({waiting})
        await until(lambda: work.finished)
        assert (await gate.wait("c1")).data == "done"


async def test_cancelling_a_parked_call_closes_its_approval(open_gate: Open, work: SlowHandler) -> None:
    async with open_gate(tools=[work.tool(requires_approval=True)]) as gate:
        approval = await park(gate, "work")
        result = await gate.cancel(approval.call_id, reason="not needed any more")
        assert (result.status, result.error_code) == (Status.CANCELLED, "cancelled")
        closed = await gate.approvals.get(approval.id)
        assert (closed.status, closed.reason) == (ApprovalStatus.EXPIRED, "cancelled")
        assert names(await gate.events(call_id=approval.call_id))[-2:] == ["approval.expired", "tool.cancelled"]
        with pytest.raises(ToolCancelledError, match="not needed any more"):
            result.unwrap()


async def test_cancelling_a_parked_call_wakes_who_waits_for_it(open_gate: Open, work: SlowHandler) -> None:
    async with open_gate(tools=[work.tool(requires_approval=True)]) as gate:
        waiting = asyncio.ensure_future(gate.call("work", call_id="c1"))
        await until(gate.pending)
        await gate.cancel("c1")
        assert (await waiting).status is Status.CANCELLED
        assert work.started == []


async def test_cancelling_a_running_async_call_stops_it(open_gate: Open, work: SlowHandler) -> None:
    async with open_gate(tools=[work.tool()]) as gate:
        waiting = asyncio.ensure_future(gate.call("work", call_id="c1"))
        await until(lambda: work.started)
        cancelled = await gate.cancel("c1")
        assert cancelled.status is Status.CANCELLED
        assert (await waiting).status is Status.CANCELLED
        assert (work.stopped, work.finished) == (["default"], [])
        assert names(await gate.events(call_id="c1"))[-1] == "tool.cancelled"


async def test_cancelling_without_waiting_returns_at_once(open_gate: Open, work: SlowHandler) -> None:
    async with open_gate(tools=[work.tool()]) as gate:
        waiting = asyncio.ensure_future(gate.call("work", call_id="c1"))
        await until(lambda: work.started)
        assert (await gate.cancel("c1", wait=False)).status is Status.EXECUTING
        assert (await waiting).status is Status.CANCELLED


@pytest.mark.parametrize(("effects", "status"), [(None, Status.UNKNOWN), ("read", Status.CANCELLED)])
async def test_cancelling_a_running_plain_call_is_honest(open_gate: Open, effects: str | None, status: Status) -> None:
    started, release = threading.Event(), threading.Event()

    def stuck(_given: ToolInput) -> ToolOutput:
        started.set()
        release.wait(PATIENCE_S)
        return ToolOutput.ok()

    async with open_gate(tools=[ToolDefinition(name="stuck", handler=stuck, effects=effects)]) as gate:
        waiting = asyncio.ensure_future(gate.call("stuck", call_id="c1"))
        await until(started.is_set)
        assert (await gate.cancel("c1")).status is status
        assert (await waiting).status is status
        release.set()


async def test_cancelling_from_another_thread_stops_the_call(open_gate: Open, work: SlowHandler) -> None:
    async with open_gate(tools=[work.tool()]) as gate:
        waiting = asyncio.ensure_future(gate.call("work", call_id="c1"))
        await until(lambda: work.started)
        cancelled = await asyncio.to_thread(lambda: gate.sync.cancel("c1"))
        assert cancelled.status is (await waiting).status is Status.CANCELLED


async def test_cancelling_stops_the_call_of_that_project_only(open_gate: Open, work: SlowHandler) -> None:
    async with open_gate(tools=[work.tool()]) as gate:
        one, two = (
            asyncio.ensure_future(gate.call("work", call_id="same", context=Context(project=project)))
            for project in ("one", "two")
        )
        await until(lambda: len(work.started) == 2)
        assert (await gate.cancel("same", project="one")).status is Status.CANCELLED
        assert work.stopped == ["one"]
        work.let_go.set()
        assert ((await one).status, (await two).status) == (Status.CANCELLED, Status.COMPLETED)


async def test_cancelling_a_finished_call_returns_how_it_ended(open_gate: Open, work: SlowHandler) -> None:
    work.let_go.set()
    async with open_gate(tools=[work.tool()]) as gate:
        done = await gate.call("work")
        again = await gate.cancel(done.call_id)
        assert (again.status, again.data) == (Status.COMPLETED, "done")


async def test_an_unknown_call_cannot_be_cancelled(open_gate: Open) -> None:
    async with open_gate() as gate:
        with pytest.raises(NotFoundError):
            await gate.cancel("nobody")


async def test_a_handler_may_finish_although_it_was_asked_to_stop(open_gate: Open) -> None:
    started = asyncio.Event()

    async def tidy(_given: ToolInput) -> ToolOutput:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return ToolOutput.ok("finished after all")
        raise AssertionError

    async with open_gate(tools=[ToolDefinition(name="tidy", handler=tidy)]) as gate:
        waiting = asyncio.ensure_future(gate.call("tidy", call_id="c1"))
        await started.wait()
        assert (await gate.cancel("c1")).data == "finished after all"
        assert (await waiting).status is Status.COMPLETED


async def test_cancelling_after_the_effect_does_not_lose_the_result(open_gate: Open, work: SlowHandler) -> None:
    looking, let_look = asyncio.Event(), asyncio.Event()

    async def look(_undo: UndoMetadata) -> int:
        looking.set()
        await let_look.wait()
        return 1

    tool = work.tool(undoable=True, undo_handler=lambda _undo: None, fingerprint=look)
    async with open_gate(tools=[tool]) as gate:
        waiting = asyncio.ensure_future(gate.call("work", call_id="c1"))
        work.let_go.set()
        await looking.wait()
        cancelling = asyncio.ensure_future(gate.cancel("c1"))
        await asyncio.wait({cancelling}, timeout=0.01)
        let_look.set()
        assert (await waiting).status is Status.COMPLETED
        assert (await cancelling).data == "done"


def test_a_loop_that_ends_during_a_call_ends_the_call(open_gate: Open) -> None:
    async def begin(gate: Any, work: SlowHandler) -> None:
        task = asyncio.ensure_future(gate.call("work", call_id="c1"))
        await until(lambda: work.started)
        task.cancel()

    with open_gate() as gate:
        work = SlowHandler()
        gate.register(work.tool())
        asyncio.run(begin(gate, work))
        ended = gate.sync.get("c1")
        assert (ended.status, ended.error_code) == (Status.CANCELLED, "cancelled")
        assert "shut down" in str(ended.error)


async def test_a_call_that_runs_elsewhere_cannot_be_cancelled_from_here(open_gate: Open, work: SlowHandler) -> None:
    async with open_gate(tools=[work.tool()]) as gate:
        waiting = asyncio.ensure_future(gate.call("work", call_id="c1"))
        await until(lambda: work.started)
        gate._flights._flying.clear()
        with pytest.raises(ConflictError, match="elsewhere"):
            await gate.cancel("c1")
        work.let_go.set()
        assert (await waiting).success
