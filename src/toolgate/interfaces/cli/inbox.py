"""`toolgate inbox`: the questions that wait, live, answered with single keys.

This file owns what is shown and what a key does; `inbox_screen` owns the terminal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING

from toolgate.errors import UsageError
from toolgate.interfaces.cli.backend import backend_on
from toolgate.interfaces.cli.session import By, Database, Json, Project, Role
from toolgate.interfaces.cli.show import as_json, cut, printable, question_json
from toolgate.kernel.text.lazy_pattern import lazy_pattern
from toolgate.kernel.text.rendering import reveal

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from toolgate.interfaces.cli.backend import Backend
    from toolgate.kernel.approval import Approval

LIST_KEYS = "up/down move   enter open   q quit"
LOOK_KEYS = "a approve  d deny  e edit  r respond  c comment  + extend  x expand  esc back"
MARGIN = "\x1b[2m  | \x1b[0m"


def inbox(database: Database, by: By = None, role: Role = None, project: Project = None, json: Json = False) -> None:
    """Answer waiting approvals in a live list.

    With --json, print them once.
    """
    with backend_on(database, project=project, by=by, roles=role) as backend:
        if json:
            waiting = [question_json(approval) for approval in backend.pending()]
            as_json({"pending": waiting})
            return
        import sys

        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise UsageError("The inbox needs a terminal; use --json to list what waits.")
        from toolgate.interfaces.cli.inbox_screen import run

        run(backend)


class Choice(StrEnum):
    """What the person wants done; the screen asks for words where they are needed."""

    QUIT = "quit"
    APPROVE = "approve"
    DENY = "deny"
    EDIT = "edit"
    RESPOND = "respond"
    COMMENT = "comment"
    EXTEND = "extend"


_CHOICES = {
    "a": Choice.APPROVE,
    "d": Choice.DENY,
    "e": Choice.EDIT,
    "r": Choice.RESPOND,
    "c": Choice.COMMENT,
    "+": Choice.EXTEND,
}


@dataclass(slots=True)
class Inbox:
    """What is on the screen: the list of questions, or one of them."""

    waiting: list[Approval] = field(default_factory=list)
    place: int = 0
    looking: Approval | None = None
    expanded: bool = False
    scroll: int = 0
    note: str = ""
    _drawn: tuple[object, list[str]] = (None, [])

    def refresh(self, waiting: list[Approval]) -> None:
        """Take the questions that wait now; the chosen one stays chosen, and one that was answered is left."""
        chosen = self.waiting[self.place].id if self.waiting else None
        self.waiting = waiting
        ids = [approval.id for approval in waiting]
        self.place = ids.index(chosen) if chosen in ids else min(self.place, max(0, len(ids) - 1))
        if self.looking is not None:
            if self.looking.id not in ids:
                self.note = "Somebody answered it, or it expired."
                self._back()
            else:
                self.looking = waiting[ids.index(self.looking.id)]

    def press(self, key: str) -> Choice | None:
        """Do what a key means here; return what the person wants done to the question."""
        self.note = ""
        return self._press_list(key) if self.looking is None else self._press_look(key)

    def _press_list(self, key: str) -> Choice | None:
        if key == "q":
            return Choice.QUIT
        if key in ("up", "k"):
            self.place = max(0, self.place - 1)
        elif key in ("down", "j"):
            self.place = min(max(0, len(self.waiting) - 1), self.place + 1)
        elif key in ("enter", "right") and self.waiting:
            self.looking, self.expanded, self.scroll = self.waiting[self.place], False, 0
        elif key in _CHOICES and self.waiting:
            self.note = "Open it first: press enter."
        return None

    def _press_look(self, key: str) -> Choice | None:
        if key in ("esc", "left", "q"):
            self._back()
        elif key == "x":
            self.expanded, self.scroll = True, 0
        elif key in ("up", "k"):
            self.scroll = max(0, self.scroll - 1)
        elif key in ("down", "j"):
            self.scroll += 1
        elif key in ("pagedown", " "):
            self.scroll += 10
        elif key == "pageup":
            self.scroll = max(0, self.scroll - 10)
        else:
            return self._chosen(_CHOICES.get(key))
        return None

    def _chosen(self, choice: Choice | None) -> Choice | None:
        if choice in (Choice.APPROVE, Choice.EDIT) and not self.expanded and self._must_expand():
            self.note = "Part of it is hidden. Press x to see all of it first."
            return None
        return choice

    def _must_expand(self) -> bool:
        from toolgate.kernel.artifact import artifact_of

        assert self.looking is not None
        return artifact_of(self.looking).must_expand

    def tell(self, note: str, *, leave: bool) -> None:
        """Say what became of an answer, and leave the question if it was answered."""
        if leave:
            self._back()
        self.note = note

    def _back(self) -> None:
        self.looking, self.expanded, self.scroll = None, False, 0

    def lines(self, *, width: int, height: int, now: datetime | None = None) -> list[str]:
        """Return what the screen shows, each line at most as wide as it is."""
        now = now or datetime.now(UTC)
        body = self._list(now, width, height - 4) if self.looking is None else self._look(width, height - 3)
        keys = LIST_KEYS if self.looking is None else LOOK_KEYS
        room = body[: height - 2] + [""] * (height - 2 - len(body))
        note = f"\x1b[33m{self.note[:width]}\x1b[0m" if self.note else ""
        return [*room, note, f"\x1b[7m{f' {keys} '[:width]}\x1b[0m"]

    def _list(self, now: datetime, width: int, height: int) -> list[str]:
        if not self.waiting:
            return ["\x1b[1mInbox\x1b[0m", "", "  Nothing waits for you."]
        lines = [f"\x1b[1mInbox: {len(self.waiting)} waiting\x1b[0m", ""]
        first = max(0, min(self.place - height // 2, len(self.waiting) - height))  # the chosen one is always in sight
        for number, approval in list(enumerate(self.waiting))[first : first + max(1, height)]:
            mark = "\x1b[7m>\x1b[0m" if number == self.place else " "
            line = f"{_left(approval, now):>7}  {approval.risk:<6}  {_one_line(approval)}"
            lines.append(f"{mark} {cut(line, width - 2)}")
        return lines

    def _look(self, width: int, height: int) -> list[str]:
        from toolgate.kernel.artifact import artifact_of
        from toolgate.kernel.surfaces import to_terminal

        assert self.looking is not None
        what = (self.looking.id, self.looking.votes, self.looking.comments, self.looking.expires_at)
        if self._drawn[0] != (what, self.expanded, width):  # a screen is drawn again at every key
            text = to_terminal(artifact_of(self.looking), full=self.expanded)
            self._drawn = ((what, self.expanded, width), wrap(text, width))
        drawn = self._drawn[1]
        self.scroll = min(self.scroll, max(0, len(drawn) - height))
        rest = len(drawn) - self.scroll - height
        shown = drawn[self.scroll : self.scroll + height]
        return [*shown, f"\x1b[2m... {rest} more lines below\x1b[0m"] if rest > 0 else shown


def _one_line(approval: Approval) -> str:
    from toolgate.kernel.artifact import summary_of

    asked = reveal(approval.user or approval.requester).text
    return printable(f"{summary_of(approval.tool_name, approval.arguments, width=60)}  for {asked}")


def _left(approval: Approval, now: datetime) -> str:
    seconds = max(0, int((approval.expires_at - now).total_seconds()))
    if seconds >= 3600:
        return f"{seconds // 3600}h{seconds % 3600 // 60:02}m"
    return f"{seconds // 60}m{seconds % 60:02}s"


def wrap(text: str, width: int) -> list[str]:
    """Break drawn lines at the width of the screen, counting what letters really take.

    What others wrote keeps its margin on every line, so that no line of theirs looks like one of ours.
    """
    lines: list[str] = []
    for line in text.split("\n"):
        margin = MARGIN if line.startswith(MARGIN) else ""
        room = max(8, width - 4 if margin else width)
        rest = line.removeprefix(margin)
        narrow = _NARROW.fullmatch(rest)
        if narrow is None:
            lines += [f"{margin}{part}" for part in _folded(rest, room)]
        elif len(narrow[2]) <= room:
            lines.append(line)
        else:
            lines += [f"{margin}{narrow[1]}{part}{narrow[3]}" for part in _pieces(room).findall(narrow[2])]
    return lines


_NARROW = lazy_pattern(r"((?:\x1b\[\d+m)*)([ -~\u00a1-\u00ac\u00ae-\u02ff\u0370-\u0482\u048a-\u052f]*)((?:\x1b\[0m)?)")
"""A line in one colour of letters that take one column each."""


@lru_cache(maxsize=4)
def _pieces(room: int) -> re.Pattern[str]:
    """Lines of so many columns: they end after a space where there is one, and leave nothing out."""
    return re.compile(f".{{1,{room}}}(?:(?<= )|$)|.{{1,{room}}}")


def _folded(line: str, room: int) -> list[str]:
    """Break one line, with its colours, as a terminal of that width would show it."""
    console = _console(room)
    with console.capture() as captured:
        console.print(_ansi(line))
    return captured.get().removesuffix("\n").split("\n")


@lru_cache(maxsize=4)
def _console(width: int) -> Console:
    from io import StringIO

    from rich.console import Console

    return Console(file=StringIO(), force_terminal=True, color_system="standard", width=width, legacy_windows=False)


def _ansi(line: str) -> Text:
    from rich.text import Text

    return Text.from_ansi(line, overflow="fold")


def answer(backend: Backend, choice: Choice, approval: Approval, *, words: str, reason: str | None = None) -> str:
    """Do what the person wants and return what to tell them."""
    from toolgate.ports.channel import Decision

    if choice is Choice.EXTEND:
        backend.extend(approval, 600)
        return "It expires ten minutes from now."
    if choice is Choice.COMMENT:
        backend.comment(approval, words)
        return "Comment added."
    seen = approval.digest
    if choice is Choice.RESPOND:
        return f"The call is {backend.respond(approval, words, digest=seen).status}."
    if choice is Choice.EDIT:
        return f"The call is {backend.edit(approval, words, reason=reason, digest=seen).status}."
    decision = Decision.APPROVE if choice is Choice.APPROVE else Decision.DENY
    return f"The call is {backend.decide(approval, decision, reason=words or None, digest=seen).status}."
