"""What processes do on disks that fail. Each asserts what its own process must see."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from pathlib import Path

import pytest
from tests.faults.judge import judge
from tests.faults.kernel import fail_fsync, limit_files, mount_small_disk, obey_permissions
from tests.faults.points import die
from tests.faults.world import World

from toolgate import Gate
from toolgate.errors import StoreError

SMALL = 1024 * 1024


async def fsync_fails(world: World, _seed: int) -> None:
    """Nothing with effects runs while its claim cannot be made durable."""
    gate = world.open()
    await world.call(gate, "pay", "pay-1")
    fail_fsync()
    for number in (2, 3):
        with pytest.raises(StoreError, match="nothing runs"):
            await gate.call("pay", {"n": f"pay-{number}"}, call_id=f"pay-{number}")
    world.ledger.add("refused", sync=False)
    die()


async def disk_fills(world: World, _seed: int) -> None:
    """Call until the disk is full, make room, go on."""
    small = World(world.folder / "small")
    small.folder.mkdir()
    mounted = mount_small_disk(small.folder, SMALL)
    for name in ("toolgate.db", "toolgate.db.key"):
        shutil.copy(world.folder / name, small.folder / name)
    ledger = world.ledger  # outside the disk that fills
    tools = World(small.folder, ledger_folder=world.folder)
    ballast = small.folder / "ballast"
    if mounted:
        with contextlib.suppress(OSError):
            ballast.write_bytes(b"x" * (SMALL - _used(small.folder) - 128 * 1024))
    else:
        limit_files(small.file.stat().st_size + 64 * 1024)
    async with tools.open() as gate:
        count = await _until_full(tools, gate)
        assert count > 1
        assert ledger.effects_of(f"pay-{count}") == 0
        for tool in ("look", "send", "write"):
            with pytest.raises(StoreError, match="nothing runs"):
                await tools.call(gate, tool, f"{tool}-1")
        if mounted:
            ballast.unlink()
        else:
            limit_files(-1)
        for tool in ("pay", "look", "write"):
            assert (await tools.call(gate, tool, f"{tool}-again")).success
        judge(small.file, ledger)


async def _until_full(world: World, gate: Gate) -> int:
    """Make calls until one is refused, and return its number."""
    for number in range(1, 1000):
        try:
            await world.call(gate, "pay", f"pay-{number}")
        except StoreError:
            return number
    raise AssertionError("the disk never filled")


def _used(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*"))


async def read_only(world: World, _seed: int) -> None:
    """A file that may only be read is refused in words, unchanged, and served again when it may be written."""
    obey_permissions()
    before = hashlib.sha256(world.file.read_bytes()).digest()
    world.file.chmod(0o444)
    with pytest.raises(StoreError, match="is read-only; nothing was changed"):
        world.open()
    assert hashlib.sha256(world.file.read_bytes()).digest() == before
    world.file.chmod(0o600)
    async with world.open() as gate:
        assert (await world.call(gate, "pay", "pay-1")).success


async def read_only_folder(world: World, _seed: int) -> None:
    obey_permissions()
    world.folder.chmod(0o555)
    try:
        with pytest.raises(StoreError):
            world.open()
    finally:
        world.folder.chmod(0o700)
    async with world.open() as gate:
        assert (await world.call(gate, "pay", "pay-1")).success


DISK_PLAYS = (fsync_fails, disk_fills, read_only, read_only_folder)
