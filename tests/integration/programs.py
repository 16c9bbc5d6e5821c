"""Programs of their own: the command line, and gates in other processes."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from toolgate.testing.patience import PATIENCE_S

TOOLS = """
import asyncio, sys, threading
import toolgate

@toolgate.tool(risk_level="medium")
async def send(to: str) -> str:
    with open(sys.argv[1] + ".sent", "a") as file:
        file.write(to + "\\n")
    return f"sent to {to}"

@toolgate.tool
async def pay(amount: int) -> int:
    with open(sys.argv[1] + ".paid", "a") as file:
        file.write(f"{amount}\\n")
    return amount

@toolgate.tool
async def hang() -> None:
    print("running", flush=True)
    await asyncio.Event().wait()

def open_gate(**options):
    return toolgate.open(f"sqlite:///{sys.argv[1]}", tools=[send, pay, hang], **options)
"""


class Ended(NamedTuple):
    """How a program ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def cli(*arguments: object) -> Ended:
    """Run the `toolgate` command."""
    command = [sys.executable, "-m", "toolgate", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return Ended(done.returncode, done.stdout, done.stderr)


def here(*arguments: object) -> Ended:
    """Run the command in this process: as good where only its words and its exit code matter, and quicker."""
    from toolgate.interfaces.cli import main

    out, err, before = StringIO(), StringIO(), sys.argv
    sys.argv = ["toolgate", *map(str, arguments)]
    try:
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as end:
            main()
    finally:
        sys.argv = before
    code = end.value.code
    assert isinstance(code, int)
    return Ended(code, out.getvalue(), err.getvalue())


def run(program: str, *arguments: object) -> str:
    """Run a program that may use `open_gate`; return what it printed."""
    command = [sys.executable, "-W", "error", "-c", TOOLS + textwrap.dedent(program), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def running(program: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Start such a program, and kill it at the end if it still runs."""
    command = [sys.executable, "-W", "error", "-c", TOOLS + textwrap.dedent(program), *map(str, arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def line(process: subprocess.Popen[str]) -> str:
    """The next line a program prints."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def lines_of(path: Path, suffix: str) -> list[str]:
    """What the tools of a program did, as they noted it beside the database."""
    noted = Path(f"{path}{suffix}")
    return noted.read_text().split() if noted.exists() else []
