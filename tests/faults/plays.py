"""What the processes that die do until then. Each play is one life of a process on a world's file."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

from tests.faults.points import die, install_at_birth
from tests.faults.world import World

from toolgate import Gate
from toolgate.errors import ConflictError, NotFoundError
from toolgate.kernel.approval import Approval
from toolgate.testing.patience import until

Play = Callable[[World, int], Awaitable[None]]
RUNNING = ("look", "put", "pay", "book", "write")


async def tour(world: World, _seed: int) -> None:
    """One call of every kind, one after the other, so that every passage of every point has its number."""
    async with world.open() as gate:
        for tool in ("look", "put", "pay", "wire", "book", "write"):
            await world.call(gate, tool, f"{tool}-1")
        undone = await gate.undo("write-1")
        world.acknowledge("result", call=undone.call_id, status=undone.status, data=None)
        approval = await _park(world, gate, "send-yes")
        await world.decide(gate, approval.id, "approve", by="ann")
        await world.call(gate, "send", "send-yes")
        await world.decide(gate, (await _park(world, gate, "send-no")).id, "deny", by="ann")
        await _park(world, gate, "send-cancelled")
        await gate.cancel("send-cancelled")
        await _park(world, gate, "send-parked")
        await gate.set_mode("ALERT", by="ann")
        world.acknowledge("mode", mode="ALERT")


TOUR = {**{f"{tool}-1": tool for tool in ("look", "put", "pay", "wire", "book", "write")}, "send-yes": "send"}


async def _park(world: World, gate: Gate, id: str) -> Approval:
    result = await world.call(gate, "send", id, wait=False)
    assert result.approval_id is not None
    world.acknowledge("parked", call=id, approval=result.approval_id)
    return await gate.approval(result.approval_id)


async def burst(world: World, seed: int) -> None:
    """Many calls at once; die when all have begun, before or after their effects."""
    world.hold = ("effect", "effect.done")[seed % 2]
    gate = world.open()
    calls = [asyncio.create_task(world.call(gate, tool, f"{tool}-1")) for tool in RUNNING]
    await until(lambda: world.held == len(calls))
    die()


async def flood(world: World, _seed: int) -> None:
    """More calls at once than one batch of recovery holds; die when all have begun."""
    world.hold = "effect"
    gate = world.open()
    calls = [asyncio.create_task(world.call(gate, "pay", f"pay-{number}")) for number in range(130)]
    await until(lambda: world.held == len(calls))
    die()


async def recovery(world: World, _seed: int) -> None:
    """Look after what the dead left, as an agent that comes back asks for its calls again."""
    async with world.open() as gate:
        await gate.recover()
        for tool in RUNNING:
            await world.call(gate, tool, f"{tool}-1")


async def crowd(world: World, seed: int) -> None:
    """A seeded mix of calls, answers, cancellations and undos, several at once, beside whoever else is on the file."""
    dice = random.Random(seed)
    async with world.open() as gate:
        await gate.recover()
        for _ in range(dice.randint(2, 4)):
            await asyncio.gather(*(_step(world, gate, dice) for _ in range(dice.randint(1, 4))))


IDS = 4
"""So few call ids for each tool that lives, and processes, meet in them."""


async def _step(world: World, gate: Gate, dice: random.Random) -> None:
    tool = dice.choice([*RUNNING, "wire", "send", "send", "send"])
    id = f"{tool}-{dice.randint(1, IDS)}"
    match dice.randint(1, 8):
        case 1:
            await _cancel(gate, id)
        case 2:
            await _undo(gate, f"write-{dice.randint(1, IDS)}")
        case 3 | 4:
            await _answer_all(world, gate, dice)
        case _:
            await world.call(gate, tool, id, wait=tool != "send")


async def _cancel(gate: Gate, id: str) -> None:
    try:
        await gate.cancel(id, wait=False)
    except (ConflictError, NotFoundError):
        return


async def _undo(gate: Gate, id: str) -> None:
    try:
        await gate.undo(id)
    except NotFoundError:
        return


async def _answer_all(world: World, gate: Gate, dice: random.Random) -> None:
    for approval in await gate.pending():
        try:
            await world.decide(gate, approval.id, dice.choice(["approve", "deny"]), by=f"ann-{dice.randint(1, 9)}")
        except ConflictError:
            continue  # somebody else came first


async def birth(world: World, _seed: int) -> None:
    """Open a file that is not there yet, and use it."""
    install_at_birth(world.points)
    async with world.open() as gate:
        await world.call(gate, "look", "look-1")


PLAYS: dict[str, Play] = {play.__name__: play for play in (tour, burst, flood, recovery, crowd, birth)}
