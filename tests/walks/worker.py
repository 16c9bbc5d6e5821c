"""A worker as a process of its own that traces itself: `work` is what that process does."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from multiprocessing.synchronize import Event
from pathlib import Path

from tests.walks.trace import Walk, tracing

import toolgate
from toolgate import ToolInput, ToolOutput
from toolgate.testing.patience import PATIENCE_S

START = "interfaces/worker/worker.py:_take"
_SPAWNED = multiprocessing.get_context("spawn")
_go: Event | None = None


async def _send(_given: ToolInput) -> ToolOutput:
    """End when the process that asked says so."""
    assert _go is not None
    assert await asyncio.to_thread(_go.wait, PATIENCE_S)
    _go.clear()
    return ToolOutput.ok("sent")


TOOLS = [toolgate.ToolDefinition("send", {}, _send, placement="worker", risk_level="low", timeout_seconds=300)]


def work(arguments: Sequence[str], out: str, go: Event) -> None:
    """Be a worker until SIGTERM, then write down the walks of the orders that were taken."""
    global _go
    _go = go
    from toolgate.interfaces.cli import main

    sys.argv = ["toolgate", "worker", *arguments]
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), tracing({START: "worker"}) as trace:
        try:
            main()
        except SystemExit:
            Path(out).write_text(json.dumps([walk.as_json() for walk in trace.walks["worker"]]), encoding="utf-8")
            raise


class WorkerProcess:
    """A worker on a database, and afterwards its walks."""

    def __init__(self, url: str, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._out = folder / "walks.json"
        policy = folder / "toolgate.yaml"
        policy.write_text("version: 1\ndefault: by_risk\n", encoding="utf-8")
        self.go = _SPAWNED.Event()
        arguments = ("--database", url, "--policy", str(policy), "--tools", f"{__name__}:TOOLS", "--plain")
        self._process = _SPAWNED.Process(target=work, args=(arguments, str(self._out), self.go))
        self._process.start()

    async def end(self) -> list[Walk]:
        """End it in good order; return its walks."""
        self._process.terminate()
        await asyncio.to_thread(self._process.join, PATIENCE_S)
        assert self._process.exitcode == 0
        return [Walk(**walk) for walk in json.loads(self._out.read_text(encoding="utf-8"))]

    def close(self) -> None:
        """Leave nothing behind, whatever happened."""
        self._process.kill()
        self._process.join(PATIENCE_S)
        self._process.close()
