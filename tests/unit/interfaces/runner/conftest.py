"""A stage for each test, and a tool whose end the test decides."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.unit.interfaces.runner.stage import Stage

import toolgate


class Slow:
    """A tool that begins, counts, and ends when it is let go."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.begun = 0
        self.stopped = 0

    async def __call__(self, given: toolgate.ToolInput) -> toolgate.ToolOutput:
        self.begun += 1
        await given.progress(0.5, "half way")
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.stopped += 1
            raise
        return toolgate.ToolOutput.ok({"begun": self.begun})


@pytest.fixture
def slow() -> Slow:
    return Slow()


@pytest.fixture
async def stage(tmp_path: Path, slow: Slow) -> AsyncIterator[Stage]:
    tools = [
        toolgate.ToolDefinition("slow", {}, slow, timeout_seconds=60, effects="irreversible"),
        toolgate.ToolDefinition("slow_read", {}, slow, timeout_seconds=60, effects="read"),
    ]
    stage = Stage(tmp_path, *tools)
    await stage.server.start()
    yield stage
    await stage.server.stop()
