from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from tests.unit.pipeline.rig import Rig

from toolgate import ToolDefinition, ToolOutput
from toolgate.errors import StoreError
from toolgate.kernel.call import Status
from toolgate.kernel.change import Change
from toolgate.kernel.context import DEFAULT_CONTEXT, Principal
from toolgate.pipeline.background import Background
from toolgate.pipeline.plan import Options
from toolgate.pipeline.steps import asking
from toolgate.pipeline.time import clockwork
from toolgate.pipeline.time.clockwork import Clockwork
from toolgate.testing.clock import NOON
from toolgate.testing.patience import PATIENCE_S, until_sync


def a_tool(name: str, **options: Any) -> ToolDefinition:
    return ToolDefinition(name=name, handler=lambda _given: ToolOutput.ok(), **options)


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    rig = Rig(
        a_tool("ask", requires_approval=True),
        a_tool("pay", placement="client", timeout_seconds=10),
        a_tool("look", placement="client", timeout_seconds=10, effects="read"),
        a_tool("put", placement="client", timeout_seconds=10, idempotent=True),
    )
    yield rig
    await rig.close()


async def test_people_are_warned_and_then_the_approval_expires(rig: Rig) -> None:
    await rig.pipeline.run("ask", {}, DEFAULT_CONTEXT, call_id="c1", options=Options(approval_timeout_s=100))
    assert await rig.sweeper.sweep() == NOON + timedelta(seconds=50)
    rig.clock.advance(50)
    await rig.sweeper.sweep()
    assert (await rig.names("c1"))[-1] == "approval.expiring"
    rig.clock.advance(49)
    await rig.sweeper.sweep()
    assert (await rig.names("c1"))[-1] == "approval.expiring"
    rig.clock.advance(1)
    await rig.sweeper.sweep()
    assert (await rig.names("c1"))[-2:] == ["approval.expired", "tool.denied"]
    assert await rig.sweeper.sweep() is None


async def test_an_approved_call_nobody_runs_is_offered_again_and_again(rig: Rig) -> None:
    asked = await rig.pipeline.run("ask", {}, DEFAULT_CONTEXT, call_id="c1")
    await rig.decide(str(asked.approval_id), approve_it=True, by=Principal(name="ann"))
    for times in (1, 2):
        rig.clock.advance(asking.DISPATCH_GRACE_S)
        await rig.sweeper.sweep()
        assert [call.id for call in rig.offered] == ["c1"] * times


@pytest.mark.parametrize(
    ("name", "status", "code"),
    [("pay", Status.UNKNOWN, "unknown"), ("look", Status.FAILED, "timeout"), ("put", Status.FAILED, "timeout")],
)
async def test_a_client_that_never_reports_ends_the_call_honestly(
    rig: Rig, name: str, status: Status, code: str
) -> None:
    started = await rig.pipeline.run(name, {}, DEFAULT_CONTEXT, call_id="c1")
    assert started.status is Status.EXECUTING
    while (call := await rig.driver.read("default", "c1")).status is Status.EXECUTING:
        await rig.leases.dispatch("default", "c1", to=Principal(name="ann"))
        rig.clock.advance(10)
        await rig.sweeper.sweep()
    assert (call.status, call.error_code) == (status, code)


async def test_a_call_that_moves_on_meanwhile_is_left_alone(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "toolgate.sweeper")
    asked = await rig.pipeline.run("ask", {}, DEFAULT_CONTEXT, call_id="c1", options=Options(approval_timeout_s=100))

    async def decide_first(_change: Change) -> None:
        rig.store.before = None
        await rig.decide(str(asked.approval_id), approve_it=False, by=Principal(name="ann"))

    rig.clock.advance(60)
    rig.store.before = decide_first
    await rig.sweeper.sweep()
    assert (await rig.driver.read("default", "c1")).status is Status.REJECTED
    assert "moved on" in caplog.text


async def test_a_call_decided_between_two_reads_is_left_alone(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = await rig.pipeline.run("ask", {}, DEFAULT_CONTEXT, call_id="c1", options=Options(approval_timeout_s=100))
    read, waiting = rig.store.approvals, [True]

    async def decided_first(query: Any) -> Any:
        if waiting and waiting.pop():
            await rig.decide(str(asked.approval_id), approve_it=True, by=Principal(name="ann"))
            rig.clock.advance(60)
        return await read(query)

    rig.clock.advance(60)
    monkeypatch.setattr(rig.store, "approvals", decided_first)
    await rig.sweeper.sweep()
    assert (await rig.driver.read("default", "c1")).status is Status.APPROVED


async def test_more_than_a_batch_is_handled_in_one_sweep(rig: Rig) -> None:
    for number in range(120):
        await rig.pipeline.run("look", {}, DEFAULT_CONTEXT, call_id=f"c{number}")
    rig.clock.advance(10)
    await rig.sweeper.sweep()
    calls = [await rig.driver.read("default", f"c{number}") for number in range(120)]
    assert {call.status for call in calls} == {Status.FAILED}


class Broom:
    """A sweeper that counts, and breaks on request."""

    def __init__(self) -> None:
        self.sweeps = 0
        self.swept = threading.Event()
        self.trouble: list[Exception] = []

    async def sweep(self) -> Any:
        self.sweeps += 1
        self.swept.set()
        if self.trouble:
            raise self.trouble.pop()
        return None


def test_the_clockwork_sweeps_when_something_is_due() -> None:
    background, broom = Background("toolgate-clock"), Broom()
    work = Clockwork(background, broom, lambda: NOON)  # type: ignore[arg-type]  # does what a sweeper does
    try:
        work.wind(NOON + timedelta(hours=1))
        work.wind(NOON + timedelta(hours=2))
        work.wind(NOON)
        assert broom.swept.wait(PATIENCE_S)
        until_sync(lambda: broom.sweeps == 1)
    finally:
        background.close()


def test_the_clockwork_goes_on_after_a_sweep_that_failed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    background, broom = Background("toolgate-clock"), Broom()
    broom.trouble.append(StoreError("disk is away"))
    later = iter([NOON, NOON, NOON])
    work = Clockwork(background, broom, lambda: next(later, NOON + timedelta(hours=1)))  # type: ignore[arg-type]
    try:
        work.wind(NOON)
        until_sync(lambda: broom.sweeps == 2)
        assert "trying again" in caplog.text
    finally:
        background.close()


def test_a_timer_set_after_the_bell_rang_does_nothing() -> None:
    background, broom = Background("toolgate-clock"), Broom()
    work = Clockwork(background, broom, lambda: NOON)  # type: ignore[arg-type]
    try:
        background.submit(_call(work._set)).result(PATIENCE_S)
        assert work._timer is None
    finally:
        background.close()


async def _call(function: Any) -> None:
    function()
    await asyncio.sleep(0)


def test_the_clockwork_looks_now_and_then_although_the_deadline_is_far() -> None:
    assert clockwork.LONGEST_NAP_S <= 60


def test_winding_after_the_end_is_harmless(monkeypatch: pytest.MonkeyPatch) -> None:
    background = Background("toolgate-clock")
    work = Clockwork(background, Broom(), lambda: NOON)  # type: ignore[arg-type]
    background.submit(_call(int)).result(PATIENCE_S)
    background.close()
    work.wind(NOON + timedelta(hours=2))
    monkeypatch.setattr(background, "is_closed", False)
    work.wind(NOON + timedelta(hours=1))
