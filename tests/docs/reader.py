"""Somebody who follows a page: saves what is a file under its name, runs what is Python, types what is a command.

Nothing is added: no prelude, no names of an earlier block. How Python runs is up to the caller (in this process for a
quick look, `python FILE` in an environment of its own for the real thing). `Terminal` is a shell the reader types into.
"""

from __future__ import annotations

import fcntl
import os
import re
import runpy
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import Self

from tests.docs.pages import PRINTS, SHELLS, Block, blocks, name_of

from toolgate.testing.patience import until_sync

PATIENCE_S = 900.0
PORT = 8642  # the server's own, as the pages print it
SERVES = re.compile(r"^(?:\w+=\S* )*toolgate (serve|runner|worker)\b(.*)", re.MULTILINE)
READY = "Serving on|connected to"
_INSTALLS = re.compile(r"^pip install .*$", re.MULTILINE)


class Terminal:
    """A shell in a folder that keeps its directory and variables from one block to the next."""

    def __init__(self, folder: Path, environment: dict[str, str], log: Path) -> None:
        self.log = log
        self._read = 0
        self._ends = 0
        with log.open("wb") as output:
            self._shell = subprocess.Popen(
                ["bash", "-e"],
                cwd=folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def type(self, text: str) -> None:
        """Type something, and do not wait for what it does."""
        assert self._shell.stdin is not None
        self._read = self.log.stat().st_size
        self._shell.stdin.write(text.encode() + b"\n")
        self._shell.stdin.flush()

    def run(self, text: str) -> str:
        """Run commands and return what they printed; they must all succeed."""
        self._ends += 1
        end = f"-- end {self._ends} --"
        self.type(f"{text}\necho '{end}'")
        self.wait_for(re.escape(end))
        return self.output.partition(end)[0]

    def wait_for(self, pattern: str) -> str:
        """Return what was printed since the last command once the pattern is in it."""
        found = re.compile(pattern)
        until_sync(lambda: found.search(self.output) or self._shell.poll() is not None, within_s=PATIENCE_S)
        assert found.search(self.output), f"the terminal ended with {self._shell.returncode}:\n{self.output}"
        return self.output

    @property
    def pid(self) -> int:
        return self._shell.pid

    @property
    def output(self) -> str:
        return self.log.read_bytes()[self._read :].decode(errors="replace")

    def close(self) -> None:
        """End the shell and all that runs in it."""
        assert self._shell.stdin is not None
        self._shell.stdin.close()
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(self._shell.pid, number)
            with suppress(TimeoutError):
                until_sync(self._is_over, within_s=30)
                return

    def _is_over(self) -> bool:
        """Whether the shell and everything it started has ended."""
        self._shell.poll()
        try:
            os.killpg(self._shell.pid, 0)
        except ProcessLookupError:
            return True
        return False


class Reader:
    """Follows one page in a folder. `run_file` runs a saved Python file and returns what it printed."""

    def __init__(self, page: Path, folder: Path, environment: dict[str, str], run_file: Callable[[Path], str]) -> None:
        self.page, self.folder, self.environment = page, folder, environment
        self._run_file = run_file
        self._terminals: list[Terminal] = []
        self._typing: Terminal | None = None
        self._staying: dict[str, Terminal] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while self._terminals:
            self._terminals.pop().close()

    def follow(self, *, types: bool) -> None:
        """Follow the page; without `types`, leave its commands out."""
        said = ""
        for block in blocks(self.page):
            place = f"{name_of(self.page)}:{block.line}"
            if block.mark == PRINTS:
                assert said.strip() == block.code.strip(), place
            elif block.is_run:
                said = self._take(block, types=types, said=said)

    def _take(self, block: Block, *, types: bool, said: str) -> str:
        if block.file is not None:
            self.save(block)
        if block.language == "python" and not self._is_started_by_hand(block):
            return self._run_file(self.folder / str(block.file))
        if block.language in SHELLS and types:
            return self._type(block)
        return said

    def save(self, block: Block) -> Path:
        path = self.folder / str(block.file)
        path.write_text(block.code + "\n", encoding="utf-8")
        return path

    def terminal(self) -> Terminal:
        """Open another terminal in the folder."""
        number = len(self._terminals) + 1
        opened = Terminal(self.folder, self.environment, self.folder.parent / f"terminal-{number}.log")
        self._terminals.append(opened)
        return opened

    def _is_started_by_hand(self, block: Block) -> bool:
        typed = "\n".join(other.code for other in blocks(self.page) if other.language in SHELLS)
        return f"python {block.file}" in typed

    def _type(self, block: Block) -> str:
        text = _INSTALLS.sub("", block.code)  # the environment is there already
        found = SERVES.search(text)
        if found and not found[2].endswith("&"):
            return self._start(found[1], text)
        if self._typing is None:
            self._typing = self.terminal()
        return self._typing.run(text)

    def _start(self, program: str, text: str) -> str:
        """Start what stays, in a terminal of its own; where it runs already, it is ended first."""
        if program in self._staying:
            self._staying.pop(program).close()
        self._staying[program] = self.terminal()
        self._staying[program].type(text)
        return self._staying[program].wait_for(READY)


def run_here(path: Path) -> str:
    """Run a file in this process as `python FILE` would: a fresh `__main__`, its own folder first on the path."""
    before = set(sys.modules)
    sys.path.insert(0, str(path.parent))
    printed = StringIO()
    try:
        with redirect_stdout(printed):
            runpy.run_path(str(path), run_name="__main__")
    finally:
        sys.path.remove(str(path.parent))
        for name in set(sys.modules) - before:
            if getattr(sys.modules[name], "__file__", None) and _is_in(path.parent, str(sys.modules[name].__file__)):
                del sys.modules[name]
    return printed.getvalue()


def _is_in(folder: Path, file: str) -> bool:
    return Path(file).is_relative_to(folder)


@contextmanager
def the_port() -> Iterator[None]:
    """Have the server's usual port to oneself: pages print it, and tests run side by side."""
    with open(f"/tmp/toolgate-port-{PORT}.lock", "a") as lock:
        until_sync(lambda: _locked(lock.fileno()), within_s=PATIENCE_S)
        until_sync(_is_free, within_s=PATIENCE_S)
        yield


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_free() -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", PORT))
        except OSError:
            return False
    return True
