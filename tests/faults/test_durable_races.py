"""Racing deciders, undoers, cancels and expiries, on two gates that share one file: one wins, nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.faults.clock import ring, set_clock
from tests.faults.judge import judge
from tests.faults.world import World

from toolgate import Gate
from toolgate.errors import ConflictError, DecisionConflictError
from toolgate.kernel.call import Status
from toolgate.testing.clock import FakeClock
from toolgate.testing.conformance.rows import losers, race_tasks, race_threads, winners
from toolgate.testing.patience import PATIENCE_S

RACERS = 8
Pair = tuple[Gate, Gate]


@pytest.fixture
async def gates(world: World) -> AsyncIterator[Pair]:
    async with world.open() as one, world.open() as two:
        yield one, two
    judge(world.file, world.ledger)


async def parked(world: World, gate: Gate, id: str = "send-1") -> str:
    result = await world.call(gate, "send", id, wait=False)
    assert result.approval_id is not None
    return result.approval_id


async def test_one_of_many_deciders_decides(gates: Pair, world: World) -> None:
    approval_id = await parked(world, gates[0])
    said = await race_threads(
        RACERS,
        lambda n: world.decide(gates[n % 2], approval_id, ("approve", "deny")[n // 2 % 2], by=f"ann-{n}"),
    )
    assert len(winners(said)) == 1
    assert all(isinstance(error, DecisionConflictError) for error in losers(said))
    assert len(world.ledger.lines("decided")) == 1


async def test_one_of_many_undoers_undoes(gates: Pair, world: World) -> None:
    await world.call(gates[0], "write", "write-1")
    undone = winners(await race_tasks(RACERS, lambda n: gates[n % 2].undo("write-1")))
    assert len(undone) == RACERS
    assert [result.success for result in undone].count(True) == 1
    assert len(world.ledger.lines("undo")) == 1


async def test_the_same_call_from_many_runs_once(gates: Pair, world: World) -> None:
    results = winners(await race_tasks(RACERS, lambda n: world.call(gates[n % 2], "pay", "pay-1")))
    assert {result.status for result in results} == {Status.COMPLETED}
    assert world.ledger.effects_of("pay-1") == 1


@pytest.mark.parametrize("turn", range(5))
async def test_a_cancel_and_an_answer_never_both_win(gates: Pair, world: World, turn: int) -> None:
    approval_id = await parked(world, gates[0])
    one, two = gates if turn % 2 else gates[::-1]
    order = [one.cancel("send-1", wait=False), world.decide(two, approval_id, "approve", by="ann")]
    outcomes = await asyncio.gather(*(order if turn % 3 else order[::-1]), return_exceptions=True)
    assert all(isinstance(error, ConflictError) for error in losers(list(outcomes)))
    result = await asyncio.wait_for(gates[0].wait("send-1"), PATIENCE_S)
    assert result.success == (world.ledger.effects_of("send-1") == 1)
    assert result.status in (Status.COMPLETED, Status.CANCELLED)


@pytest.mark.parametrize("turn", range(5))
async def test_an_expiry_and_an_answer_never_both_win(gates: Pair, world: World, turn: int) -> None:
    clock = FakeClock()
    for gate in gates:
        set_clock(gate, clock)
    approval_id = await parked(world, gates[0])
    clock.advance(299.0 + turn / 2)  # the answer comes just before, at or after the end of five minutes
    said, _ = await asyncio.gather(
        world.decide(gates[0], approval_id, "approve", by="ann"), sweep_late(gates[1], clock), return_exceptions=True
    )
    result = await asyncio.wait_for(gates[0].wait("send-1"), PATIENCE_S)
    assert result.status is (Status.TIMEOUT if isinstance(said, BaseException) else Status.COMPLETED)


async def sweep_late(gate: Gate, clock: FakeClock) -> None:
    clock.advance(1.0)
    ring(gate)
