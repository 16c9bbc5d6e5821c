"""kill -9 at the passages of every named point: nothing is lost, doubled or guessed.

The long campaign dies at every passage; the short one at the first and at every third from a random one on, so
that each run tries each point early, in the middle and late, and several runs try everything.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable

import pytest
from tests.faults.aftermath import aftermath
from tests.faults.nursery import Life, Nursery
from tests.faults.plays import RUNNING, TOUR
from tests.faults.points import AROUND_A_RUN, AROUND_ANSWERS, AROUND_HOOKS, IN_A_COMMIT, IN_RECOVERY
from tests.faults.world import World

MOST = 100
"""More than a tour passes any point."""


def some() -> Iterable[int]:
    return [1, *range(2 + random.randrange(3), MOST, 3)]


def every() -> Iterable[int]:
    return range(1, MOST)


campaigns = pytest.mark.parametrize("passages", [some, pytest.param(every, marks=pytest.mark.soak)])


@campaigns
@pytest.mark.parametrize("point", [*IN_A_COMMIT, *AROUND_A_RUN, *AROUND_HOOKS, *AROUND_ANSWERS])
async def test_a_process_may_die_at_any_passage_of(
    point: str,
    passages: Callable[[], Iterable[int]],
    nursery: Nursery,
    new_world: Callable[[], World],
    tally: Counter[str],
) -> None:
    for nth in passages():
        world = new_world()
        death = nursery.live(Life("tour", str(world.folder), point=point, nth=nth))
        (await aftermath(world, TOUR)).count(tally)
        tally["kills"] += death.killed
        if not death.killed:
            assert nth > 1, f"a tour never passes {point}"
            return
    pytest.fail(f"a tour passes {point} too often")


@campaigns
@pytest.mark.parametrize("acted", [0, 1], ids=["before-effects", "after-effects"])
@pytest.mark.parametrize("point", [*IN_RECOVERY, *IN_A_COMMIT, *AROUND_A_RUN])
async def test_who_recovers_may_die_at_any_passage_of(
    point: str,
    acted: int,
    passages: Callable[[], Iterable[int]],
    nursery: Nursery,
    new_world: Callable[[], World],
    tally: Counter[str],
) -> None:
    for nth in passages():
        world = new_world()
        assert nursery.live(Life("burst", str(world.folder), seed=acted)).killed
        death = nursery.live(Life("recovery", str(world.folder), point=point, nth=nth))
        (await aftermath(world, {f"{tool}-1": tool for tool in RUNNING})).count(tally)
        tally["kills"] += 1 + death.killed
        if not death.killed:
            assert nth > 1, f"recovery never passes {point}"
            return
    pytest.fail(f"recovery passes {point} too often")
