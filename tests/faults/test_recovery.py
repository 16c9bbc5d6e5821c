"""What recovery owes: everybody's orphans and nobody else's calls, once, under the rules of now."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable

import pytest
from tests.faults.aftermath import recovered
from tests.faults.judge import judge
from tests.faults.nursery import Life, Nursery
from tests.faults.plays import RUNNING
from tests.faults.world import World

import toolgate
from toolgate import Gate, ToolDefinition, ToolOutput
from toolgate.gate import policies
from toolgate.kernel.call import Status
from toolgate.kernel.tool import Prepared
from toolgate.testing.patience import PATIENCE_S, until

BEFORE, AFTER = 0, 1
"""Seeds of a burst: its calls died before or after their effects."""


def orphaned(nursery: Nursery, world: World, seed: int = AFTER, *, play: str = "burst") -> World:
    assert nursery.live(Life(play, str(world.folder), seed=seed)).killed
    return world


async def _is(gate: Gate, call_id: str, status: Status) -> bool:
    return (await gate.get(call_id)).status is status


async def test_an_agent_that_comes_back_gets_what_its_call_came_to(nursery: Nursery, world: World) -> None:
    orphaned(nursery, world)
    async with world.open() as gate:
        await recovered(gate)
        ends = {tool: (await world.call(gate, tool, f"{tool}-1")).status.value for tool in RUNNING}
        done, unknown = "COMPLETED", "UNKNOWN"
        assert ends == {"look": done, "put": done, "book": done, "pay": unknown, "write": unknown}
        assert (await gate.calls.get("put-1")).attempt == 2


async def test_waiting_for_a_call_of_a_dead_process_ends(nursery: Nursery, world: World) -> None:
    async with world.open() as gate:
        pid = nursery.start(life := Life("burst", str(world.folder), seed=AFTER, point="effect.done", nth=len(RUNNING)))
        nursery.end(pid, life)
        assert (await asyncio.wait_for(gate.wait("pay-1"), PATIENCE_S)).status is Status.UNKNOWN


async def test_processes_that_recover_at_once_take_each_call_over_once(
    nursery: Nursery, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    orphaned(nursery, world)
    gates = [world.open() for _ in range(4)]
    try:
        await asyncio.gather(*(gate.recover() for gate in gates))
        for tool in RUNNING:
            await asyncio.wait_for(gates[0].wait(f"{tool}-1"), PATIENCE_S)
    finally:
        for gate in gates:
            await gate.aclose()
    gc.collect()
    assert [record.getMessage() for record in caplog.records if "never retrieved" in record.getMessage()] == []
    assert judge(world.file, world.ledger).rows["put-1"].attempt == 2


async def test_calls_of_the_living_do_not_hide_those_of_the_dead(nursery: Nursery, world: World) -> None:
    world.hold = "effect"
    async with world.open() as living:
        calls = [asyncio.create_task(living.call("pay", {"n": "x"}, call_id=f"living-{n}")) for n in range(110)]
        await until(lambda: world.held == len(calls))
        orphaned(nursery, world)
        async with World(world.folder).open() as gate:
            await gate.recover()
            assert (await gate.get("pay-1")).status is Status.UNKNOWN
            assert (await gate.get("living-0")).status is Status.EXECUTING
    await asyncio.gather(*calls, return_exceptions=True)


async def test_more_orphans_than_one_batch_are_recovered_at_once(nursery: Nursery, world: World) -> None:
    orphaned(nursery, world, play="flood")
    async with world.open() as gate:
        await gate.recover()
        statuses = {row.status for row in judge(world.file, world.ledger).rows.values()}
        assert statuses == {Status.UNKNOWN}


async def test_a_call_that_reconcile_found_done_can_be_undone(nursery: Nursery, world: World) -> None:
    orphaned(nursery, world)
    undone: list[object] = []
    known = next(tool for tool in world.tools() if tool.name == "write")
    tool = ToolDefinition(
        name="write",
        handler=known.handler,
        prepare=lambda _given: Prepared(undo_data={}),
        undoable=True,
        undo_handler=lambda undo: undone.append(undo.undo_data),
        reconcile=lambda _given: ToolOutput.ok("seen"),
    )
    async with world.open() as gate:
        gate.register(tool)
        await gate.recover()
        await until(lambda: _is(gate, "write-1", Status.COMPLETED))
        assert (await gate.undo("write-1")).success
        assert undone == [{"line": "write-1"}]


@pytest.mark.parametrize(("tool", "status"), [("look", Status.FAILED), ("put", Status.UNKNOWN)])
async def test_nothing_is_tried_again_in_lockdown(nursery: Nursery, world: World, tool: str, status: Status) -> None:
    orphaned(nursery, world, BEFORE)
    async with toolgate.open(f"sqlite:///{world.file}") as operator:  # holds no tool, so it tries nothing again
        await operator.set_mode("LOCKDOWN", by="ann")
    async with world.open() as gate:
        await gate.recover()
        result = await asyncio.wait_for(gate.wait(f"{tool}-1"), PATIENCE_S)
        assert (result.status, world.ledger.effects_of(result.call_id)) == (status, 0)


async def test_nothing_is_tried_again_that_a_changed_policy_file_denies(
    nursery: Nursery, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policies, "LOOK_AFTER_S", 0.0)
    file = world.folder / "toolgate.yaml"
    file.write_text("tools: {look: {decision: allow}}")
    async with toolgate.open(f"sqlite:///{world.file}", tools=world.tools(), policy=file) as gate:
        file.write_text("tools: {look: {decision: deny}}")  # nobody calls anything here, so nobody looks at the file
        orphaned(nursery, world, BEFORE)
        await gate.recover()
        result = await asyncio.wait_for(gate.wait("look-1"), PATIENCE_S)
        assert (result.status, result.error_code) == (Status.FAILED, "denied")
        assert world.ledger.effects_of("look-1") == 0


async def test_a_recovered_call_can_be_cancelled_whoever_else_tried_to_recover_it(
    nursery: Nursery, new_world: Callable[[], World]
) -> None:
    world = orphaned(nursery, new_world())
    world.hold = "effect"
    async with world.open() as gate:
        await asyncio.gather(gate.recover(), gate.recover())
        await until(lambda: world.held >= 2)
        assert (await gate.cancel("put-1")).status is Status.CANCELLED
