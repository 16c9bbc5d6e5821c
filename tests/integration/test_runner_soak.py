"""Work that never stops, while runners and the server are killed again and again at moments nobody chose."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections import Counter
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.integration.runner_process import HatchedServer, RunnerProcess
from tests.integration.server_process import P
from tests.soak import times
from tests.unit.interfaces.server.house import execute

from toolgate.testing.patience import PATIENCE_S, until

KILLS = times(30)
FINAL = ("COMPLETED", "FAILED", "UNKNOWN", "CANCELLED", "DENIED")


class Load:
    """Asks for marks and peeks all the time, whether somebody is there or not, and remembers what it asked for."""

    def __init__(self, server: HatchedServer) -> None:
        self._server = server
        self.asked: dict[str, str] = {}
        """What the server said it took; what its death left unanswered may run as well, once."""
        self.is_over = False

    async def run(self) -> None:
        async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
            for number in itertools.takewhile(lambda _number: not self.is_over, itertools.count()):
                tool = random.choice(["mark", "mark", "peek"])
                name = f"{tool}-{number}"
                body = execute(tool, {"name": name, "hold_s": random.choice([0, 0, 0.2])}, tool_id=name, wait=False)
                headers = {"Authorization": f"Bearer {self._server.tokens['ann']}"}
                with contextlib.suppress(httpx2.TransportError):
                    answer = await http.post(f"{self._server.url}{P}/tools/execute", json=body, headers=headers)
                    if answer.is_success:
                        self.asked[name] = tool
                await asyncio.sleep(0.05)


@pytest.mark.soak
async def test_whoever_is_killed_nothing_runs_twice_and_every_end_is_true(tmp_path: Path, tally: Counter[str]) -> None:
    (tmp_path / "server").mkdir()
    server = HatchedServer(tmp_path / "server")
    for account, kind in (("ann", "person"), ("box", "runner")):
        await asyncio.to_thread(server.make_token, account, kind)
    await server.start()
    runners = [RunnerProcess(server, tmp_path / name) for name in ("one", "two")]
    for runner in runners:
        await runner.start()
    load = Load(server)
    asking = asyncio.ensure_future(load.run())
    for _ in range(KILLS):
        await asyncio.sleep(random.uniform(0.05, 1.5))
        victim: Any = random.choice([*runners, server])
        await victim.kill()
        await asyncio.sleep(random.choice([0, 0.3]))
        await victim.start()
    load.is_over = True
    await asking
    ends = await _ends(server, load)
    for runner in runners:
        await runner.stop()
    await server.stop()
    tally["kills"] += KILLS
    tally["calls"] += len(ends)
    tally["effects"] += _judge(load, runners, ends)


async def _ends(server: HatchedServer, load: Load) -> dict[str, str]:
    ends: dict[str, str] = {}
    async with server.client("ann") as ann:
        for name in load.asked:

            async def is_over(name: str = name) -> bool:
                answer = await ann.get(f"{P}/tools/{name}")
                if answer.status_code == 429:  # thousands are asked for as quickly as they are answered
                    return False
                assert answer.is_success, answer.text
                ends[name] = answer.json()["internal_status"]
                return ends[name] in FINAL

            await until(is_over)
    return ends


def _judge(load: Load, runners: list[RunnerProcess], ends: dict[str, str]) -> int:
    """Hold the ends against what ran; return how many effects there were."""
    ran: Counter[str] = Counter()
    for runner in runners:
        ran.update(runner.effects.read_text(encoding="utf-8").split())
    twice = [name for name, count in ran.items() if name.startswith("mark") and count > 1]
    assert twice == [], "ran more than once"
    for name, tool in load.asked.items():
        if tool == "mark":
            if ends[name] == "COMPLETED":
                assert ran[name] == 1, f"{name} completed and never ran"
            elif ends[name] != "UNKNOWN":
                assert ran[name] == 0, f"{name} is {ends[name]} and ran"
        elif ends[name] == "COMPLETED":
            assert ran[name] >= 1
    tally = Counter(ends.values())
    assert tally["COMPLETED"] > len(ends) // 3, dict(tally)
    return ran.total()
