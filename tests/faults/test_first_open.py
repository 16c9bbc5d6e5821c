"""Dying, and racing, while the file is made: whoever comes next can open it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.faults.aftermath import aftermath
from tests.faults.nursery import Life, Nursery
from tests.faults.points import AT_BIRTH
from tests.faults.world import World

STATEMENTS = 80
"""More than making a schema takes."""


async def born_dead(point: str, nth: int, nursery: Nursery, folder: Path) -> bool:
    world = World(folder / str(nth))
    world.folder.mkdir()
    death = nursery.live(Life("birth", str(world.folder), point=point, nth=nth))
    if world.file.exists():
        await aftermath(world, {"look-1": "look"})
    else:
        nursery.live(Life("birth", str(world.folder)))
    return death.killed


@pytest.mark.parametrize("point", AT_BIRTH)
async def test_a_process_may_die_while_it_makes_the_file(point: str, nursery: Nursery, tmp_path: Path) -> None:
    for nth in (1, 10, 20) if point == "schema.statement" else (1,):
        assert await born_dead(point, nth, nursery, tmp_path)


@pytest.mark.soak
async def test_a_process_may_die_at_any_statement_of_the_schema(nursery: Nursery, tmp_path: Path) -> None:
    for nth in range(1, STATEMENTS):
        if not await born_dead("schema.statement", nth, nursery, tmp_path):
            assert nth > 20
            return


@pytest.mark.parametrize("turn", range(2))
async def test_many_processes_may_make_the_file_at_once(turn: int, nursery: Nursery, tmp_path: Path) -> None:
    life = Life("birth", str(tmp_path), seed=turn)
    for pid in [nursery.start(life) for _ in range(4)]:
        assert not nursery.end(pid, life).killed
    await aftermath(World(tmp_path), {"look-1": "look"})
