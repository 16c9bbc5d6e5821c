"""Commands as processes of their own, hatched by one that has imported everything: the tests are about their deaths."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from toolgate.testing.patience import PATIENCE_S

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    ["toolgate.interfaces.cli.app", "toolgate.interfaces.runner.run", "toolgate.interfaces.runner.view",
     "toolgate.interfaces.server.serve", "tests.integration.hatchery", "tests.integration.runner_tools"]
)  # fmt: skip


def _end_with_parent() -> None:
    """Leave nothing behind where the tests themselves are killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


def _live(arguments: Sequence[str], environment: Mapping[str, str], log: str) -> None:
    from toolgate.interfaces.cli import main

    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
    os.environ.update(environment)
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 1)
    sys.stdout = os.fdopen(1, "w", buffering=1, encoding="utf-8")
    sys.argv = ["toolgate", *arguments]
    main()


class Hatched:
    """One `toolgate` command that runs; what it prints is in `log`."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self.log = log
        self._process = _CONTEXT.Process(target=_live, args=(tuple(arguments), dict(environment), str(log)))
        self._process.start()

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive()

    def lines(self) -> list[str]:
        """What it printed so far, whole lines only."""
        text = self.log.read_text(encoding="utf-8") if self.log.exists() else ""
        return text[: text.rfind("\n") + 1].splitlines()

    def send(self, number: signal.Signals) -> None:
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    async def ended(self) -> int:
        """Its exit code once it is over; negative for the signal that killed it."""
        await asyncio.to_thread(self._process.join, PATIENCE_S)
        code = self._process.exitcode
        assert code is not None, f"still running: {self.lines()[-5:]}"
        self._process.close()
        return code
