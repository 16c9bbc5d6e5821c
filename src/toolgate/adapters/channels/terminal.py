"""Ask at the prompt: the whole question in colour, then one key. What is hidden must be expanded before approving.

One question at a time. Where nobody sits at a terminal the question is left to others.
"""

from __future__ import annotations

import asyncio
import getpass
import sys
import threading
from collections.abc import Callable
from typing import TextIO

from toolgate.kernel.approval import Approval
from toolgate.kernel.artifact import ApprovalArtifact, artifact_of
from toolgate.kernel.context import Principal
from toolgate.kernel.surfaces import to_plain, to_terminal
from toolgate.ports.channel import Answer, Decision

PROMPT = "[a]pprove  [d]eny  [x] expand  [s]kip > "


class TerminalChannel:
    """Asks whoever sits at the terminal. `by` is who they are; `reader` and `writer` are the terminal's streams."""

    def __init__(
        self,
        *,
        by: str | Principal | None = None,
        reader: TextIO | None = None,
        writer: TextIO | None = None,
    ) -> None:
        self._by = Principal.of(by if by is not None else getpass.getuser())
        self._reader = reader
        self._writer = writer
        self._turn = threading.Lock()

    async def ask(self, approval: Approval) -> Answer | None:
        reader = self._reader or sys.stdin
        if not reader.isatty():
            return None
        answer: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()
        # A daemon thread: nobody can interrupt a read, and a program must be able to end without an answer.
        threading.Thread(
            target=self._converse, args=(approval, answer, reader), name="terminal-question", daemon=True
        ).start()
        return await answer

    def _converse(self, approval: Approval, answer: asyncio.Future[Answer | None], reader: TextIO) -> None:
        said: Answer | None = None
        with self._turn:
            if not answer.cancelled():
                said = Conversation(artifact_of(approval), self._by, reader, self._writer or sys.stdout).hold()
        loop = answer.get_loop()
        if not loop.is_closed():
            loop.call_soon_threadsafe(lambda: None if answer.done() else answer.set_result(said))


class Conversation:
    """One question put to one person until they answer, skip it, or go away."""

    def __init__(self, artifact: ApprovalArtifact, by: Principal, reader: TextIO, writer: TextIO) -> None:
        self._artifact = artifact
        self._by = by
        self._reader = reader
        self._writer = writer
        self._expanded = not artifact.must_expand

    def hold(self) -> Answer | None:
        """Return the answer; None where the question is left to others."""
        self._show(full=False)
        keys: dict[str, Callable[[], Answer | None]] = {"a": self._approve, "d": self._deny}
        while True:
            key = self._line(PROMPT)
            if key is None or key in ("s", "skip"):
                return None
            if key in ("x", "expand"):
                self._expanded = True
                self._show(full=True)
                continue
            said = keys.get(key[:1], self._unknown)()
            if said is not None:
                return said

    def _show(self, *, full: bool) -> None:
        draw = to_terminal if self._writer.isatty() else to_plain
        self._writer.write(f"\n{draw(self._artifact, full=full)}\n")

    def _line(self, prompt: str) -> str | None:
        self._writer.write(prompt)
        self._writer.flush()
        line = self._reader.readline()
        return line.strip().lower() if line else None

    def _approve(self) -> Answer | None:
        if not self._expanded:
            self._writer.write("Part of it is hidden. Press x to see all of it before you approve.\n")
            return None
        return Answer(Decision.APPROVE, self._by)

    def _deny(self) -> Answer | None:
        self._writer.write("Reason: ")
        self._writer.flush()
        reason = self._reader.readline().strip()
        if not reason and self._artifact.requires_reason:
            self._writer.write("A rejection of this tool needs a reason.\n")
            return None
        return Answer(Decision.DENY, self._by, reason or None)

    def _unknown(self) -> Answer | None:
        self._writer.write("Press a, d, x or s.\n")
        return None
