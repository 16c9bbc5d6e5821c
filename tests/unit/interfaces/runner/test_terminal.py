"""A runner at a real terminal: it asks there, shows what it does, and ends when it is told to."""

from __future__ import annotations

import asyncio
import os
import pty
import re
import signal
import sys
from pathlib import Path

from tests.unit.interfaces.runner.stage import Stage

from toolgate.testing.patience import PATIENCE_S, until

ROOT = Path(__file__).resolve().parents[4]


class Terminal:
    """What a process drew on its terminal so far, and the keyboard."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._drawn = b""
        os.set_blocking(descriptor, False)

    @property
    def text(self) -> str:
        while True:
            try:
                more = os.read(self._descriptor, 65536)
            except (BlockingIOError, OSError):
                break
            if not more:
                break
            self._drawn += more
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self._drawn.decode(errors="replace"))

    async def shows(self, text: str, times: int = 1) -> None:
        await until(lambda: self.text.count(text) >= times)

    def type(self, keys: str) -> None:
        os.write(self._descriptor, keys.encode())


async def test_a_person_says_yes_and_no_and_goes_away(stage: Stage) -> None:
    ours, theirs = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "toolgate", "runner", "--server", stage.server.url, "--project", "demo",
        "--workspace", str(stage.workspace), "--policy", str(stage.policy), "--state", str(stage.state), "--confirm",
        "--only", "write_file", "--only", "read_file",
        cwd=ROOT, env={**os.environ, "TOOLGATE_TOKEN": "tg_x", "TERM": "xterm", "COLUMNS": "120", "LINES": "50"},
        stdin=theirs, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    terminal = Terminal(ours)
    await terminal.shows("connected to")
    stage.server.run("t1", "write_file", {"path": "a.txt", "content": "yes please"})
    await terminal.shows("[s]kip >")
    assert "yes please" in terminal.text
    assert not (stage.workspace / "a.txt").exists()
    terminal.type("a\n")
    assert (await stage.server.result())["status"] == "completed"
    assert (stage.workspace / "a.txt").read_text() == "yes please"

    stage.server.run("t2", "read_file", {"path": "a.txt"})
    await terminal.shows("[s]kip >", 2)
    terminal.type("d\n")
    await terminal.shows("Reason:")
    terminal.type("not today\n")
    refused = await stage.server.result(2)
    assert (refused["status"], "not today" in refused["error"]) == ("failed", True)

    stage.server.run("t3", "read_file", {"path": "a.txt"})
    await terminal.shows("[s]kip >", 3)
    process.send_signal(signal.SIGINT)
    async with asyncio.timeout(PATIENCE_S):
        assert await process.wait() == 0
    handed_back = await stage.server.result(3)
    assert (handed_back["tool_id"], handed_back["status"]) == ("t3", "failed")
    assert "stopped" in terminal.text
    assert "Fatal" not in terminal.text
    os.close(ours)
