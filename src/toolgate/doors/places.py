"""Where a module of the documents works: a project nobody shares, on a gate that may have to be closed anywhere."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from uuid import uuid4

from toolgate.gate import Gate
from toolgate.kernel.context import PRIVATE


def private_project() -> str:
    """Return the name of a project that nobody shares: its tools, ids, rates and events are its owner's alone."""
    return f"{PRIVATE}{uuid4()}"


def close_anywhere(gate: Gate) -> None:
    """Close a gate, from plain code or inside a coroutine, where it closes on a thread of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        gate.close()
    else:  # closing waits, and a coroutine must not
        threading.Thread(target=_close, args=(gate,), name="toolgate-closing", daemon=True).start()


def _close(gate: Gate) -> None:
    """Close a gate on a thread of its own; a program that ends meanwhile ends what is in memory with it."""
    with contextlib.suppress(RuntimeError):  # no thread or future can be had any more
        gate.close()
