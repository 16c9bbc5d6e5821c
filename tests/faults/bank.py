"""A bank outside every gate: it carries payments out, writes each into the ledger, and strikes where it is told to.

A payment is three requests on one connection: it begins, it pays, it ends. The bank strikes one of them, once: it
answers with an order to fail, says nothing more, or resets the connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import signal
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

from tests.faults.ledger import Ledger

import toolgate
from toolgate import ToolInput, ToolOutput
from toolgate.testing.patience import PATIENCE_S

HOST = "127.0.0.1"
BEGIN, PAY, END = STEPS = ("begin", "pay", "end")


@dataclass(frozen=True)
class Strike:
    """What the bank does instead of answering one request; `carried`: it has paid all the same."""

    how: str
    step: str
    carried: bool = False


class Bank:
    """Serves until its loop is stopped. The ledger is what it did; `reached` says that it has struck."""

    def __init__(self, ledger: Ledger, port: int = 0) -> None:
        self.ledger = ledger
        self.port = port
        self.strike: Strike | None = None
        self.reached = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._let_go = asyncio.Event()
        self._connections: set[asyncio.Task[None]] = set()

    def effects(self) -> int:
        """How many payments there were."""
        return len(self.ledger.lines("effect"))

    async def serve(self, ready: threading.Event, stop: asyncio.Event) -> None:
        self._loop = asyncio.get_running_loop()
        server = await asyncio.start_server(self._handle, HOST, self.port)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await stop.wait()
        server.close()
        self._let_go.set()
        await asyncio.gather(*self._connections)

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            with contextlib.suppress(OSError):
                while line := await reader.readline():
                    if not await self._answer(json.loads(line), writer):
                        break
                writer.close()
        finally:
            self._connections.discard(task)

    async def _answer(self, said: dict[str, str], writer: asyncio.StreamWriter) -> bool:
        """Do what is asked, or strike; False where the connection is over."""
        strike = self.strike if self.strike is not None and self.strike.step == said["step"] else None
        if said["step"] == PAY and (strike is None or strike.carried):
            self.ledger.add("effect", call=said["call"], tool=said["tool"])
        if strike is not None:
            self.strike = None
            self.reached.set()
        match strike:
            case None:
                writer.write(b"done\n")
            case Strike(how="hang"):
                await self._let_go.wait()
                return False
            case Strike(how="wait"):
                await self._let_go.wait()
                writer.write(b"done\n")
            case Strike(how="reset"):
                line: socket.socket = writer.get_extra_info("socket")
                line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                writer.transport.abort()
                return False
            case Strike(how=how):
                writer.write(f"{how}\n".encode())
        return True

    def hang_up(self) -> None:
        """End the connections that were left hanging, without carrying anything out; answer those that wait."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._let_go.set)


@contextmanager
def banking(ledger: Ledger, port: int = 0) -> Iterator[Bank]:
    """A bank on a thread of its own, at any port or at this one."""
    loop = asyncio.new_event_loop()
    bank, ready, stop = Bank(ledger, port), threading.Event(), asyncio.Event()

    def work() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(bank.serve(ready, stop))

    thread = threading.Thread(target=work, name="bank")
    thread.start()
    ready.wait(PATIENCE_S)
    try:
        yield bank
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(PATIENCE_S)


async def have_paid(call_id: str, tool: str, arguments: dict[str, Any]) -> dict[str, str]:
    """Have the bank carry a payment out: what runs in every placement."""
    with toolgate.nothing_sent():
        reader, writer = await asyncio.open_connection(HOST, arguments["bank"])
    try:
        for step in STEPS:
            asked = {"step": step, "call": call_id, "tool": tool}
            writer.write(json.dumps(asked).encode() + b"\n")
            _obey((await reader.readline()).decode().strip())
    finally:
        writer.close()
    return {"paid": arguments["payment"]}


async def pay(given: ToolInput) -> ToolOutput:
    return ToolOutput.ok(await have_paid(str(given.action_id), str(given.tool_name), dict(given.payload)))


def pay_in_thread(given: ToolInput) -> ToolOutput:
    return asyncio.run(pay(given))


def _obey(answer: str) -> None:
    match answer:
        case "done":
            return
        case "raise":
            raise ValueError("the bank's answer makes no sense")
        case "full":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        case "pipe":
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
        case "refuse":
            raise toolgate.NotExecuted("the bank said that it did nothing")
        case "die":
            _die()
        case _:
            raise ConnectionAbortedError("the bank hung up")


def _die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("dead")
