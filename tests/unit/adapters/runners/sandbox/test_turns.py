"""Programs that write in one workspace take turns, also those of other processes."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.sandboxes import needs_sandbox

import toolgate
from toolgate.adapters.runners.sandbox.turns import turn
from toolgate.errors import SandboxError
from toolgate.guards.descriptor import Descriptor, pipe
from toolgate.policy.profiles import render


@pytest.fixture
def ends() -> Iterator[tuple[Descriptor, Descriptor]]:
    stop, pull = pipe()
    with stop, pull:
        yield stop, pull


@pytest.fixture
def taken(tmp_path: Path) -> Iterator[int]:
    """The turn in a folder, held by somebody else until it is closed."""
    folder = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    yield folder
    os.close(folder)


def test_a_turn_that_does_not_come_in_time_is_an_error(
    tmp_path: Path, taken: int, ends: tuple[Descriptor, Descriptor]
) -> None:
    with (
        pytest.raises(SandboxError, match="another command was writing"),
        turn([str(tmp_path)], timeout_s=0, stop=ends[0]),
    ):
        pytest.fail("it ran")


def test_who_is_stopped_waits_no_longer(tmp_path: Path, taken: int, ends: tuple[Descriptor, Descriptor]) -> None:
    os.write(ends[1].number, b"x")
    with pytest.raises(SandboxError, match="Nobody waits"), turn([str(tmp_path)], timeout_s=600, stop=ends[0]):
        pytest.fail("it ran")


def test_a_turn_is_given_back(tmp_path: Path, ends: tuple[Descriptor, Descriptor]) -> None:
    for _ in range(2):
        with turn([str(tmp_path), str(tmp_path)], timeout_s=0, stop=ends[0]):
            pass


@pytest.fixture
async def gate(workspace: Path, tmp_path: Path) -> AsyncIterator[toolgate.Gate]:
    for name, text in render("developer").items():
        (tmp_path / name).write_text(text)
    async with toolgate.open(
        "memory://",
        workspace=workspace,
        policy=str(tmp_path / "toolgate.yaml"),
        built_in_tools=True,
        approver=lambda _approval: True,
    ) as opened:
        yield opened


@needs_sandbox
async def test_a_command_that_writes_waits_for_its_turn(gate: toolgate.Gate, workspace: Path) -> None:
    workspace.chmod(0o777)
    folder = os.open(workspace, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    waiting = asyncio.create_task(gate.call("execute_command", {"command": "mkdir", "args": ["made"]}))
    await gate.call("execute_command", {"command": "ls"})  # what only reads needs no turn
    assert not waiting.done()
    assert not (workspace / "made").exists()
    os.close(folder)
    assert (await waiting).unwrap()["exit_code"] == 0
    assert (workspace / "made").is_dir()
