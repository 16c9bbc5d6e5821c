from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from datetime import date
from typing import Any

import pytest
from tests.unit.pipeline.rig import Rig

from toolgate import ToolDefinition, ToolInput, ToolOutput, tool
from toolgate.adapters.runners.inline import InlineRunner
from toolgate.errors import ToolTimeoutError
from toolgate.kernel.call import Status
from toolgate.kernel.change import Change
from toolgate.kernel.context import DEFAULT_CONTEXT
from toolgate.kernel.doubt import Doubt
from toolgate.kernel.output import result_of
from toolgate.kernel.tool import Prepared
from toolgate.pipeline import flight
from toolgate.pipeline.flight import Flight
from toolgate.pipeline.outcome import interrupted
from toolgate.testing.conformance.rows import a_call, commit, insert, step
from toolgate.testing.patience import PATIENCE_S, until


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    rig = Rig()
    yield rig
    await rig.close()
    await until(lambda: not rig.spawned)


def add(rig: Rig, handler: Any, **options: Any) -> None:
    rig.driver.registry.add(ToolDefinition(name="work", handler=handler, **options))


def submit(rig: Rig) -> asyncio.Task[Any]:
    return asyncio.ensure_future(rig.pipeline.run("work", {}, DEFAULT_CONTEXT, call_id="c1"))


async def never(_given: ToolInput) -> ToolOutput:
    raise AssertionError("this must not run")


async def test_a_call_stopped_before_its_claim_is_written_never_runs(rig: Rig) -> None:
    held, let_go = asyncio.Event(), asyncio.Event()

    async def hold(_change: Change) -> None:
        rig.store.before = None
        held.set()
        await let_go.wait()

    add(rig, never)
    rig.store.before = hold
    running = submit(rig)
    await held.wait()
    assert rig.flights.stop("default", "c1", "cancelled", "ann asked")
    await asyncio.sleep(0)
    let_go.set()
    result = await running
    assert result.status is Status.CANCELLED
    assert "ann asked" in str(result.error)


@pytest.mark.parametrize("taken", [False, True])
async def test_what_others_gave_up_during_a_slow_claim_does_not_run(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, taken: bool
) -> None:
    ran: list[str] = []
    write = rig.store.commit

    async def slowly(change: Change) -> None:
        await write(change)
        if taken and change.call is not None and change.call.status is Status.EXECUTING:
            await write(step(change.call, Status.UNKNOWN))  # another server took this one for dead

    async def work(_given: ToolInput) -> ToolOutput:
        ran.append("once")
        return ToolOutput.ok()

    monkeypatch.setattr(flight, "SLOW_CLAIM_S", -1.0)
    monkeypatch.setattr(rig.store, "commit", slowly)
    add(rig, work)
    result = await submit(rig)
    assert result.status is (Status.UNKNOWN if taken else Status.COMPLETED)
    assert ran == ([] if taken else ["once"])


async def test_the_time_a_claim_takes_does_not_count(rig: Rig) -> None:
    held, let_go = asyncio.Event(), asyncio.Event()

    async def hold(_change: Change) -> None:
        rig.store.before = None
        held.set()
        await let_go.wait()

    async def quick(_given: ToolInput) -> ToolOutput:
        return ToolOutput.ok()

    add(rig, quick, timeout_seconds=0.01)
    rig.store.before = hold
    running = submit(rig)
    await held.wait()
    await asyncio.wait({running}, timeout=0.05)
    let_go.set()
    assert (await running).success


async def test_an_error_that_cannot_be_put_into_words_ends_its_call(rig: Rig) -> None:
    class SpeechlessError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    async def work(_given: ToolInput) -> ToolOutput:
        raise SpeechlessError

    add(rig, work)
    result = await submit(rig)
    assert (result.status, result.error) == (Status.FAILED, "SpeechlessError")


async def test_only_the_first_wish_to_stop_counts(rig: Rig) -> None:
    started = asyncio.Event()

    async def wait(_given: ToolInput) -> ToolOutput:
        started.set()
        await asyncio.Event().wait()
        return ToolOutput.ok()

    add(rig, wait)
    running = submit(rig)
    await started.wait()
    assert rig.flights.stop("default", "c1", "cancelled")
    assert rig.flights.stop("default", "c1", "timeout")
    assert (await running).status is Status.CANCELLED
    assert not rig.flights.stop("default", "c1", "cancelled")


async def test_a_handler_that_stops_in_time_is_not_given_up(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flight, "STOP_GRACE_S", 0.01)
    recording, let_record = asyncio.Event(), asyncio.Event()

    async def wait(_given: ToolInput) -> ToolOutput:
        await asyncio.Event().wait()
        return ToolOutput.ok()

    async def hold_the_end(change: Change) -> None:
        if change.call is not None and change.call.is_final:
            recording.set()
            await let_record.wait()

    add(rig, wait, timeout_seconds=0.01)
    rig.store.before = hold_the_end
    running = submit(rig)
    await recording.wait()
    await asyncio.wait({running}, timeout=0.05)
    let_record.set()
    assert ((await running).status, (await running).error_code) == (Status.FAILED, "timeout")
    assert "tool.late_result" not in await rig.names("c1")


def test_a_call_of_a_loop_that_is_gone_cannot_be_stopped() -> None:
    rig = Rig()

    async def begin() -> None:
        started = asyncio.Event()

        async def wait(_given: ToolInput) -> ToolOutput:
            started.set()
            await asyncio.Event().wait()
            return ToolOutput.ok()

        add(rig, wait)
        submit(rig)
        await started.wait()
        job = rig.flights._flying[("default", "c1")][0]
        job.stop = flight.Stop("cancelled")
        rig.flights._flying = {("default", "c2"): [job]}

    asyncio.run(begin())
    assert not rig.flights.stop("default", "c2", "cancelled")


async def test_a_stuck_handler_whose_waiters_are_gone_is_recorded(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flight, "STOP_GRACE_S", 0.01)
    release = asyncio.Event()

    async def stubborn(_given: ToolInput) -> ToolOutput:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return ToolOutput.ok()

    add(rig, stubborn, timeout_seconds=0.01)
    result = await submit(rig)
    assert result.status is Status.UNKNOWN
    release.set()
    await until(lambda: _is_told(rig, "tool.late_result"))


async def _is_told(rig: Rig, name: str) -> bool:
    return name in await rig.names("c1")


async def test_a_drain_waits_until_everything_is_recorded(rig: Rig) -> None:
    started = asyncio.Event()

    async def wait(_given: ToolInput) -> ToolOutput:
        started.set()
        await asyncio.Event().wait()
        return ToolOutput.ok()

    add(rig, wait)
    running = submit(rig)
    await started.wait()
    await rig.flights.drain()
    assert (await rig.driver.read("default", "c1")).status is Status.CANCELLED
    assert (await running).status is Status.CANCELLED


async def test_a_plain_handler_that_had_not_begun_was_stopped(rig: Rig) -> None:
    busy, release = threading.Event(), threading.Event()

    def hold(_given: ToolInput) -> ToolOutput:
        busy.set()
        release.wait(PATIENCE_S)
        return ToolOutput.ok()

    narrow = InlineRunner(max_threads=1)
    rig.driver.runners = {"inline": narrow}
    add(rig, hold, timeout_seconds=5)
    first = submit(rig)
    await until(busy.is_set)
    second = asyncio.ensure_future(rig.pipeline.run("work", {}, DEFAULT_CONTEXT, call_id="c2"))
    await until(lambda: ("default", "c2") in rig.flights._flying)
    await until(lambda: rig.flights._flying[("default", "c2")][0].started)
    rig.flights.stop("default", "c2", "cancelled")
    assert (await second).status is Status.CANCELLED
    release.set()
    assert (await first).success
    await narrow.close()


@pytest.mark.parametrize("undo_metadata", [None, {}, {"old": 2}])
async def test_undo_data_of_the_handler_outranks_that_of_prepare(rig: Rig, undo_metadata: Any) -> None:
    async def write(_given: ToolInput) -> ToolOutput:
        return ToolOutput.ok(undo_metadata=undo_metadata)

    add(
        rig,
        write,
        undoable=True,
        undo_handler=lambda _undo: None,
        prepare=lambda _given: Prepared(undo_data={"old": 1}),
    )
    await submit(rig)
    kept = await rig.store.undo("default", "c1")
    assert kept is not None
    assert kept.data == (b'{"old":2}' if undo_metadata else b'{"old":1}')


async def test_a_failed_call_leaves_no_undo(rig: Rig) -> None:
    async def fail(_given: ToolInput) -> ToolOutput:
        return ToolOutput.fail("no")

    add(rig, fail, undoable=True, undo_handler=lambda _undo: None, prepare=lambda _given: Prepared(undo_data={}))
    await submit(rig)
    refused = await rig.undoing.undo("default", "c1", DEFAULT_CONTEXT)
    assert refused.error_code == "undo_failed"


async def test_typed_parameters_reach_a_function(rig: Rig) -> None:
    @tool
    async def weekday(day: date) -> int:
        return day.weekday()

    @tool
    def year(day: date, given: ToolInput) -> list[object]:
        return [day.year, given.is_cancelled]

    rig.driver.registry.add(weekday)
    rig.driver.registry.add(year)
    assert (await rig.pipeline.run("weekday", {"day": "2026-01-05"}, DEFAULT_CONTEXT)).data == 0
    assert (await rig.pipeline.run("year", {"day": "2026-01-05"}, DEFAULT_CONTEXT)).data == [2026, False]


async def test_a_run_cancelled_with_its_loop_while_recording_ends_who_waits(rig: Rig) -> None:
    recording = asyncio.Event()

    async def hold_the_end(change: Change) -> None:
        if change.call is not None and change.call.is_final:
            recording.set()
            await asyncio.Event().wait()

    async def quick(_given: ToolInput) -> ToolOutput:
        return ToolOutput.ok()

    add(rig, quick)
    rig.store.before = hold_the_end
    running = submit(rig)
    await recording.wait()
    task = rig.flights._flying[("default", "c1")][0].task
    assert task is not None
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_timer_that_rings_after_the_end_does_nothing(rig: Rig) -> None:
    let_go, started = asyncio.Event(), asyncio.Event()

    async def wait(_given: ToolInput) -> ToolOutput:
        started.set()
        await let_go.wait()
        return ToolOutput.ok()

    add(rig, wait)
    running = submit(rig)
    await started.wait()
    job = rig.flights._flying[("default", "c1")][0]
    let_go.set()
    await running
    rig.flights._on_timeout(job)
    rig.flights._stop(job, flight.Stop("timeout"))
    rig.flights._on_grace_over(job)
    assert (await rig.driver.read("default", "c1")).status is Status.COMPLETED


async def test_a_handler_given_up_although_nobody_waits_is_recorded(rig: Rig) -> None:
    call = a_call(status=Status.EXECUTING)
    await commit(rig.store, insert(call))
    tool_ = ToolDefinition(name="write", handler=never)
    job = Flight(call, tool_, never, True, None)
    await rig.flights._give_up(job, interrupted(tool_, Doubt(), why="timeout", stopped=False, began=True), 1.0)
    assert (await rig.driver.read("default", "c1")).status is Status.UNKNOWN


async def test_one_who_was_let_go_already_is_not_let_go_twice(rig: Rig) -> None:
    end: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    first, second = result_of(a_call()), result_of(a_call("c2"))
    flight._let_go(end, first)
    flight._let_go(end, second)
    assert await end is first


async def test_what_was_cut_short_outside_any_task_is_still_judged(rig: Rig) -> None:
    job = Flight(a_call(), ToolDefinition(name="write", handler=never), never, True, None)
    job.doubt = Doubt()
    judged: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(lambda: judged.set_result(flight._cancelled(job)))
    assert (await judged).status is Status.CANCELLED


async def test_an_end_that_was_settled_meanwhile_is_not_recorded_again(rig: Rig) -> None:
    await commit(rig.store, insert(a_call(status=Status.COMPLETED)))
    rig.recorder._unrecorded.append(insert(a_call(status=Status.FAILED)))
    await rig.recorder.record_again()
    assert rig.recorder._unrecorded == []


async def test_a_timeout_that_a_handler_reports_is_told_as_one(rig: Rig) -> None:
    async def wait(_given: ToolInput) -> ToolOutput:
        raise ToolTimeoutError("the program timed out")

    add(rig, wait)
    result = await submit(rig)
    assert (result.status, result.error_code, result.timed_out) == (Status.FAILED, "timeout", True)


@pytest.mark.parametrize(("placement", "again"), [("inline", True), ("client", False)])
async def test_what_runs_elsewhere_is_not_tried_again_here(rig: Rig, placement: str, again: bool) -> None:
    call = a_call(status=Status.EXECUTING, placement=placement, attempt=1)
    flight = Flight(call, ToolDefinition(name="look", handler=never, effects="read"), never, True, None)
    assert rig.flights._may_retry(flight, ConnectionResetError()) is again


async def test_a_hook_that_came_to_its_end_while_it_was_given_up_is_not_waited_for(rig: Rig) -> None:
    class JustOver:
        async def run(self, job: Any) -> object:
            job.stoppable, job.has_returned = False, True
            raise asyncio.CancelledError

        async def close(self) -> None: ...

    job = Flight(a_call(), ToolDefinition(name="write", handler=never), never, False, None)
    job.doubt, job.started = Doubt(), 1.0
    outcome = await rig.flights._attempt(job, JustOver())
    assert outcome is not None
    assert (outcome.status, rig.driver.lingering) == (Status.UNKNOWN, set())
