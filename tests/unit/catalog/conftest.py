"""A workspace with ordinary files, and a gate with the built-in tools for it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

import toolgate


@pytest.fixture
def workspace() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="toolgate-test-"))
    (path / "src").mkdir()
    (path / "src" / "main.py").write_text("import os\n\nprint(os.getcwd())\n")
    (path / "notes.txt").write_text("one\ntwo\nthree\n")
    (path / ".env").write_text("TOKEN=canary-secret")
    (path.parent / f"{path.name}-outside").write_text("canary-outside")
    yield path
    shutil.rmtree(path)
    os.unlink(path.parent / f"{path.name}-outside")


@pytest.fixture
async def gate(workspace: Path) -> AsyncIterator[toolgate.Gate]:
    async with toolgate.open(
        "memory://", workspace=workspace, built_in_tools=True, approver=lambda _approval: True
    ) as opened:
        yield opened
