"""The inbox's terminal: raw keys in, whole screens out, and a line of words where an answer needs them."""

from __future__ import annotations

import os
import select
import shutil
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from toolgate.errors import NotSignedInError, ServerError, ToolgateError
from toolgate.interfaces.cli.backend import Backend
from toolgate.interfaces.cli.inbox import Choice, Inbox, answer
from toolgate.interfaces.cli.people import edited
from toolgate.interfaces.cli.show import printable

LOOK_AGAIN_S = 0.5
ESCAPE_S = 0.05
"""How long the rest of a key may take that sends several characters."""
_ESCAPES = {
    b"\x1b[A": "up", b"\x1b[B": "down", b"\x1b[C": "right", b"\x1b[D": "left", b"\x1b[5~": "pageup",
    b"\x1b[6~": "pagedown", b"\x1b": "esc", b"\r": "enter", b"\n": "enter",
}  # fmt: skip
_QUESTIONS = {
    Choice.APPROVE: "Reason (may be empty): ",
    Choice.DENY: "Reason: ",
    Choice.RESPOND: "Tell the agent: ",
    Choice.COMMENT: "Comment: ",
}


def run(backend: Backend) -> None:
    """Show the inbox until the person quits."""
    state = Inbox()
    with _raw() as settings:
        while True:
            _refresh(state, backend)
            _draw(state)
            key = _key()
            choice = None if key is None else state.press(key)
            if choice is Choice.QUIT:
                return
            if choice is not None and state.looking is not None:
                with _cooked(settings):
                    _do(backend, choice, state)


def _refresh(state: Inbox, backend: Backend) -> None:
    """Look what waits. A server that is away for a while is said to be, and what was seen stays."""
    try:
        state.refresh(backend.pending())
    except ServerError as error:
        if isinstance(error, NotSignedInError):
            raise
        state.note = printable(str(error))


def _do(backend: Backend, choice: Choice, state: Inbox) -> None:
    approval = state.looking
    assert approval is not None
    try:
        words = edited(approval.arguments) if choice is Choice.EDIT else _words(choice)
        asks_why = choice is Choice.EDIT and words is not None and approval.needs_reason
        reason = _words(Choice.APPROVE) if asks_why else ""
        if words is None or reason is None:
            state.tell("Nothing was done.", leave=False)
            return
        said = answer(backend, choice, approval, words=words, reason=reason or None)
    except ToolgateError as error:
        state.tell(printable(str(error)), leave=False)
    else:
        state.tell(said, leave=choice not in (Choice.COMMENT, Choice.EXTEND))


def _words(choice: Choice) -> str | None:
    question = _QUESTIONS.get(choice)
    if question is None:
        return ""
    sys.stdout.write(f"\n{question}")
    sys.stdout.flush()
    line = sys.stdin.readline()
    return line.strip() if line else None


def _draw(state: Inbox) -> None:
    size = shutil.get_terminal_size()
    lines = state.lines(width=size.columns, height=size.lines)
    sys.stdout.write("\x1b[H\x1b[2J" + "\r\n".join(lines))
    sys.stdout.flush()


def _key() -> str | None:
    """Return the next key; None where none came in time. What was typed after it stays where it is."""
    fd = sys.stdin.fileno()
    if not select.select([fd], [], [], LOOK_AGAIN_S)[0]:
        return None
    pressed = os.read(fd, 1)
    if not pressed or pressed == b"\x03":
        return "q"
    if pressed == b"\x1b":
        pressed += _rest_of_escape(fd)
    return _ESCAPES.get(pressed) or pressed[:1].decode(errors="replace")


def _rest_of_escape(fd: int) -> bytes:
    """Read what follows an escape character that a key begins with: nothing, or `[` up to a letter or `~`."""
    rest = b""
    while select.select([fd], [], [], ESCAPE_S)[0] and (more := os.read(fd, 1)):
        rest += more
        if rest[:1] != b"[" or (len(rest) > 1 and 0x40 <= rest[-1] <= 0x7E):
            break
    return rest


@contextmanager
def _raw() -> Iterator[list[Any]]:
    fd = sys.stdin.fileno()
    settings = termios.tcgetattr(fd)
    sys.stdout.write("\x1b[?1049h\x1b[?25l")
    tty.setcbreak(fd)
    try:
        yield settings
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, settings)
        sys.stdout.write("\x1b[?25h\x1b[?1049l")
        sys.stdout.flush()


@contextmanager
def _cooked(settings: list[Any]) -> Iterator[None]:
    """Give the terminal back for a line of words or an editor."""
    fd = sys.stdin.fileno()
    termios.tcsetattr(fd, termios.TCSADRAIN, settings)
    sys.stdout.write("\x1b[?25h")
    try:
        yield
    finally:
        tty.setcbreak(fd)
        sys.stdout.write("\x1b[?25l")
