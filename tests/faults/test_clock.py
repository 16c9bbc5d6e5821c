"""The wall clock jumps, both ways: waiting people lose at most the question, and nothing runs twice or early."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.faults.clock import ring, set_clock
from tests.faults.judge import judge
from tests.faults.world import World

from toolgate import Gate, ToolDefinition
from toolgate.errors import DecisionConflictError
from toolgate.kernel.call import Status
from toolgate.testing.clock import FakeClock
from toolgate.testing.patience import PATIENCE_S, until

DAY_S = 86_400.0


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def gate(world: World, clock: FakeClock) -> AsyncIterator[Gate]:
    async with world.open() as gate:
        set_clock(gate, clock)
        yield gate
    judge(world.file, world.ledger)


async def parked(world: World, gate: Gate) -> str:
    result = await world.call(gate, "send", "send-1", wait=False)
    assert result.approval_id is not None
    return result.approval_id


async def test_a_question_the_clock_jumped_over_timed_out_and_was_not_denied(
    gate: Gate, world: World, clock: FakeClock
) -> None:
    approval_id = await parked(world, gate)
    clock.advance(DAY_S)
    ring(gate)
    assert (await asyncio.wait_for(gate.wait("send-1"), PATIENCE_S)).status is Status.TIMEOUT
    clock.advance(-DAY_S)
    with pytest.raises(DecisionConflictError):
        await world.decide(gate, approval_id, "approve", by="ann")


async def test_an_answer_after_a_jump_forward_is_late_even_before_the_sweeper_comes(
    gate: Gate, world: World, clock: FakeClock
) -> None:
    approval_id = await parked(world, gate)
    clock.advance(DAY_S)
    with pytest.raises(DecisionConflictError, match="expired"):
        await world.decide(gate, approval_id, "approve", by="ann")
    assert world.ledger.lines("effect") == []


async def test_a_question_asked_before_a_jump_back_can_still_be_answered(
    gate: Gate, world: World, clock: FakeClock
) -> None:
    approval_id = await parked(world, gate)
    clock.advance(-DAY_S)
    ring(gate)
    await world.decide(gate, approval_id, "approve", by="ann")
    assert (await asyncio.wait_for(gate.wait("send-1"), PATIENCE_S)).success


async def test_a_running_call_is_not_ended_by_a_jump(gate: Gate, world: World, clock: FakeClock) -> None:
    world.hold = "effect"
    call = asyncio.create_task(world.call(gate, "pay", "pay-1"))
    await until(lambda: world.held)
    for jump in (DAY_S, -3 * DAY_S):
        clock.advance(jump)
        ring(gate)
        await gate.recover()
    world.release.set()
    assert (await call).success


async def test_the_chain_stays_whole_when_time_runs_backwards(gate: Gate, world: World, clock: FakeClock) -> None:
    for number in range(5):
        clock.advance(-DAY_S)
        await world.call(gate, "pay", f"pay-{number}")
    events = await gate.events()
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert events[0].at > events[-1].at


async def test_a_jump_back_gives_nobody_more_than_the_rate(gate: Gate, world: World, clock: FakeClock) -> None:
    gate.register(ToolDefinition(name="rated", handler=world.act, rate_limit_per_hour=2))
    for number in range(2):
        assert (await gate.call("rated", {"n": number})).success
    clock.advance(-DAY_S)
    assert (await gate.call("rated", {"n": 3})).error_code == "rate_limited"


async def test_undo_data_the_clock_jumped_over_is_gone_and_the_undo_says_so(
    gate: Gate, world: World, clock: FakeClock
) -> None:
    await world.call(gate, "write", "write-1")
    clock.advance(DAY_S)
    result = await gate.undo("write-1")
    assert (result.status, result.error_code) == (Status.FAILED, "undo_failed")
    assert world.ledger.lines("undo") == []
