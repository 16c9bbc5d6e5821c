"""Disks that are full, broken, read-only, locked or torn: nothing runs that is not recorded, and it says why."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.faults.aftermath import aftermath
from tests.faults.failing_log import BROKEN, FULL, failing_log, open_log
from tests.faults.judge import chains_of, judge
from tests.faults.nursery import Life, Nursery
from tests.faults.plays import TOUR
from tests.faults.world import World

from toolgate import Gate
from toolgate.adapters.sqlite import store as sqlite
from toolgate.errors import StoreError
from toolgate.kernel.call import Status
from toolgate.testing.patience import until


@pytest.mark.parametrize(("instead", "says"), [(FULL, "disk is full"), (BROKEN, "cannot be written")])
@pytest.mark.parametrize("tool", ["pay", "look", "write", "send"])
async def test_nothing_runs_on_a_disk_that_takes_nothing(world: World, tool: str, instead: str, says: str) -> None:
    async with world.open() as gate:
        open_log(gate)
        with failing_log(world.file, instead), pytest.raises(StoreError, match=says):
            await world.call(gate, tool, f"{tool}-1")
        assert world.ledger.lines("effect") == []
        assert (await world.call(gate, tool, f"{tool}-1", wait=tool != "send")).status in (
            Status.COMPLETED,
            Status.AWAITING_APPROVAL,
        )
    judge(world.file, world.ledger)


async def test_a_decision_that_cannot_be_written_is_not_acknowledged_and_can_be_made_again(world: World) -> None:
    async with world.open() as gate:
        parked = await world.call(gate, "send", "send-1", wait=False)
        assert parked.approval_id is not None
        with failing_log(world.file, FULL), pytest.raises(StoreError):
            await world.decide(gate, parked.approval_id, "approve", by="ann")
        await world.decide(gate, parked.approval_id, "deny", by="bob")
    findings = judge(world.file, world.ledger)
    assert findings.approvals[parked.approval_id] == ("denied", "bob")


@pytest.mark.parametrize("tool", ["pay", "put"])
async def test_a_result_that_could_not_be_written_is_written_when_the_disk_returns(world: World, tool: str) -> None:
    world.hold = "effect.done"
    async with world.open() as gate:
        call = asyncio.create_task(world.call(gate, tool, f"{tool}-1"))
        await until(lambda: world.held)
        with failing_log(world.file, FULL):
            world.release.set()
            with pytest.raises(StoreError):
                await call
        await until(lambda: _is_final(gate, f"{tool}-1"))
        assert (await gate.get(f"{tool}-1")).data == {"did": f"{tool}-1"}
    assert judge(world.file, world.ledger).effects[f"{tool}-1"] == 1


async def _is_final(gate: Gate, call_id: str) -> bool:
    return (await gate.get(call_id)).is_final


@pytest.mark.parametrize("play", ["disk_fills", "read_only", "read_only_folder"])
async def test_a_process_copes_with(play: str, nursery: Nursery, world: World) -> None:
    assert not nursery.live(Life(play, str(world.folder))).killed


async def test_a_claim_that_could_not_be_synced_runs_nothing(nursery: Nursery, world: World) -> None:
    assert nursery.live(Life("fsync_fails", str(world.folder))).killed
    assert [line["what"] for line in world.ledger.lines()] == ["effect", "result", "refused"]
    await aftermath(world, {"pay-1": "pay"})


async def test_a_file_that_stays_locked_is_an_error_and_nothing_runs(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_S", 0.1)
    async with world.open() as gate:
        with closing(sqlite3.connect(world.file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            for tool in ("pay", "look"):
                with pytest.raises(StoreError, match="stayed locked"):
                    await world.call(gate, tool, f"{tool}-1")
            other.execute("ROLLBACK")
        assert world.ledger.lines("effect") == []
        assert (await world.call(gate, "pay", "pay-1")).success


async def test_a_call_waits_for_a_lock_that_is_let_go(world: World) -> None:
    async with world.open() as gate:
        with closing(sqlite3.connect(world.file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            call = asyncio.create_task(world.call(gate, "pay", "pay-1"))
            await asyncio.sleep(0)
            assert not call.done()
            other.execute("ROLLBACK")
            assert (await call).success


def killed_tour(nursery: Nursery, world: World, nth: int) -> bytes:
    """What the write-ahead log holds after a death in the middle of a tour."""
    assert nursery.live(Life("tour", str(world.folder), point="commit.done", nth=nth)).killed
    return log_of(world).read_bytes()


def log_of(world: World) -> Path:
    return world.file.with_name(world.file.name + "-wal")


@pytest.mark.parametrize("nth", [3, 9, 17])
async def test_garbage_after_the_last_commit_is_ignored(nursery: Nursery, world: World, nth: int) -> None:
    log_of(world).write_bytes(killed_tour(nursery, world, nth) + random.Random(nth).randbytes(5000))
    await aftermath(world, TOUR)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("how", ["cut", "flipped"])
async def test_a_torn_log_gives_a_shorter_truth_that_verifies(
    nursery: Nursery, new_world: Callable[[], World], how: str, seed: int
) -> None:
    dice = random.Random(seed)
    world = new_world()
    log = bytearray(killed_tour(nursery, world, 17))
    at = dice.randrange(32, len(log))
    if how == "cut":
        del log[at:]
    else:
        log[at] ^= 1 << dice.randrange(8)
    log_of(world).write_bytes(log)
    chains_of(world.file)
    async with world.open() as gate:
        await gate.recover()
        assert (await gate.call("look", {"n": "after"})).success
    chains_of(world.file)
