"""A store that was opened before a fork serves the parent and nobody else."""

from __future__ import annotations

import asyncio

import pytest
from tests.faults.judge import judge
from tests.faults.nursery import Life, Nursery
from tests.faults.world import World

from toolgate.kernel.call import Status
from toolgate.testing.patience import PATIENCE_S


@pytest.mark.parametrize("what", ["commit", "read", "close"])
async def test_a_forked_child_is_refused_and_harms_nothing(what: str, nursery: Nursery, world: World) -> None:
    life = Life(f"fork_and_{what}", str(world.folder))
    assert not nursery.live(life).killed
    findings = judge(world.file, world.ledger)
    assert findings.rows["pay-1"].status is Status.COMPLETED
    assert [line["error"] for line in world.ledger.lines("child")] == (["StoreError"] if what != "close" else ["None"])


async def test_a_forked_child_does_not_keep_its_dead_parent_alive(nursery: Nursery, world: World) -> None:
    assert nursery.live(Life("die_leaving_a_child", str(world.folder))).killed
    async with world.open() as gate:
        result = await asyncio.wait_for(gate.wait("pay-1"), PATIENCE_S)
        assert result.status is Status.UNKNOWN
    world.ledger.add("go")
