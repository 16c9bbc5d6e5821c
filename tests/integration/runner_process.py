"""A server and runners as processes of their own, killed like nobody should."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

from tests.integration.hatchery import Hatched
from tests.integration.runner_tools import LOG
from tests.integration.server_process import ServerProcess

from toolgate.testing.patience import until

POLICY = """
version: 1
default: deny
tools:
  mark: {decision: allow}
  peek: {decision: allow}
  read_file: {decision: allow, paths: {allowed: ["${WORKSPACE}/**"]}}
  write_file: {decision: allow, paths: {allowed: ["${WORKSPACE}/**"]}}
"""
OFFERED = ("mark", "peek", "read_file", "write_file")


class HatchedServer(ServerProcess):
    """A server that always comes back at the same address."""

    port = "0"
    hatched: Hatched | None = None
    lives = 0

    async def start(self, **_settings: str) -> None:
        self.lives += 1
        log = self.folder / f"server-{self.lives}.log"
        self.hatched = hatched = Hatched(
            ["serve", "--database", f"sqlite:///{self.database}", "--policy", str(self.folder / "toolgate.yaml"),
             "--port", self.port, "--tools", "tests.integration.runner_tools:SERVED"],
            {}, log,
        )  # fmt: skip
        await until(lambda: hatched.lines() or not hatched.is_alive)
        self.url = hatched.lines()[0].removeprefix("Serving on ").strip()
        self.port = self.url.rpartition(":")[2]

    async def kill(self) -> None:
        assert self.hatched is not None
        self.hatched.send(signal.SIGKILL)
        assert await self.hatched.ended() == -signal.SIGKILL
        self.hatched = None

    async def stop(self) -> int:
        if self.hatched is None:
            return 0
        self.hatched.send(signal.SIGTERM)
        code = await self.hatched.ended()
        self.hatched = None
        return code


class RunnerProcess:
    """One workspace and one journal; `start` and `kill` as often as a test likes."""

    def __init__(self, server: ServerProcess, folder: Path, account: str = "box") -> None:
        self._server = server
        self._account = account
        folder.mkdir()
        self.folder = folder
        self.workspace = folder / "ws"
        self.workspace.mkdir()
        (self.workspace / "toolgate.yaml").write_text(POLICY, encoding="utf-8")
        self.effects = folder / "effects.log"
        self.effects.touch()
        self._log = folder / "events.log"
        self._hatched: Hatched | None = None

    def arguments(self, *options: str) -> list[str]:
        return [
            "runner", "--server", self._server.url, "--project", "demo", "--workspace", str(self.workspace),
            "--state", str(self.folder / "state"), "--tools", "tests.integration.runner_tools:RUN",
            *(part for name in OFFERED for part in ("--only", name)), *options,
        ]  # fmt: skip

    def environment(self) -> dict[str, str]:
        return {"TOOLGATE_TOKEN": self._server.tokens[self._account], LOG: str(self.effects)}

    async def start(self, *options: str) -> None:
        """Start it and wait until it is connected."""
        seen = self.count("connected")
        self._hatched = hatched = Hatched(self.arguments("--json", *options), self.environment(), self._log)
        await until(lambda: self.count("connected") > seen or not hatched.is_alive)

    @property
    def events(self) -> list[dict[str, Any]]:
        """Everything it told in all its lives."""
        return [] if self._hatched is None else [json.loads(line) for line in self._hatched.lines()]

    def count(self, event: str, tool_id: str | None = None) -> int:
        return sum(1 for one in self.events if one["event"] == event and tool_id in (None, one.get("tool_id")))

    async def saw(self, event: str, tool_id: str | None = None) -> None:
        await until(lambda: self.count(event, tool_id))

    def runs(self, name: str) -> int:
        """How often a call's effect happened."""
        return self.effects.read_text(encoding="utf-8").splitlines().count(name)

    async def began(self, name: str) -> None:
        await until(lambda: self.runs(name))

    def send(self, number: signal.Signals) -> None:
        assert self._hatched is not None
        self._hatched.send(number)

    async def kill(self) -> None:
        assert self._hatched is not None
        self.send(signal.SIGKILL)
        assert await self._hatched.ended() == -signal.SIGKILL

    async def stop(self) -> int:
        """End it like a user does; return its exit code."""
        assert self._hatched is not None
        self.send(signal.SIGTERM)
        return await self._hatched.ended()
