"""Starts, kills and replaces the fleet's processes, and judges what they left behind."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import asyncpg
from tests.faults.fleet.forge import Forge
from tests.faults.fleet.tools import AT_MOST_ONCE, FOLDER, TOOLS
from tests.postgres import KEY, Cluster

import toolgate
from toolgate.kernel.call import Status
from toolgate.kernel.event import verify
from toolgate.ports.store import CallQuery
from toolgate.testing.patience import PATIENCE_S

PROJECT = "fleet"
LEASE_S = 2.0


class Member:
    """One process of the fleet."""

    def __init__(self, forge: Forge, kind: str, pid: int) -> None:
        self._forge, self.kind, self._pid = forge, kind, pid
        self.is_alive = True

    def signal(self, sign: signal.Signals) -> None:
        self._forge.signal(self._pid, sign)

    def wait(self) -> int:
        self.is_alive = False
        return self._forge.wait(self._pid)

    def kill(self) -> None:
        """End it like a power cut does."""
        self.signal(signal.SIGKILL)
        self.wait()


class Fleet:
    """Servers and workers on one PostgreSQL. Every process that dies is replaced by another with a name of its own."""

    def __init__(self, folder: Path, cluster: Cluster, url: str, *, seed: int) -> None:
        self.folder, self.cluster, self.url = folder, cluster, url
        self.dice = random.Random(seed)
        self.kills: Counter[str] = Counter()
        self._members: list[Member] = []
        self._number = 0
        self._forge = Forge({FOLDER: str(folder), "TOOLGATE_KEY": KEY})
        (folder / "toolgate.yaml").write_text("version: 1\ndefault: by_risk\n", encoding="utf-8")

    def start(self, kind: str) -> Member:
        """Start a `host` or a `worker`."""
        self._number += 1
        policy = str(self.folder / "toolgate.yaml")
        if kind == "host":
            arguments = [self.url, policy, f"h{self._number}", PROJECT]
        else:
            arguments = [
                "worker", "--database", self.url, "--policy", policy, "--tools", "tests.faults.fleet.tools:TOOLS",
                "--lease", str(LEASE_S), "--drain", "5", "--plain",
            ]  # fmt: skip
        pid = self._forge.start(kind, self.folder / f"{kind}-{self._number}.log", *arguments)
        self._members.append(Member(self._forge, kind, pid))
        return self._members[-1]

    def lines(self, file: str) -> list[str]:
        path = self.folder / file
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def kill_one(self, kind: str) -> None:
        """Kill one of a kind like a power cut does, and start another."""
        victim = self.dice.choice([member for member in self._members if member.kind == kind and member.is_alive])
        victim.kill()
        self.kills[kind] += 1
        self.start(kind)

    def crash_database(self) -> None:
        self.cluster.stop(signal.SIGQUIT)
        self.kills["postgres"] += 1
        time.sleep(self.dice.random())
        self.cluster.start()

    def stop(self, kind: str) -> None:
        """End all of a kind in good order."""
        ending = [member for member in self._members if member.kind == kind and member.is_alive]
        for member in ending:
            member.signal(signal.SIGTERM)
        for member in ending:
            member.wait()

    def close(self) -> None:
        self._forge.close()

    async def settle(self) -> None:
        """Let the rest of the fleet finish: no call runs or waits for anything but a person."""
        moving = frozenset({Status.PENDING, Status.APPROVED, Status.EXECUTING})
        async with toolgate.open(self.url, tools=TOOLS, policy=str(self.folder / "toolgate.yaml")) as gate:
            deadline = time.monotonic() + PATIENCE_S
            while left := await gate.calls.list(CallQuery(project=PROJECT, statuses=moving, limit=5)):
                assert time.monotonic() < deadline, [(call.id, call.status, call.runner, call.due_at) for call in left]
                await asyncio.sleep(0.2)

    async def judge(self) -> Counter[str]:
        """Hold what was promised against the database and the effects; return how the calls ended."""
        calls, approvals = await self._rows()
        effects = Counter(self.lines("effects"))
        for call_id, (tool, status) in calls.items():
            if tool in AT_MOST_ONCE:
                assert effects[call_id] <= 1, f"{call_id} had its effect {effects[call_id]} times"
            if tool in AT_MOST_ONCE and status == "COMPLETED":
                assert effects[call_id] == 1, f"{call_id} is COMPLETED without its effect"
            if status in ("DENIED", "REJECTED", "TIMEOUT", "AWAITING_APPROVAL"):
                assert effects[call_id] == 0, f"{call_id} is {status} and had its effect"
        assert set(effects) <= set(calls), "an effect without a call"
        for line in self.lines("accepted"):
            assert line.split()[0] in calls, f"an accepted call was lost: {line}"
        for line in self.lines("decided"):
            approval_id, word = line.split()
            expected = {"approve": "approved", "deny": "denied"}[word]
            assert approvals[approval_id] == expected, f"a decision was lost: {line} is {approvals.get(approval_id)}"
        async with toolgate.open(self.url) as gate:
            seen, after = 0, None
            while page := await gate.events(project=PROJECT, after=seen, limit=5000):
                verify(page, after=after)
                seen, after = page[-1].seq, (page[-1].seq, page[-1].hash)
        return Counter(status for _, status in calls.values())

    async def _rows(self) -> tuple[dict[str, tuple[str, str]], dict[str, str]]:
        """What the database holds, read as its superuser without any code of ours."""
        name = self.url.rpartition("/")[2]
        connection: Any = await asyncpg.connect(self.cluster.url(name, role="postgres"))
        try:
            calls = await connection.fetch("SELECT call_id, tool_name, status FROM tool_executions")
            asked = await connection.fetch("SELECT detail->>'id' AS id, status FROM approval_requests")
        finally:
            await connection.close()
        return {row[0]: (row[1], row[2]) for row in calls}, {row["id"]: row["status"] for row in asked}
