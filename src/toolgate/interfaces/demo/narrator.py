"""Tells the story of the demo in the terminal: chapters, what happens in them, and questions; or as lines of JSON."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Protocol, TextIO

import orjson

from toolgate.interfaces.demo.checking import Failure
from toolgate.kernel.text.rendering import reveal
from toolgate.wire.inbox import ArtifactAnswer

CHAPTERS = 7
MARKS = {
    "completed": ("✓", "green"), "denied": ("✗", "red"), "rejected": ("✗", "yellow"), "failed": ("✗", "red"),
    "unknown": ("?", "yellow"),
}  # fmt: skip
ANSWERS = {"approved": "green", "edited": "yellow", "rejected": "red"}


class Narrator(Protocol):
    """Who is told what happens."""

    def chapter(self, number: int, title: str) -> None: ...

    def note(self, what: str, text: str) -> None:
        """Something worth knowing."""
        ...

    def asked(self, lines: Sequence[str]) -> None:
        """What the person asked the agent for."""
        ...

    def call(self, tool: str, about: str, status: str, outcome: str) -> None:
        """How a call of the agent ended."""
        ...

    def question(self, artifact: ArtifactAnswer, *, whole: bool) -> None:
        """A call waits for a person; `whole` shows everything one must see."""
        ...

    def answer(self, what: str, answer: str, by: str, reason: str) -> None: ...

    def step(self, what: str, step: str, reason: str) -> None:
        """What became of one call when its run was undone."""
        ...

    def end(self, text: str, *, failed: Sequence[Failure], **data: Any) -> None:
        """It is over; `failed` are the steps that did not end as they should."""
        ...


class Terminal:
    """Coloured lines where the terminal has colours, plain ones elsewhere."""

    def __init__(self, out: TextIO | None = None) -> None:
        from rich.console import Console

        self._console = Console(file=out or sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=True)

    def _line(self, text: str = "", style: str | None = None) -> None:
        self._console.print(text, style=style)

    def chapter(self, number: int, title: str) -> None:
        self._line()
        self._line(f"[{number}/{CHAPTERS}] {title}", "bold")

    def note(self, what: str, text: str) -> None:
        self._line(f"      {what + ':':11} {text}" if what else f"      {text}")

    def asked(self, lines: Sequence[str]) -> None:
        for line in lines:
            self._line(f"  you > {line if len(line) <= 100 else line[:100] + ' ...'}", "cyan")

    def call(self, tool: str, about: str, status: str, outcome: str) -> None:
        mark, style = MARKS.get(status, ("·", "yellow"))
        self._line(f"    {mark} {tool} {about}", style)
        self._line(f"      {outcome}")

    def question(self, artifact: ArtifactAnswer, *, whole: bool) -> None:
        card = artifact.card
        self._line(f"    ? {card.tool_name} waits for you   risk {card.risk_level}", "bold yellow")
        for block in artifact.blocks if whole else [one for one in artifact.blocks if one.style == "diff"]:
            if whole:
                self._line(f"      {block.title}", "bold")
            for line in block.text.splitlines():
                self._line(f"      {line}", _style(line) if block.style == "diff" else None)

    def answer(self, what: str, answer: str, by: str, reason: str) -> None:
        self._line(f"    > {what}: {answer} by {by}" + (f". {reason}" if reason else ""), ANSWERS.get(answer))

    def step(self, what: str, step: str, reason: str) -> None:
        self._line(f"    {'✓' if step == 'undone' else '·'} {what}: {step}" + (f". {reason}" if reason else ""))

    def end(self, text: str, *, failed: Sequence[Failure], **_data: Any) -> None:
        self._line()
        self._line(text, "bold red" if failed else "bold green")
        for one in failed:
            self._line(f"    ✗ {one.step}: {one.why}", "red")


class JsonLines:
    """One JSON object for each thing that happens; the last one says whether all is `ok`, and what `failed`."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stdout

    def _say(self, event: str, **data: Any) -> None:
        self._out.write(orjson.dumps({"event": event, **data}, default=str).decode() + "\n")
        self._out.flush()

    def chapter(self, number: int, title: str) -> None:
        self._say("chapter", number=number, title=title)

    def note(self, what: str, text: str) -> None:
        self._say("note", what=what, text=text)

    def asked(self, lines: Sequence[str]) -> None:
        self._say("asked", lines=list(lines))

    def call(self, tool: str, about: str, status: str, outcome: str) -> None:
        self._say("call", tool=tool, about=about, status=status, outcome=outcome)

    def question(self, artifact: ArtifactAnswer, *, whole: bool) -> None:
        self._say("question", **artifact.model_dump(mode="json", include={"card"}), arguments=artifact.arguments)

    def answer(self, what: str, answer: str, by: str, reason: str) -> None:
        self._say("answer", what=what, answer=answer, by=by, reason=reason)

    def step(self, what: str, step: str, reason: str) -> None:
        self._say("undo", what=what, step=step, reason=reason)

    def end(self, text: str, *, failed: Sequence[Failure], **data: Any) -> None:
        told = [{"step": one.step, "why": one.why} for one in failed]
        self._say("end", ok=not failed, text=text, failed=told, **data)


def plain(text: str) -> str:
    """One line of text from elsewhere, which cannot steer a terminal."""
    return " ".join(reveal(text).text.split())


def _style(line: str) -> str | None:
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
