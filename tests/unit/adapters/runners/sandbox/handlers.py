"""Tools whose handlers run in the sandbox; a child imports them from here."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import toolgate
from toolgate.kernel.undo import UndoMetadata


@toolgate.tool(effects="read", requires_sandbox=True)
def whoami() -> dict[str, object]:
    print("printed, not returned")  # noqa: T201  # what is printed must not reach the result
    return {"uid": os.getuid(), "pid": os.getpid(), "home": os.environ["HOME"]}


@toolgate.tool(effects="read", requires_sandbox=True)
async def add(first: int, second: int = 1) -> int:
    return first + second


@toolgate.tool(effects="read", requires_sandbox=True)
def count(to: int, run: toolgate.ToolInput) -> toolgate.ToolOutput:
    for number in range(to):
        run.progress(number / to, f"at {number}")
    return toolgate.ToolOutput.ok({"to": to, "project": run.context.project}, artifacts=["made"])


@toolgate.tool(effects="irreversible", risk_level="low", requires_sandbox=True, effect_key="refund:{payment}")
def refund(payment: str, run: toolgate.ToolInput) -> str | None:
    return run.effect_key


@toolgate.tool(effects="read", requires_sandbox=True)
def fail(text: str) -> None:
    raise LookupError(text)


@toolgate.tool(effects="read", requires_sandbox=True)
def lose_the_line() -> None:
    raise ValueError("no answer") from ConnectionResetError("gone")


@toolgate.tool(effects="read", requires_sandbox=True)
def exit_at_once() -> None:
    os._exit(3)


@toolgate.tool(effects="read", requires_sandbox=True, timeout_seconds=1)
def sleep(seconds: float) -> None:
    time.sleep(seconds)


@toolgate.tool(effects="read", requires_sandbox=True)
def read(path: str) -> str:
    return Path(path).read_text()


@toolgate.tool(effects="read", requires_sandbox=True)
def connect(port: int) -> str:
    socket.create_connection(("127.0.0.1", port), 2).close()
    return "connected"


def put_back(undo: UndoMetadata) -> None:
    assert os.environ["HOME"] == "/tmp"
    assert undo.undo_data == {"was": 1}


@toolgate.tool(effects="reversible", requires_sandbox=True, undoable=True, undo_handler=put_back)
def change() -> toolgate.ToolOutput:
    return toolgate.ToolOutput.ok(undo_metadata={"was": 1})
