"""Every way a payment can end without anybody having heard of it, and three retries of the agent after each.

Whatever strikes, wherever it runs: never a second payment, never FAILED where it was paid, never UNKNOWN where nothing
began. The bank's ledger is the judge.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from tests.faults.endings import ALL, PERSONS, QUICK, Ending
from tests.faults.nursery import Life, Nursery
from tests.faults.stage import FIRST, REMOTE, Stage, pass_time, where_it_stands
from tests.faults.story import Story
from tests.faults.theatre import Theatre
from tests.postgres import needs_postgres
from tests.sandboxes import needs_sandbox
from tests.soak import times

from toolgate import Gate
from toolgate.kernel.context import DEFAULT_PROJECT, Mode
from toolgate.testing.patience import until

IN_THIS_PROCESS = ("async", "thread", "worker", "caller")
"""Placements whose handlers can tell this gate that the machine's disk is full."""


NEEDS = {"sandbox": needs_sandbox, "postgres": needs_postgres}


def cases(endings: list[tuple[Ending, str]]) -> list[Any]:
    """Endings and who ends the doubt, with a name and what they need to run."""
    return [
        pytest.param(
            one,
            person,
            id=f"{one.id}-{person.replace(' ', '-')}",
            marks=[NEEDS[part] for part in (one.place, one.store) if part in NEEDS],
        )
        for one, person in endings
    ]


async def strike(theatre: Theatre, stage: Stage, ending: Ending, gate: Gate) -> None:
    """Make the first call in this process, and let the fault happen to it."""
    bank = theatre.bank
    bank.strike = ending.strike
    running = asyncio.create_task(stage.call_to_its_end(gate, FIRST))
    await until(lambda: bank.reached.is_set() or running.done())
    if ending.fault == "cancellation":
        await gate.cancel(FIRST, wait=False)
    elif ending.fault == "timeout" and ending.place == "client":
        pass_time(gate, timedelta(minutes=10))
        await gate.wait(FIRST)
    elif ending.fault == "timeout":
        assert gate._flights.stop(DEFAULT_PROJECT, FIRST, "timeout")
    if ending.place == "client":
        bank.hang_up()  # nobody stops a client but itself
    await running
    bank.hang_up()
    await until(lambda: not gate._driver.lingering)
    if ending.fault == "full disk" and ending.place in IN_THIS_PROCESS:
        await until(lambda: gate.mode is Mode.DEGRADED)
        await gate.set_mode(Mode.NORMAL, by="ann", reason="there is room again")


async def kill(theatre: Theatre, stage: Stage, ending: Ending, nursery: Nursery) -> None:
    """Let another process make the first call, and kill it in the middle."""
    theatre.bank.strike = ending.strike
    stage.write()
    life = Life("payment", stage.folder)
    pid = nursery.start(life)
    await until(theatre.bank.reached.is_set)
    os.kill(pid, signal.SIGKILL)
    assert nursery.end(pid, life).killed


@asynccontextmanager
async def after(theatre: Theatre, stage: Stage, ending: Ending, nursery: Nursery) -> AsyncIterator[Gate]:
    """A gate on which the first call has ended by its fault."""
    if ending.fault != "kill":
        async with stage.open() as gate:
            await strike(theatre, stage, ending, gate)
            yield gate
    elif ending.place in REMOTE:
        async with stage.open() as gate:
            await stage.call(gate, FIRST)
            await kill(theatre, stage, ending, nursery)
            pass_time(gate, timedelta(minutes=10))
            await gate.wait(FIRST)
            yield gate
    else:
        await kill(theatre, stage, ending, nursery)
        await theatre.bury()
        async with stage.open() as gate:
            await gate.recover()
            await gate.wait(FIRST)
            yield gate


async def play(ending: Ending, person: str, theatre: Theatre, nursery: Nursery) -> None:
    stage = theatre.stage(ending.place, keyed=ending.keyed)
    async with after(theatre, stage, ending, nursery) as gate:
        assert theatre.bank.effects() == ending.happened
        await Story(stage, theatre.bank, gate).from_doubt(person)
    await theatre.judge()


@pytest.mark.parametrize(("ending", "person"), cases([(one, PERSONS[turn % 3]) for turn, one in enumerate(QUICK)]))
async def test_three_retries_pay_nothing_twice_after(
    ending: Ending, person: str, theatre: Theatre, nursery: Nursery
) -> None:
    await play(ending, person, theatre, nursery)


@pytest.mark.soak
@pytest.mark.parametrize(("ending", "person"), cases([(one, PERSONS[turn % 3]) for turn, one in enumerate(ALL)]))
async def test_three_retries_pay_nothing_twice_after_any_of(
    ending: Ending, person: str, theatre: Theatre, nursery: Nursery, tally: Counter[str]
) -> None:
    await play(ending, person, theatre, nursery)
    tally["kills"] += ending.fault == "kill"
    tally["effects"] += theatre.bank.effects()


@pytest.mark.soak
@pytest.mark.parametrize("store", ["sqlite", pytest.param("postgres", marks=needs_postgres)])
@pytest.mark.parametrize("seed", range(times(20)))
@pytest.mark.parametrize("place", ["async", "thread", "sandbox", "caller"])
async def test_three_retries_pay_nothing_twice_after_a_kill_at_any_time(
    place: str, seed: int, theatre: Theatre, nursery: Nursery, tally: Counter[str]
) -> None:
    dice = random.Random(f"{place} {seed}")
    stage = theatre.stage(place, keyed=dice.random() < 0.5)
    stage.write()
    life = Life("payment", stage.folder)
    pid = nursery.start(life)
    await asyncio.sleep(dice.random() * (0.5 if place == "sandbox" else 0.1))  # whatever it does by then
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    tally["kills"] += nursery.end(pid, life).killed
    await theatre.bury()
    async with stage.open() as gate:
        await gate.recover()
        if await where_it_stands(gate) is not None:
            await stage.finish(gate, FIRST)
        await Story(stage, theatre.bank, gate).from_what_stands(dice.choice(PERSONS))
    await theatre.judge()
    tally["effects"] += theatre.bank.effects()


def test_the_endings_do_not_get_fewer() -> None:
    assert len(set(ALL)) == 7 * 4 * 6 * 2 * 2
    assert len(set(QUICK)) >= 77
    for part in ("fault", "where", "place", "store", "keyed"):
        assert {getattr(one, part) for one in QUICK} == {getattr(one, part) for one in ALL}
