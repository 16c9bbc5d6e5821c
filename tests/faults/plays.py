"""What the processes that die do until then. Each play is one life of a process on a world's file."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NoReturn

from tests.faults.disk_plays import DISK_PLAYS
from tests.faults.points import die, install_at_birth
from tests.faults.stage import payment
from tests.faults.world import World

import toolgate
from toolgate import Gate
from toolgate.errors import ConflictError, NotFoundError
from toolgate.kernel.approval import Approval
from toolgate.testing.patience import until, until_sync

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
    return await gate.approvals.get(result.approval_id)


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


async def answer(world: World, _seed: int) -> None:
    """Say yes to whatever waits, in a process that holds no tools and so can run nothing."""
    await _say(world, "approve")


async def refuse(world: World, _seed: int) -> None:
    await _say(world, "deny")


async def _say(world: World, decision: str) -> None:
    async with toolgate.open(f"sqlite:///{world.file}") as gate:
        for approval in await gate.pending():
            with contextlib.suppress(ConflictError):  # somebody else came first
                await world.decide(gate, approval.id, decision, by="ann")


async def ask_and_wait(world: World, _seed: int) -> None:
    async with world.open() as gate:
        await world.call(gate, "send", "send-1")


async def birth(world: World, _seed: int) -> None:
    """Open a file that is not there yet, and use it."""
    install_at_birth(world.points)
    async with world.open() as gate:
        await world.call(gate, "look", "look-1")


async def _fork_while_running(world: World, in_child: Callable[[Gate], Coroutine[Any, Any, object]]) -> None:
    """Fork while a call runs, do one thing with the parent's gate in the child, and let the call end in the parent."""
    world.hold = "effect"
    gate = world.open()
    call = asyncio.create_task(world.call(gate, "pay", "pay-1"))
    await until(lambda: world.held)
    pid = os.fork()
    if not pid:
        _report(world, in_child(gate))
    await until(lambda: os.waitpid(pid, os.WNOHANG)[0])
    async with world.open() as other:
        await other.recover()
        world.release.set()
        await call
    await gate.aclose()


def _report(world: World, work: Coroutine[Any, Any, object]) -> NoReturn:
    """Finish `work` in a forked child, on an event loop of its own, and write down what it raised."""
    error = None
    try:
        asyncio.run(work)
    except Exception as raised:  # noqa: BLE001  # the parent's test judges it
        error = raised
    world.ledger.add("child", error=type(error).__name__ if error else "None")
    os._exit(0)


async def fork_and_commit(world: World, _seed: int) -> None:
    await _fork_while_running(world, lambda gate: gate.call("look", {"n": "child"}, call_id="look-child"))


async def fork_and_read(world: World, _seed: int) -> None:
    await _fork_while_running(world, lambda gate: gate.get("pay-1"))


async def fork_and_close(world: World, _seed: int) -> None:
    await _fork_while_running(world, lambda gate: gate._driver.store.close())


async def die_leaving_a_child(world: World, _seed: int) -> None:
    """Die while a call runs and a forked child lives on until the ledger says otherwise."""
    world.hold = "effect.done"
    gate = world.open()
    call = asyncio.create_task(world.call(gate, "pay", "pay-1"))
    await until(lambda: world.held)
    if not os.fork():
        until_sync(lambda: world.ledger.lines("go"))
        os._exit(0)
    assert not call.done()
    die()


PLAYS: dict[str, Play] = {
    play.__name__: play
    for play in (
        tour,
        burst,
        flood,
        recovery,
        crowd,
        birth,
        answer,
        refuse,
        ask_and_wait,
        fork_and_commit,
        fork_and_read,
        fork_and_close,
        die_leaving_a_child,
        payment,
        *DISK_PLAYS,
    )
}
