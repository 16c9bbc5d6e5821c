"""A server as a process of its own, started like an operator would, killed like nobody should."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import httpx2
from typer.testing import CliRunner

import toolgate
from toolgate.adapters.sqlite.file import prepare
from toolgate.interfaces.cli import token
from toolgate.testing.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
POLICY = "version: 1\ndefault: by_risk\nsingle_person: true\n"
P = "/my/projects/demo"


def _nothing(_given: toolgate.ToolInput) -> toolgate.ToolOutput:
    return toolgate.ToolOutput.ok()


TOOLS = [
    toolgate.ToolDefinition("far", {}, _nothing, placement="client", timeout_seconds=30),
    toolgate.ToolDefinition("brief", {}, _nothing, placement="client", timeout_seconds=1.5),
    toolgate.ToolDefinition("look", {}, _nothing, placement="client", effects="read", timeout_seconds=1.5),
    toolgate.ToolDefinition("ask", {}, _nothing, placement="client", risk_level="medium", timeout_seconds=30),
]


class ServerProcess:
    """One data folder; `start` and `kill` as often as a test likes."""

    def __init__(self, folder: Path, *, tools: str = "tests.integration.server_process:TOOLS") -> None:
        self.folder = folder
        self._tools = tools
        self.database = folder / "toolgate.db"
        (folder / "toolgate.yaml").write_text(POLICY, encoding="utf-8")
        self.url = ""
        self.tokens: dict[str, str] = {}
        self._process: subprocess.Popen[bytes] | None = None

    def make_token(self, account: str, kind: str, *options: str) -> str:
        """Make a token with the command an operator uses."""
        prepare(self.database)
        answer = CliRunner().invoke(
            token.app, ["create", str(self.database), account, "--kind", kind, "--project", "demo", *options]
        )
        assert answer.exit_code == 0, answer.output
        text = next(line for line in answer.output.splitlines() if line.startswith("tg_"))
        self.tokens[account] = text
        return text

    async def start(self, **settings: str) -> None:
        await asyncio.to_thread(self.begin, **settings)

    def begin(self, **settings: str) -> None:
        """Start it from plain code, such as a fixture that several tests share."""
        environment = {**os.environ, **{f"TOOLGATE_{name.upper()}": value for name, value in settings.items()}}
        environment["PYTHONPATH"] = str(ROOT)
        command = [
            sys.executable, "-m", "toolgate", "serve",
            "--database", f"sqlite:///{self.database}", "--policy", str(self.folder / "toolgate.yaml"),
            "--port", "0", "--tools", self._tools,
        ]  # fmt: skip
        self._process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        assert select.select([self._process.stdout], [], [], PATIENCE_S)[0], "it says nothing"
        line = self._process.stdout.readline().decode()
        assert line.startswith("Serving on "), line
        self.url = line.removeprefix("Serving on ").strip()

    async def kill(self) -> None:
        """Kill it like a power cut does."""
        assert self._process is not None
        self._process.kill()
        await asyncio.to_thread(self._ended)

    async def stop(self) -> int:
        """End it like an operator does; return what it said in the end."""
        return await asyncio.to_thread(self.end)

    def end(self) -> int:
        """The same from plain code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)  # nothing where it has ended already
        return self._ended()

    def _ended(self) -> int:
        assert self._process is not None
        with self._process as process:  # which closes what it said
            return process.wait(PATIENCE_S)

    def client(self, who: str) -> httpx2.AsyncClient:
        headers = {"Authorization": f"Bearer {self.tokens[who]}"}
        return httpx2.AsyncClient(base_url=self.url, headers=headers, timeout=PATIENCE_S)
