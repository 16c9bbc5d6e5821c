"""Somebody who types commands, in this process or at a pseudo-terminal."""

from __future__ import annotations

import asyncio
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.integration.programs import Ended, here
from tests.unit.interfaces.server.house import House

from toolgate.testing.patience import PATIENCE_S


class Person:
    """Somebody at a terminal with a token in a file."""

    def __init__(self, house: House, name: str, folder: Path) -> None:
        self._file = folder / f"{name}.token"
        self._file.write_text(house.tokens[name] + "\n", encoding="utf-8")
        self._file.chmod(0o600)
        self._url = house.url

    async def __call__(self, *words: object) -> Ended:
        more = ("--server", self._url, "--token-file", self._file, "--project", "demo")
        return await asyncio.to_thread(here, *words, *more)

    def sits_down(self, *words: object, after: Sequence[str] = ()) -> Seat:
        """The same in a process of its own, at a terminal."""
        more = ["--server", self._url, "--token-file", str(self._file), "--project", "demo"]
        return Seat([*map(str, words), *more], after=after)


class Seat:
    """A command at a pseudo-terminal; `after` is what a shell does before it."""

    def __init__(self, words: Sequence[str], *, after: Sequence[str] = ()) -> None:
        self.hand, terminal = pty.openpty()
        command = [*after, sys.executable, "-m", "toolgate", *words]
        self.process = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, close_fds=True)
        os.close(terminal)

    async def sees(self, *words: str) -> str:
        """Wait until words are drawn, in what was not looked at yet."""
        return await asyncio.to_thread(self._sees, words)

    def _sees(self, words: tuple[str, ...]) -> str:
        until, drawn = time.monotonic() + PATIENCE_S, ""
        while not all(word in drawn for word in words):
            if time.monotonic() > until:
                self._ends()
                raise AssertionError(f"not seen: {words}; seen: {drawn[-3000:]!r}")
            if select.select([self.hand], [], [], 0.1)[0]:
                drawn += os.read(self.hand, 65536).decode(errors="replace")
        return drawn

    def types(self, keys: str) -> None:
        os.write(self.hand, keys.encode())

    async def leaves(self) -> int:
        """Wait for the command's end; return its exit code."""
        try:
            return await asyncio.to_thread(self.process.wait, PATIENCE_S)
        finally:
            self._ends()

    async def stops(self, number: signal.Signals) -> int:
        """Send a signal and wait for the command's end; return its exit code."""
        try:
            return await asyncio.to_thread(self._stops, number)
        finally:
            self._ends()

    def _stops(self, number: signal.Signals) -> int:
        until = time.monotonic() + PATIENCE_S
        while True:  # one that comes in the instant before Python waits for a line is noticed with the next
            self.process.send_signal(number)
            try:
                return self.process.wait(10)
            except subprocess.TimeoutExpired:
                if time.monotonic() > until:
                    raise

    def _ends(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.hand)
