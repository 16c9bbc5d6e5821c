"""Seeded mixes of everything, one or two processes at once, several lives in a row, killed at random points."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest
from tests.faults.aftermath import aftermath
from tests.faults.nursery import Life, Nursery
from tests.faults.plays import IDS
from tests.faults.points import POINTS
from tests.faults.world import AT_MOST_ONCE, RETRIED, World
from tests.soak import times

CALLS = {f"{tool}-{number}": tool for tool in (*AT_MOST_ONCE, *RETRIED) for number in range(1, IDS + 1)}
FEW, MANY, TOGETHER = 40, times(3000), 20
"""Seeds in a test run and in a soak, and how many one test of a soak plays: thousands of tests take long to collect.
A failure names its seed; the same seed plays the same script again."""
PASSAGES = (1, 1, 1, 1, 2, 2, 3, 5, 8)
"""Early ones more often: a life passes most points once or twice, and who never gets there does not die."""


async def campaign(seed: int, nursery: Nursery, world: World, tally: Counter[str]) -> None:
    """Up to three generations of one or two processes, each dying at a point of its own; then the aftermath."""
    dice = random.Random(seed)
    for _ in range(dice.randint(1, 3)):
        lives = [
            Life("crowd", str(world.folder), dice.randrange(10**9), dice.choice(POINTS), dice.choice(PASSAGES))
            for _ in range(dice.randint(1, 2))
        ]
        for pid, life in [(nursery.start(life), life) for life in lives]:
            tally["kills"] += nursery.end(pid, life).killed
    (await aftermath(world, CALLS)).count(tally)


@pytest.mark.parametrize("seed", range(FEW))
async def test_a_crowd_that_dies_at_random_leaves_the_truth(
    seed: int, nursery: Nursery, new_world: Callable[[], World], tally: Counter[str]
) -> None:
    await campaign(seed, nursery, new_world(), tally)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(FEW, MANY, TOGETHER))
async def test_many_crowds_that_die_at_random_leave_the_truth(
    first: int, nursery: Nursery, new_world: Callable[[], World], tally: Counter[str]
) -> None:
    for seed in range(first, first + TOGETHER):
        try:
            await campaign(seed, nursery, new_world(), tally)
        except BaseException as error:
            error.add_note(f"the seed was {seed}")
            raise
