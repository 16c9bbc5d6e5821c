from __future__ import annotations

import asyncio
import contextlib
import threading
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.unit.pipeline.rig import Rig

import toolgate
from toolgate.errors import ToolUnknownOutcomeError
from toolgate.kernel.call import Status
from toolgate.kernel.context import Principal
from toolgate.kernel.input import ToolInput
from toolgate.kernel.output import ToolOutput
from toolgate.kernel.tool import ToolDefinition
from toolgate.pipeline.time import reconciling
from toolgate.pipeline.time.reconciling import pause_s
from toolgate.testing.conformance.rows import a_call, commit, insert
from toolgate.testing.patience import until


def _knows_nothing(_given: ToolInput) -> Any:
    return None


def _says_something_else(_given: ToolInput) -> Any:
    return "it worked"


def _fails(_given: ToolInput) -> Any:
    raise OSError("no route")


@pytest.mark.parametrize("reconcile", [_knows_nothing, _says_something_else, _fails])
async def test_what_a_tool_does_not_know_is_left_to_a_person(reconcile: Any) -> None:
    tool = ToolDefinition(name="pay", handler=_knows_nothing, reconcile=reconcile)
    rig = Rig(tool)
    await commit(rig.store, insert(a_call(tool_name="pay", status=Status.UNKNOWN)))
    await rig.recovery.recover()
    call = await rig.store.call("default", "c1")
    assert call is not None
    assert call.status is Status.UNKNOWN
    await rig.close()


async def test_what_a_tool_knows_settles_its_call() -> None:
    async def reconcile(_given: ToolInput) -> ToolOutput:
        return ToolOutput.ok("paid")

    rig = Rig(ToolDefinition(name="pay", handler=_knows_nothing, reconcile=reconcile))
    await commit(rig.store, insert(a_call(tool_name="pay", status=Status.UNKNOWN)))
    await rig.recovery.recover()
    call = await rig.store.call("default", "c1")
    assert call is not None
    assert call.status is Status.COMPLETED
    await rig.close()


async def test_a_person_who_settles_first_is_left_alone() -> None:
    async def reconcile(_given: ToolInput) -> ToolOutput:
        by = Principal(name="ann")
        await rig.answers.settle("default", "c1", happened=False, by=by, reason="the bank knows nothing of it")
        return ToolOutput.ok("paid")

    rig = Rig(ToolDefinition(name="pay", handler=_knows_nothing, reconcile=reconcile))
    await commit(rig.store, insert(a_call(tool_name="pay", status=Status.UNKNOWN)))
    await rig.recovery.recover()
    call = await rig.store.call("default", "c1")
    assert call is not None
    assert call.status is Status.FAILED
    await rig.close()


async def test_whoever_recovers_at_the_same_time_waits_for_the_answer() -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    async def reconcile(_given: ToolInput) -> ToolOutput:
        assert not asked.is_set(), "asked twice"
        asked.set()
        await answer.wait()
        return ToolOutput.ok("paid")

    rig = Rig(ToolDefinition(name="pay", handler=_knows_nothing, reconcile=reconcile))
    await commit(rig.store, insert(a_call(tool_name="pay", status=Status.UNKNOWN)))
    first = asyncio.ensure_future(rig.recovery.recover())
    await asked.wait()
    second = asyncio.ensure_future(rig.recovery.recover())
    impatient = asyncio.ensure_future(rig.recovery.recover())
    await asyncio.sleep(0.01)
    impatient.cancel()
    assert not second.done()
    answer.set()
    await asyncio.gather(first, second)
    call = await rig.store.call("default", "c1")
    assert call is not None
    assert call.status is Status.COMPLETED
    await rig.close()


async def test_a_recovery_that_is_cut_short_leaves_its_question_to_the_next() -> None:
    asked = asyncio.Event()

    async def reconcile(_given: ToolInput) -> ToolOutput:
        if not asked.is_set():
            asked.set()
            await asyncio.Event().wait()
        return ToolOutput.ok("paid")

    rig = Rig(ToolDefinition(name="pay", handler=_knows_nothing, reconcile=reconcile))
    await commit(rig.store, insert(a_call(tool_name="pay", status=Status.UNKNOWN)))
    first = asyncio.ensure_future(rig.recovery.recover())
    await asked.wait()
    first.cancel()
    await asyncio.wait({first})
    await rig.recovery.recover()
    call = await rig.store.call("default", "c1")
    assert call is not None
    assert call.status is Status.COMPLETED
    await rig.close()


@pytest.mark.parametrize("answers", [[None, None, None], [OSError("no route")] * 3])
async def test_a_tool_is_asked_again_after_growing_pauses(answers: list[Any]) -> None:
    asked: list[float] = []

    def reconcile(_given: ToolInput) -> Any:
        asked.append(rig.clock.now().timestamp() - began)
        if len(asked) > len(answers):
            return ToolOutput.ok("paid")
        if isinstance(answers[len(asked) - 1], OSError):
            raise answers[len(asked) - 1]
        return None

    rig = Rig(ToolDefinition(name="pay", handler=_knows_nothing, reconcile=reconcile))
    began = rig.clock.now().timestamp()
    await commit(rig.store, insert(a_call(tool_name="pay", status=Status.UNKNOWN)))
    for _ in range(20):
        await rig.recovery.recover()
        rig.clock.advance(1)
    assert asked == [0, 2, 6, 14]
    assert (await rig.driver.read("default", "c1")).status is Status.COMPLETED
    await rig.close()


def test_the_pauses_have_an_upper_bound() -> None:
    assert [pause_s(number) for number in (1, 2, 3, 12, 5000)] == [2, 4, 8, 3600, 3600]


async def test_what_is_known_is_forgotten_and_what_is_not_is_looked_at_in_time() -> None:
    due: list[datetime] = []
    rig = Rig(ToolDefinition(name="pay", handler=_knows_nothing, reconcile=_knows_nothing))
    rig.driver.on_due = due.append
    await commit(rig.store, insert(a_call(tool_name="pay", status=Status.UNKNOWN)))
    await rig.recovery.recover()
    assert due == [rig.clock.now() + timedelta(seconds=2)]
    await rig.answers.settle("default", "c1", happened=True, by=Principal(name="ann"), reason="seen")
    await rig.recovery.recover()
    assert len(due) == 1
    await rig.close()


async def test_a_handler_that_hangs_holds_up_no_deadline_and_is_asked_once() -> None:
    asked, answer = [], asyncio.Event()

    async def reconcile(_given: ToolInput) -> ToolOutput:
        asked.append(1)
        await answer.wait()
        return ToolOutput.ok("paid")

    rig = Rig(ToolDefinition(name="pay", handler=_knows_nothing, reconcile=reconcile))
    await commit(rig.store, insert(a_call(tool_name="pay", status=Status.UNKNOWN)))
    for _ in range(3):
        await rig.sweeper.sweep()
    await until(lambda: asked)
    answer.set()
    await asyncio.gather(*rig.spawned)
    assert (len(asked), (await rig.driver.read("default", "c1")).status) == (1, Status.COMPLETED)
    await rig.close()


async def test_a_call_that_is_unknown_in_a_living_process_is_asked_about_by_itself() -> None:
    async def lose(_given: ToolInput) -> ToolOutput:
        raise ConnectionResetError

    async def reconcile(_given: ToolInput) -> ToolOutput:
        return ToolOutput.ok("paid")

    tool = ToolDefinition(name="pay", handler=lose, effects="irreversible", risk_level="low", reconcile=reconcile)
    async with toolgate.open("memory://", tools=[tool]) as gate:
        lost = await gate.call("pay")
        assert lost.status is Status.UNKNOWN

        async def is_known() -> bool:
            return (await gate.get(lost.call_id)).success

        await until(is_known)
        assert (await gate.events())[-1].data["settled_by"] == "reconcile"


async def test_many_unknown_calls_are_gone_through_and_an_undo_is_left_to_a_person(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reconciling, "BATCH", 1)
    rig = Rig(ToolDefinition(name="pay", handler=_knows_nothing, reconcile=lambda _given: ToolOutput.ok("paid")))
    for id, undo_of in (("c1", None), ("c2", "c0"), ("c3", None)):
        await commit(rig.store, insert(a_call(id, tool_name="pay", status=Status.UNKNOWN, undo_of=undo_of)))
    await rig.recovery.recover()
    found = [(await rig.driver.read("default", id)).status for id in ("c1", "c2", "c3")]
    assert found == [Status.COMPLETED, Status.UNKNOWN, Status.COMPLETED]
    await rig.close()


@pytest.mark.parametrize("is_plain", [True, False])
async def test_a_no_is_not_believed_while_the_handler_is_still_at_work(is_plain: bool) -> None:
    let_go, paid = threading.Event(), list[str]()

    def pay(_given: ToolInput) -> ToolOutput:
        let_go.wait(60)
        paid.append("paid")
        return ToolOutput.ok()

    async def stubborn(given: ToolInput) -> ToolOutput:
        while not let_go.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)
        return pay(given)

    def look(_given: ToolInput) -> ToolOutput | None:
        return ToolOutput.ok("it is there") if paid else ToolOutput.fail("nothing there")

    handler = pay if is_plain else stubborn
    tool = ToolDefinition(
        "pay", {}, handler, effects="irreversible", risk_level="low", reconcile=look, timeout_seconds=0.05
    )
    async with toolgate.open("memory://", tools=[tool]) as gate:
        result = await gate.call("pay", {}, call_id="c1")
        assert result.status is Status.UNKNOWN
        await gate.recover()
        assert (await gate.get("c1")).status is Status.UNKNOWN
        let_go.set()
        await until(lambda: paid)
        await until(lambda: not gate._driver.lingering)
        await until(lambda: _settled(gate))


async def _settled(gate: toolgate.Gate) -> bool:
    await gate.recover()
    return (await gate.get("c1")).status is Status.COMPLETED


async def test_another_process_believes_a_no_only_when_the_one_that_ran_it_is_gone(tmp_path: Path) -> None:
    async def pay(_given: ToolInput) -> ToolOutput:
        raise ConnectionResetError("the line is dead")

    def look(_given: ToolInput) -> ToolOutput:
        return ToolOutput.fail("nothing there")

    tool = ToolDefinition("pay", {}, pay, effects="irreversible", risk_level="low")
    asking = replace(tool, reconcile=look)
    async with toolgate.open(tmp_path / "gate.db", tools=[asking]) as other:
        async with toolgate.open(tmp_path / "gate.db", tools=[tool]) as gate:
            assert (await gate.call("pay", {}, call_id="c1")).status is Status.UNKNOWN
            await other.recover()
            assert (await gate.get("c1")).status is Status.UNKNOWN
        await until(lambda: _has_failed(other))


async def _has_failed(gate: toolgate.Gate) -> bool:
    await gate.recover()
    return (await gate.get("c1")).status is Status.FAILED


async def test_what_a_tool_found_out_of_a_call_that_stays_unknown_is_written_down_once() -> None:
    def reconcile(_given: ToolInput) -> ToolOutput:
        raise ToolUnknownOutcomeError("2 of 3 files were written")

    rig = Rig(ToolDefinition(name="pay", handler=_knows_nothing, reconcile=reconcile))
    await commit(rig.store, insert(a_call(tool_name="pay", status=Status.UNKNOWN)))
    for _ in range(2):
        await rig.recovery.recover()
        rig.recovery.reconciling._tries.clear()  # its pause is over

    told = [event for event in await rig.store.events("default") if event.type == "tool.still_unknown"]
    assert [(event.data["said_by"], event.data["reason"]) for event in told] == [
        ("reconcile", "2 of 3 files were written")
    ]
    call = await rig.store.call("default", "c1")
    assert call is not None
    assert call.status is Status.UNKNOWN
    await rig.close()
