"""What the fault tests share: a file with the schema in it to copy, and the process that forks those who die."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from tests.faults.bank import banking
from tests.faults.endings import Ending
from tests.faults.nursery import Nursery
from tests.faults.theatre import Theatre
from tests.faults.world import World, copy_of

from toolgate.adapters.postgres import read as postgres_read
from toolgate.adapters.sqlite.store import SqliteStore

MEMORY = Path("/dev/shm")
"""kill -9 loses no page the kernel has, so worlds that only die can live in memory and be quick."""


@pytest.fixture(scope="session")
def shelf() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="toolgate-", dir=MEMORY if os.access(MEMORY, os.W_OK) else None))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def template(shelf: Path) -> Path:
    folder = shelf / "template"
    folder.mkdir()
    asyncio.run(SqliteStore(folder / "toolgate.db", owner="template").close())
    return folder


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    nursery = Nursery()
    yield nursery
    nursery.close()


@pytest.fixture
def new_world(template: Path, shelf: Path, request: pytest.FixtureRequest) -> Iterator[Callable[[], World]]:
    """Makes fresh worlds, gone after the test unless it failed."""
    made: list[Path] = []
    numbers = count()

    def new() -> World:
        folder = Path(tempfile.mkdtemp(dir=shelf)) / str(next(numbers))
        made.append(folder)
        return copy_of(template, folder)

    yield new
    for folder in made:
        shutil.rmtree(folder.parent)


@pytest.fixture
def world(new_world: Callable[[], World]) -> World:
    return new_world()


@pytest.fixture
def theatre(
    world: World, store: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Theatre]:
    monkeypatch.setattr(postgres_read, "LEASE_S", 0.0)  # the cluster may have been started just now
    for folder in (world.folder, world.folder.parent, world.folder.parent.parent):
        folder.chmod(0o755)  # whoever runs in the sandbox must reach its workspace
    cluster = request.getfixturevalue("postgres_cluster") if store == "postgres" else None
    url = request.getfixturevalue("postgres_url") if store == "postgres" else f"sqlite:///{world.file}"
    with banking(world.ledger) as bank:
        yield Theatre(world, bank, cluster, url)


@pytest.fixture
def store(ending: Ending) -> str:
    """The store of the ending that is played; tests without an ending name theirs."""
    return ending.store
