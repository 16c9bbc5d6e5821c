from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from tests.unit.pipeline.rig import Rig

from toolgate import ToolDefinition, ToolOutput
from toolgate.kernel.approval import Approval
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change
from toolgate.kernel.context import DEFAULT_CONTEXT, Principal
from toolgate.kernel.record import evolve
from toolgate.pipeline.flight import Taker
from toolgate.pipeline.remote.leasing import MOST_BETWEEN_S
from toolgate.pipeline.steps import asking
from toolgate.ports.store import ApprovalQuery


@pytest.fixture
async def rig(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    rig = Rig(ToolDefinition(name="ask", handler=lambda _given: ToolOutput.ok(), requires_approval=True))

    async def orphans(*, status: Status = Status.EXECUTING, limit: int = 100) -> list[Call]:
        found = await rig.store.call("default", "c1")
        is_lost = found is not None and found.status is status and found.owner == "dead"
        return [found] if is_lost and found is not None else []

    monkeypatch.setattr(rig.store, "orphans", orphans)
    yield rig
    await rig.close()


async def _asked_by(rig: Rig, owner: str | None) -> Approval:
    """Leave a question behind, asked by another process."""
    rig.driver.owner, mine = str(owner), rig.driver.owner
    asked = await rig.pipeline.run("ask", {}, DEFAULT_CONTEXT, call_id="c1")
    rig.driver.owner = mine
    [approval] = await rig.store.approvals(ApprovalQuery(id=asked.approval_id))
    return approval


async def _approve(rig: Rig, approval: Approval) -> Call:
    await rig.decide(approval.id, approve_it=True, by=Principal(name="ann"))
    return await rig.driver.read("default", "c1")


async def test_an_approved_call_of_a_dead_process_is_taken_over_and_offered(rig: Rig) -> None:
    await _approve(rig, await _asked_by(rig, "dead"))
    await rig.recovery.recover()
    assert [(call.id, call.owner) for call in rig.offered] == [("c1", rig.driver.owner)]


async def test_an_approved_call_that_is_overdue_is_not_changed_under_the_one_who_takes_it_up(rig: Rig) -> None:
    await _approve(rig, await _asked_by(rig, "dead"))
    rig.clock.advance(3600)
    await rig.recovery.recover()
    await rig.sweeper.sweep()
    assert [call.version for call in rig.offered] == [(await rig.driver.read("default", "c1")).version]


@pytest.mark.parametrize("missing", ["tool", "runner"])
async def test_an_approved_call_that_cannot_run_here_is_left_to_others(rig: Rig, missing: str) -> None:
    await _approve(rig, await _asked_by(rig, "dead"))
    if missing == "tool":
        rig.driver.registry.discard("ask")
    else:
        rig.driver.runners = {}
    await rig.recovery.recover()
    assert (rig.offered, (await rig.driver.read("default", "c1")).owner) == ([], "dead")


async def test_a_question_no_channel_carried_is_not_carried_by_another(rig: Rig) -> None:
    asked: list[Approval] = []
    approval = await _asked_by(rig, "dead")
    rig.driver.on_asked = asked.append
    await rig.recovery.recover()
    assert (approval.silent, asked, (await rig.driver.read("default", "c1")).owner) == (True, [], None)


async def test_a_call_this_process_should_run_is_offered_as_often_after_a_long_time(rig: Rig) -> None:
    await _approve(rig, await _asked_by(rig, ""))
    rig.clock.advance(3600)
    for times in (1, 2, 3):
        await rig.sweeper.sweep()
        assert len(rig.offered) == times
        rig.clock.advance(asking.DISPATCH_GRACE_S)


@pytest.mark.parametrize(("owner", "offers"), [("", 1), ("live", 0)])
async def test_only_its_owner_is_offered_an_approved_call_again(rig: Rig, owner: str, offers: int) -> None:
    await _approve(rig, await _asked_by(rig, owner))
    rig.clock.advance(asking.DISPATCH_GRACE_S)
    await rig.sweeper.sweep()
    assert len(rig.offered) == offers


async def test_an_approved_call_is_announced_less_often_the_longer_it_waits(rig: Rig) -> None:
    await _approve(rig, await _asked_by(rig, "live"))
    waits = []
    for _ in range(7):
        due_at = (await rig.driver.read("default", "c1")).due_at
        assert due_at is not None
        rig.clock.advance((due_at - rig.clock.now()).total_seconds())
        await rig.sweeper.sweep()
        later = (await rig.driver.read("default", "c1")).due_at
        assert later is not None
        waits.append(later - due_at)
    assert waits[0] == timedelta(seconds=asking.DISPATCH_GRACE_S)
    assert waits[-1] == timedelta(seconds=MOST_BETWEEN_S)


async def test_who_took_a_question_over_without_the_tool_gives_its_call_up_once_approved(rig: Rig) -> None:
    approval = await _asked_by(rig, "")
    rig.driver.registry.discard("ask")
    await _approve(rig, approval)
    rig.clock.advance(asking.DISPATCH_GRACE_S)
    await rig.sweeper.sweep()
    call = await rig.driver.read("default", "c1")
    assert (call.status, call.owner) == (Status.APPROVED, None)
    assert not rig.driver.is_free(call)
    rig.driver.registry.add(ToolDefinition(name="ask", handler=lambda _given: ToolOutput.ok()))
    assert rig.driver.is_free(call)


@pytest.mark.parametrize(
    ("effects", "fence", "status", "code"),
    [
        (None, None, Status.UNKNOWN, "unknown"),
        ("read", None, Status.FAILED, "execution_failed"),
        (None, "f" * 16, Status.EXECUTING, None),
    ],
)
async def test_a_call_its_caller_was_running_when_it_died_is_not_run_by_anybody_else(
    rig: Rig, effects: str | None, fence: str | None, status: Status, code: str | None
) -> None:
    rig.driver.registry.add(ToolDefinition("own", placement="caller", effects=effects))
    parked = await rig.pipeline.run("own", {}, DEFAULT_CONTEXT, call_id="c1")
    assert parked.status is Status.APPROVED
    call = await rig.driver.read("default", "c1")
    running = evolve(call.to(Status.EXECUTING), owner="dead", fence=fence, runner=None if fence is None else "agent:x")
    await rig.driver.commit(Change(project="default", at=rig.clock.now(), call=running, expect=call.version))
    await rig.recovery.recover()
    found = await rig.driver.read("default", "c1")
    assert (found.status, found.error_code) == (status, code)


async def test_who_comes_to_run_a_call_that_ended_is_told_how(rig: Rig) -> None:
    rig.driver.registry.add(ToolDefinition("own", placement="caller"))
    await rig.pipeline.run("own", {}, DEFAULT_CONTEXT, call_id="c1")
    first = await rig.pipeline.take("default", "c1", Taker(lambda _given: 1))
    second = await rig.pipeline.take("default", "c1", Taker(lambda _given: 2))
    assert (first.data, second.data, second.status) == (1, 1, Status.COMPLETED)


async def test_what_else_is_to_recover_is_asked_after_the_calls(rig: Rig) -> None:
    asked: list[int] = []

    async def after() -> None:
        asked.append(len(rig.offered))

    await _approve(rig, await _asked_by(rig, "dead"))
    rig.driver.on_recovered = after
    await rig.recovery.recover()
    assert asked == [1]
