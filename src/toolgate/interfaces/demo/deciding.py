"""Who answers the questions of the demo: nobody but the browser, the terminal, or the story itself."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Protocol

import orjson

from toolgate.errors import ConflictError, ToolgateError
from toolgate.interfaces.client.client import Client
from toolgate.interfaces.demo.narrator import Narrator, plain
from toolgate.interfaces.demo.story import Advice, advice
from toolgate.wire.inbox import ArtifactAnswer


class Keyboard:
    """Lines somebody types, read without holding up anything else; None when no more come."""

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._text = b""
        self._has_ended = False

    async def line(self) -> str | None:
        while b"\n" not in self._text and not self._has_ended:
            piece = await self._piece()
            self._has_ended = not piece
            self._text += piece
        line, found, self._text = self._text.partition(b"\n")
        return line.decode(errors="replace").strip() if found or line else None

    async def _piece(self) -> bytes:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        try:
            loop.add_reader(self._descriptor, _done, ready)
        except PermissionError:  # a file, which is always ready
            return os.read(self._descriptor, 4096)
        try:
            await ready
        finally:
            loop.remove_reader(self._descriptor)
        return os.read(self._descriptor, 4096)


def _done(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


class Decider(Protocol):
    """Answers questions, or leaves them to somebody else."""

    async def decide(self, artifact: ArtifactAnswer) -> None: ...

    async def wants_undo(self) -> bool:
        """Whether the run shall be undone from here; returns when that is known."""
        ...

    async def leave(self) -> None:
        """Return when everything was looked at, and the scene may go."""
        ...


class ByItself:
    """Does with every question what a careful person would do: approves, edits, rejects, and undoes the run."""

    def __init__(self, client: Client, narrator: Narrator) -> None:
        self._client = client
        self._narrator = narrator

    async def decide(self, artifact: ArtifactAnswer) -> None:
        self._narrator.question(artifact, whole=False)
        await answer(self._client, artifact, advice(artifact.card.tool_name, artifact.arguments))

    async def wants_undo(self) -> bool:
        return True

    async def leave(self) -> None:
        """It has seen enough."""


class AtTheTerminal:
    """Asks at the keyboard, one question at a time. What is typed wrong is asked again; silence is no answer."""

    def __init__(self, client: Client, narrator: Narrator, keyboard: Keyboard) -> None:
        self._client = client
        self._narrator = narrator
        self._keyboard = keyboard
        self._turn = asyncio.Lock()

    async def decide(self, artifact: ArtifactAnswer) -> None:
        async with self._turn:
            full = await self._client.approvals.artifact(artifact.card.approval_id, full=True)
            self._narrator.question(full, whole=True)
            advised = advice(full.card.tool_name, full.arguments)
            while True:
                try:
                    await answer(self._client, full, await self._ask(advised))
                except ConflictError:  # somebody was quicker, in a browser
                    return
                except ToolgateError as error:
                    self._narrator.note("not so", plain(str(error)))
                else:
                    return

    async def _ask(self, advised: Advice) -> Advice:
        while True:
            _prompt(f"[a]pprove, [e]dit, [r]eject? (we would {advised.answer}: {advised.reason}) ")
            word = (await self._must()).lower()[:1]
            if word == "a":
                return Advice(answer="approve", reason=await self._reason())
            if word == "r":
                return Advice(answer="reject", reason=await self._reason())
            if word == "e" and (arguments := await self._arguments(advised)) is not None:
                return Advice(answer="edit", reason=await self._reason(), arguments=arguments)

    async def _arguments(self, advised: Advice) -> dict[str, object] | None:
        offered = "" if advised.arguments is None else ", or nothing for those we advise"
        _prompt(f"The new arguments as JSON{offered}: ")
        text = await self._must()
        if not text and advised.arguments is not None:
            return dict(advised.arguments)
        try:
            found = orjson.loads(text)
        except orjson.JSONDecodeError:
            found = None
        if not isinstance(found, dict):
            self._narrator.note("not so", "That is not a JSON object.")
            return None
        return found

    async def _reason(self) -> str:
        _prompt("Why? ")
        return await self._must() or "no reason given"

    async def _must(self) -> str:
        line = await self._keyboard.line()
        if line is None:
            raise EOFError
        return line

    async def wants_undo(self) -> bool:
        _prompt("Undo all of it? [Y/n] ")
        return not (await self._must()).lower().startswith("n")

    async def leave(self) -> None:
        """Everything was told on the way."""


class InTheBrowser:
    """Leaves every answer to the console."""

    def __init__(self, narrator: Narrator, keyboard: Keyboard) -> None:
        self._narrator = narrator
        self._keyboard = keyboard

    async def decide(self, artifact: ArtifactAnswer) -> None:
        self._narrator.question(artifact, whole=False)
        advised = advice(artifact.card.tool_name, artifact.arguments)
        self._narrator.note("advice", f"{advised.answer}: {advised.reason}")

    async def wants_undo(self) -> bool:
        _prompt("Look at the run in the console. Undo it there, or press Enter and it is undone from here. ")
        await self._keyboard.line()
        return True

    async def leave(self) -> None:
        _prompt("Look around in the console: Activity, Runs, Audit. Enter ends the demo. ")
        await self._keyboard.line()


async def answer(client: Client, artifact: ArtifactAnswer, given: Advice) -> None:
    """Give an answer to exactly what was shown."""
    id, digest = artifact.card.approval_id, artifact.card.digest
    if given.answer == "approve":
        await client.approvals.approve(id, given.reason, digest=digest)
    elif given.answer == "reject":
        await client.approvals.reject(id, given.reason, digest=digest)
    else:
        await client.approvals.edit(id, given.arguments or {}, given.reason, digest=digest)


def _prompt(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
