"""The process that forks the fleet's: everything is imported once and nothing of ours is opened in it.

Spoken to in lines of JSON. It alone signals its children and waits for them, so no foreign process is ever meant.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

from toolgate.testing.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[3]


class Forge:
    """Starts processes that are there at once. One conversation at a time."""

    def __init__(self, environment: dict[str, str]) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
        paths = os.pathsep.join([str(ROOT), str(ROOT / "src")])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.fleet.forge"],
            cwd=ROOT,
            env={**kept, **environment, "PYTHONPATH": paths},
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

    def start(self, kind: str, log: Path, *arguments: str) -> int:
        pid: int = self._ask(start=kind, log=str(log), arguments=arguments)
        return pid

    def signal(self, pid: int, sign: signal.Signals) -> None:
        self._ask(signal=pid, sign=int(sign))

    def wait(self, pid: int) -> int:
        """Wait for the end of a process and return its exit code, negative for a signal."""
        code: int = self._ask(wait=pid)
        return code

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=PATIENCE_S)
        self._process.stdout.close()


def _live(kind: str, log: str, arguments: list[str]) -> None:
    """In the child: become a host or a worker. Never returns."""
    code = 1
    try:
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        for stream in (1, 2):
            os.dup2(descriptor, stream)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        if kind == "host":
            from tests.faults.fleet.host import main as host

            asyncio.run(host(*arguments))
        else:
            from toolgate.interfaces.cli import main as command

            sys.argv = ["toolgate", *arguments]
            command()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001  # the log is all that is left to tell it to
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def main() -> None:

    import toolgate.adapters.postgres.bus
    import toolgate.adapters.postgres.dispatcher
    import toolgate.adapters.postgres.store
    import toolgate.adapters.runners.worker
    import toolgate.interfaces.cli.app
    import toolgate.interfaces.server.settings
    import toolgate.interfaces.worker.views
    import toolgate.interfaces.worker.worker
    import toolgate.policy.loader  # noqa: F401

    children: set[int] = set()
    for line in sys.stdin:
        asked = json.loads(line)
        answer: Any = None
        if "start" in asked:
            answer = os.fork()
            if not answer:
                _live(asked["start"], asked["log"], asked["arguments"])
            children.add(answer)
        elif "signal" in asked and asked["signal"] in children:
            os.kill(asked["signal"], asked["sign"])
        elif "wait" in asked and asked["wait"] in children:
            answer = os.waitstatus_to_exitcode(os.waitpid(asked["wait"], 0)[1])
            children.discard(asked["wait"])
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
