"""The process that forks those who die: everything is imported once, nothing of ours is ever opened in it.

Spoken to in lines of JSON; started and asked by `Nursery` in the tests' own process.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from toolgate.testing.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Life:
    """One process: what it does, where, and when it dies (`point` None: it lives to the end of its play)."""

    play: str
    folder: str
    seed: int = 0
    point: str | None = None
    nth: int = 1


@dataclass(frozen=True)
class Death:
    """How a life ended: by its point, or at the end of its play with how often each point was passed."""

    killed: bool
    passed: dict[str, int]


class Nursery:
    """Starts lives. One conversation at a time."""

    def __init__(self) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.nursery"],
            cwd=ROOT,
            env={**kept, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def _ask(self, **request: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def start(self, life: Life) -> int:
        """Begin a life and return its process id."""
        pid: int = self._ask(start=asdict(life))
        return pid

    def end(self, pid: int, life: Life) -> Death:
        """Wait until a life is over. One that ended by itself must have ended well."""
        code: int = self._ask(wait=pid)
        log = Path(life.folder) / f"{pid}.log"
        assert code in (0, -9), f"{life} ended with {code}:\n{log.read_text(encoding='utf-8')}"
        passed = {} if code else json.loads(log.read_text(encoding="utf-8").splitlines()[-1])
        return Death(code == -9, passed)

    def live(self, life: Life) -> Death:
        """Begin a life and wait until it is over."""
        return self.end(self.start(life), life)

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE_S)
        self._process.stdout.close()


def _be_born(life: Life) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    log = open(Path(life.folder) / f"{os.getpid()}.log", "w", encoding="utf-8")  # noqa: SIM115  # closed by death
    os.dup2(log.fileno(), 1)
    os.dup2(log.fileno(), 2)
    os.close(0)
    try:
        _play(life, log)
        code = 0
    except BaseException:  # noqa: BLE001  # whatever it was, it belongs in this life's log
        traceback.print_exc(file=log)
    finally:
        log.flush()
        os._exit(code)


def _play(life: Life, log: Any) -> None:
    from tests.faults.plays import PLAYS
    from tests.faults.points import Points, install
    from tests.faults.world import World

    points = Points(life.point, life.nth)
    install(points)
    asyncio.run(_to_the_end(PLAYS[life.play](World(Path(life.folder), points), life.seed)))
    log.write("\n" + json.dumps(points.passed))


async def _to_the_end(play: Any) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await play


def _serve() -> None:
    import tests.faults.plays  # noqa: F401  # warm: children find it imported

    for line in sys.stdin:
        request = json.loads(line)
        if "start" in request:
            answer = _be_born(Life(**request["start"]))
        else:
            answer = os.waitstatus_to_exitcode(os.waitpid(request["wait"], 0)[1])
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve()
