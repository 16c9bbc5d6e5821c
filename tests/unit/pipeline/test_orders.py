"""What a worker does with a call: takes it once, keeps its lease, heeds a recall, and reports what it may."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from tests.unit.pipeline.rig import Park, Rig

from toolgate import Result, ToolDefinition, ToolInput, ToolOutput
from toolgate.errors import ConflictError, StoreError
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change
from toolgate.kernel.context import DEFAULT_CONTEXT, Mode, Principal
from toolgate.kernel.undo import UndoMetadata, UndoState
from toolgate.pipeline.plan import OFFER_AGAIN_S
from toolgate.pipeline.remote.leasing import MOST_BETWEEN_S, MOST_IN_QUEUE_S
from toolgate.pipeline.remote.orders import Orders
from toolgate.testing.clock import NOON
from toolgate.testing.conformance.rows import set_mode
from toolgate.testing.patience import until

ANN, BOB = Principal(name="worker:ann"), Principal(name="worker:bob")
LEASE_S = 0.06


class Bench:
    """A rig whose tools run at workers, and what their handlers did."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.release = asyncio.Event()
        self.undone: list[Any] = []
        self.rig = Rig(
            self._tool("send", self._send),
            self._tool("slow", self._slow),
            self._tool("peek", self._slow, effects="read"),
            self._tool("stubborn", self._stubborn),
            self._tool("plain", self._plain, undoable=True, undo_handler=self._undo),
            self._tool("boxed", self._send, requires_sandbox=True),
        )
        self.queue = Park()
        self.rig.driver.runners = {**self.rig.driver.runners, "worker": self.queue, "sandbox": self.rig.inline}
        self.orders = Orders(self.rig.driver, self.rig.flights, self.rig.leases)

    @staticmethod
    def _tool(name: str, handler: Any, **more: Any) -> ToolDefinition:
        return ToolDefinition(name=name, handler=handler, placement="worker", timeout_seconds=5, **more)

    async def _send(self, given: ToolInput) -> ToolOutput:
        self.ran.append(str(given.payload.get("to")))
        return ToolOutput.ok({"sent": True})

    async def _slow(self, _given: ToolInput) -> ToolOutput:
        self.ran.append("slow")
        await self.release.wait()
        return ToolOutput.ok()

    async def _stubborn(self, _given: ToolInput) -> ToolOutput:
        self.ran.append("stubborn")
        while not self.release.is_set():
            try:
                await self.release.wait()
            except asyncio.CancelledError:
                continue
        return ToolOutput.ok()

    def _plain(self, _given: ToolInput) -> ToolOutput:
        self.ran.append(threading.current_thread().name)
        return ToolOutput.ok(undo_metadata={"old": 1})

    def _undo(self, metadata: UndoMetadata) -> None:
        self.undone.append(metadata.undo_data)

    async def parked(self, tool: str, **payload: Any) -> Call:
        await self.rig.pipeline.run(tool, payload, DEFAULT_CONTEXT, call_id="c1")
        return await self.read()

    async def read(self) -> Call:
        return await self.rig.driver.read("default", "c1")

    async def take(self, by: Principal = ANN, lease_s: float = 60) -> Result:
        return await self.orders.perform("default", "c1", by=by, lease_s=lease_s)

    async def taken(self, tool: str, lease_s: float = LEASE_S) -> asyncio.Task[Result]:
        await self.parked(tool)
        running = asyncio.ensure_future(self.take(lease_s=lease_s))
        await until(lambda: self.ran)
        return running


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    bench = Bench()
    yield bench
    bench.release.set()
    await bench.rig.close()


async def test_a_call_for_a_worker_is_parked_and_its_order_sent(bench: Bench) -> None:
    call = await bench.parked("send", to="ann")
    assert (call.status, call.runner) == (Status.EXECUTING, None)
    assert call.fence is not None
    assert call.due_at == NOON + timedelta(seconds=OFFER_AGAIN_S)
    assert [job.call.id for job in bench.queue.jobs] == ["c1"]
    assert bench.ran == []


async def test_a_worker_takes_it_runs_it_and_records_the_end(bench: Bench) -> None:
    await bench.parked("send", to="ann")
    result = await bench.take()
    assert (result.status, result.data, bench.ran) == (Status.COMPLETED, {"sent": True}, ["ann"])
    assert (await bench.read()).runner == "worker:ann"
    assert await bench.rig.names("c1") == ["tool.invoked", "tool.started", "tool.dispatched", "tool.completed"]


@pytest.mark.parametrize("tool", ["plain", "boxed"])
async def test_plain_and_sandboxed_tools_run_where_they_would_without_a_worker(bench: Bench, tool: str) -> None:
    await bench.parked(tool)
    assert (await bench.take()).success


async def test_one_of_many_workers_takes_it(bench: Bench) -> None:
    await bench.parked("send")
    ends = await asyncio.gather(*(bench.take(by) for by in (ANN, BOB) * 4), return_exceptions=True)
    assert sum(isinstance(end, ConflictError) for end in ends) == 7
    assert bench.ran == ["None"]


async def test_a_redelivered_order_runs_nothing(bench: Bench) -> None:
    await bench.parked("send")
    await bench.take()
    with pytest.raises(ConflictError, match="waits for nobody"):
        await bench.take(BOB)
    assert len(bench.ran) == 1


async def test_a_worker_without_the_very_tool_leaves_it_to_others(bench: Bench) -> None:
    call = await bench.parked("send")
    bench.rig.driver.registry.add(bench._tool("send", bench._slow))
    with pytest.raises(ConflictError, match="as it was when"):
        await bench.take()
    assert await bench.read() == call


async def test_an_undo_runs_at_a_worker_with_its_data(bench: Bench) -> None:
    await bench.parked("plain")
    await bench.take()
    undo = await bench.rig.undoing.undo("default", "c1", DEFAULT_CONTEXT, force=False)
    done = await bench.orders.perform("default", undo.call_id, by=ANN, lease_s=60)
    kept = await bench.rig.store.undo("default", "c1")
    assert kept is not None
    assert (done.status, bench.undone, kept.state) == (Status.COMPLETED, [{"old": 1}], UndoState.DONE)


@pytest.mark.parametrize("mode", [Mode.LOCKDOWN])
async def test_a_mode_set_after_the_claim_is_asked_before_the_handler(bench: Bench, mode: Mode) -> None:
    await bench.parked("send")
    await bench.rig.driver.commit(set_mode(mode))
    with pytest.raises(ConflictError, match="denied now"):
        await bench.take()
    call = await bench.read()
    assert (call.status, call.error_code, bench.ran) == (Status.FAILED, "denied", [])


async def test_a_policy_that_asks_more_here_than_where_it_was_claimed_stops_it(bench: Bench) -> None:
    await bench.parked("send")
    from toolgate.kernel.policy import Default, Policy

    bench.rig.driver.policy = Policy(default=Default.ASK)
    with pytest.raises(ConflictError, match="denied now"):
        await bench.take()
    assert "approval at level" in str((await bench.read()).error)


async def test_a_denied_call_that_changes_meanwhile_is_looked_at_again(bench: Bench) -> None:
    await bench.parked("send")
    await bench.rig.driver.commit(set_mode(Mode.LOCKDOWN))
    trying = bench.rig.leases._try
    tries: list[Change] = []

    async def once(change: Change) -> bool:
        tries.append(change)
        return len(tries) > 1 and await trying(change)

    bench.rig.leases._try = once  # type: ignore[method-assign]  # the row changes between read and write
    with pytest.raises(ConflictError, match="denied now"):
        await bench.take()
    assert len(tries) == 2


async def test_a_call_that_changes_while_it_is_taken_is_looked_at_again(bench: Bench) -> None:
    await bench.parked("send")
    handover = bench.rig.leases.handover
    first = True

    async def disturbed(*given: Any, **more: Any) -> Change:
        nonlocal first
        change = await handover(*given, **more)
        if first:
            first = False
            await bench.rig.leases.send_again(await bench.read(), None)
        return change

    bench.rig.leases.handover = disturbed  # type: ignore[method-assign]  # the sweeper comes in between
    assert (await bench.take()).success


async def test_a_lease_is_renewed_while_the_handler_runs(bench: Bench) -> None:
    running = await bench.taken("slow")
    before = await bench.read()
    bench.rig.clock.advance(5)
    await until(lambda: _renewed(bench, before))
    bench.release.set()
    assert (await running).success


async def _renewed(bench: Bench, before: Call) -> bool:
    call = await bench.read()
    return call.due_at is not None and before.due_at is not None and call.due_at > before.due_at


@pytest.mark.parametrize("told", ["by the bus", "by the renewal"])
async def test_a_recalled_call_is_stopped_and_its_worker_says_so(bench: Bench, told: str) -> None:
    running = await bench.taken("slow", lease_s=60 if told == "by the bus" else LEASE_S)
    if told == "by the renewal":
        bench.orders._held.clear()  # it hears no hint
        bench.orders._held = _Deaf()
    asked = await bench.rig.answers.cancel("default", "c1", reason="changed my mind")
    assert asked.status is Status.EXECUTING
    result = await running
    assert (result.status, bench.queue.recalled) == (Status.CANCELLED, [("c1", "changed my mind")])
    assert "changed my mind" in str(result.error)


class _Deaf(dict[Any, Any]):
    """Remembers nothing, so no hint finds what runs."""

    def __contains__(self, key: object) -> bool:
        return False

    def __delitem__(self, key: object) -> None:
        return None


async def test_asking_twice_to_stop_changes_nothing_more(bench: Bench) -> None:
    running = await bench.taken("stubborn", lease_s=60)
    await bench.rig.answers.cancel("default", "c1", reason="first")
    version = (await bench.read()).version
    await bench.rig.answers.cancel("default", "c1", reason="second")
    assert (await bench.read()).version == version
    bench.release.set()
    await running


async def test_a_recall_that_comes_as_the_call_ends_is_none(bench: Bench) -> None:
    running = await bench.taken("slow", lease_s=60)
    trying = bench.rig.answers._try

    async def late(change: Change) -> Call | None:
        bench.release.set()
        await running
        return await trying(change)

    bench.rig.answers._try = late  # type: ignore[method-assign]  # the report comes first
    assert (await bench.rig.answers.cancel("default", "c1", reason="late")).status is Status.COMPLETED


async def test_a_worker_whose_lease_was_lost_stops_and_records_nothing_but_evidence(bench: Bench) -> None:
    running = await bench.taken("slow")
    while True:
        try:
            await bench.rig.driver.commit(bench.rig.leases.ended(await bench.read()))
            break
        except ConflictError:  # its lease was renewed just now
            continue
    assert (await running).status is Status.UNKNOWN
    assert (await bench.rig.names("c1"))[-1] == "tool.late_result"


async def test_a_store_that_is_away_for_a_moment_costs_a_renewal_and_no_more(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    running = await bench.taken("slow")
    renew, failed = bench.rig.leases.renew, asyncio.Event()

    async def away(call: Call, lease_s: float) -> Call:
        if not failed.is_set():
            failed.set()
            raise StoreError("away")
        return await renew(call, lease_s)

    monkeypatch.setattr(bench.rig.leases, "renew", away)
    await failed.wait()
    before = await bench.read()
    bench.rig.clock.advance(5)
    await until(lambda: _renewed(bench, before))
    bench.release.set()
    assert (await running).success
    assert "cannot be renewed now" in caplog.text


async def test_an_order_that_was_lost_is_sent_again_less_and_less_often(bench: Bench) -> None:
    await bench.parked("send")
    for number, wait_s in ((2, OFFER_AGAIN_S), (3, OFFER_AGAIN_S), (4, 2 * OFFER_AGAIN_S)):
        due_at = (await bench.read()).due_at
        assert due_at is not None
        assert (due_at - bench.rig.clock.now()).total_seconds() == wait_s
        bench.rig.clock.advance(wait_s)
        await bench.rig.sweeper.sweep()
        assert len(bench.queue.jobs) == number
    bench.rig.clock.advance(1000)
    await bench.rig.sweeper.sweep()
    due_at = (await bench.read()).due_at
    assert due_at == bench.rig.clock.now() + timedelta(seconds=MOST_BETWEEN_S)
    assert (await bench.take()).success


async def test_a_process_without_the_tool_leaves_the_order_to_others(bench: Bench) -> None:
    call = await bench.parked("send")
    bench.rig.clock.advance(OFFER_AGAIN_S)
    await bench.rig.leases.send_again(call, None)
    assert len(bench.queue.jobs) == 1


async def test_a_call_no_worker_takes_fails_in_the_end(bench: Bench) -> None:
    await bench.parked("send")
    bench.rig.clock.advance(MOST_IN_QUEUE_S)
    await bench.rig.sweeper.sweep()
    call = await bench.read()
    assert (call.status, call.error_code) == (Status.FAILED, "no_runner")


@pytest.mark.parametrize(("tool", "status"), [("slow", Status.UNKNOWN), ("peek", Status.EXECUTING)])
async def test_what_a_dead_worker_left_is_unknown_or_offered_again(bench: Bench, tool: str, status: Status) -> None:
    await bench.parked(tool)
    dead = await bench.rig.leases.handover("default", "c1", to=BOB, lease_s=10)
    await bench.rig.driver.commit(dead)
    bench.rig.clock.advance(10)
    await bench.rig.sweeper.sweep()
    call = await bench.read()
    assert (call.status, len(bench.queue.jobs)) == (status, 1 if status is Status.UNKNOWN else 2)
    if status is Status.EXECUTING:
        assert (call.attempt, call.runner) == (2, None)
        bench.release.set()
        assert (await bench.take()).success


async def test_a_hint_about_a_call_that_is_not_recalled_changes_nothing(bench: Bench) -> None:
    running = await bench.taken("slow", lease_s=60)
    await bench.orders._look("default", "c1")
    bench.release.set()
    assert (await running).success


async def test_the_policy_is_looked_at_before_a_call_is_handed_over(bench: Bench) -> None:
    looked: list[str] = []

    async def refresh() -> None:
        looked.append("again")

    await bench.parked("send")
    bench.rig.driver.refresh = refresh
    assert (await bench.take()).success
    assert looked == ["again"]


async def test_a_call_that_changes_while_it_is_dispatched_is_looked_at_again(bench: Bench) -> None:
    await bench.parked("send")
    trying, tries = bench.rig.leases._try, list[Change]()

    async def once(change: Change) -> bool:
        tries.append(change)
        return len(tries) > 1 and await trying(change)

    bench.rig.leases._try = once  # type: ignore[method-assign]  # the row changes between read and write
    assert (await bench.rig.leases.dispatch("default", "c1", to=ANN)).runner == "worker:ann"
    assert len(tries) == 2
