"""Processes that share a file: one asks, another answers, and whoever dies, one of them runs the call once."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest
from tests.faults.aftermath import aftermath
from tests.faults.judge import judge
from tests.faults.nursery import Life, Nursery
from tests.faults.world import World

from toolgate.kernel.call import Status
from toolgate.pipeline.time.sweeper import Sweeper
from toolgate.testing.patience import PATIENCE_S, until


async def test_who_waits_here_is_woken_by_an_answer_given_there(
    nursery: Nursery, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def look_for_nothing(_sweeper: Sweeper) -> None: ...

    monkeypatch.setattr(Sweeper, "sweep", look_for_nothing)  # so that only the bus can wake it
    async with world.open() as gate:
        call = asyncio.create_task(gate.call("send", {"n": "send-1"}, call_id="send-1"))
        await until(gate.pending)
        life = Life("answer", str(world.folder))
        nursery.end(nursery.start(life), life)
        assert (await asyncio.wait_for(call, PATIENCE_S)).success
    assert judge(world.file, world.ledger).effects["send-1"] == 1


async def test_a_no_given_there_ends_the_wait_here(nursery: Nursery, world: World) -> None:
    async with world.open() as gate:
        call = asyncio.create_task(gate.call("send", {"n": "send-1"}, call_id="send-1"))
        await until(gate.pending)
        nursery.live(Life("refuse", str(world.folder)))
        assert (await asyncio.wait_for(call, PATIENCE_S)).status is Status.REJECTED


async def test_an_answer_survives_the_one_who_asked(nursery: Nursery, world: World) -> None:
    life = Life("ask_and_wait", str(world.folder))
    asking = nursery.start(life)
    async with world.open() as gate:
        await until(gate.pending)
        os.kill(asking, signal.SIGKILL)
        assert nursery.end(asking, life).killed
        await world.decide(gate, (await gate.pending())[0].id, "approve", by="ann")
        assert (await asyncio.wait_for(gate.wait("send-1"), PATIENCE_S)).success
    assert judge(world.file, world.ledger).effects["send-1"] == 1


@pytest.mark.parametrize("point", ["decide", "commit.written", "commit.done", "decide.done"])
async def test_an_answer_counts_if_and_only_if_it_was_committed(point: str, nursery: Nursery, world: World) -> None:
    async with world.open() as gate:
        call = asyncio.create_task(gate.call("send", {"n": "send-1"}, call_id="send-1"))
        await until(gate.pending)
        assert nursery.live(Life("answer", str(world.folder), point=point)).killed
        committed = point in ("commit.done", "decide.done")
        assert len(await gate.pending()) == (0 if committed else 1)
        for approval in await gate.pending():
            await world.decide(gate, approval.id, "approve", by="bob")
        assert (await asyncio.wait_for(call, PATIENCE_S)).approved_by == ("ann" if committed else "bob")


@pytest.mark.parametrize("seed", range(4))
async def test_many_processes_answer_one_question_and_one_answer_stands(
    seed: int, nursery: Nursery, world: World
) -> None:
    async with world.open() as gate:
        parked = await world.call(gate, "send", "send-1", wait=False)
        lives = [Life(play, str(world.folder), seed=seed) for play in ("answer", "refuse", "answer", "refuse")]
        for pid, life in [(nursery.start(life), life) for life in lives]:
            nursery.end(pid, life)
        result = await asyncio.wait_for(gate.wait("send-1"), PATIENCE_S)
    assert len(world.ledger.lines("decided")) == 1
    said = world.ledger.lines("decided")[0]["decision"]
    assert (result.approval_id, result.success) == (parked.approval_id, said == "approved")
    await aftermath(world, {})
