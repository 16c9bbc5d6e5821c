"""Errors that may be gone a moment later, and those that will not."""

from __future__ import annotations

import errno
import socket

import pytest

from toolgate.errors import ToolExecutionError
from toolgate.kernel.transient import is_transient


class Unreadable(Exception):
    @property
    def is_transient(self) -> bool:
        raise RuntimeError("not even this can be asked")


def caused(error: Exception, *causes: Exception) -> Exception:
    made = error
    for cause in causes:
        made.__cause__, made = cause, cause
    return error


class Marked(Exception):
    def __init__(self, said: object) -> None:
        self.is_transient = said


@pytest.mark.parametrize(
    "error",
    [
        ConnectionResetError("gone"),
        ConnectionRefusedError(),
        BrokenPipeError(),
        TimeoutError("slow"),
        OSError(errno.EHOSTUNREACH, "no route"),
        socket.gaierror(socket.EAI_AGAIN, "try again"),
        caused(ValueError("wrapped"), RuntimeError("twice"), ConnectionAbortedError()),
        ToolExecutionError("it broke off", cause=ConnectionResetError()),
        Marked(True),
    ],
)
def test_what_passes_is_worth_another_try(error: Exception) -> None:
    assert is_transient(error)


@pytest.mark.parametrize(
    "error",
    [
        None,
        ValueError("no"),
        FileNotFoundError(errno.ENOENT, "no such file"),
        OSError("no number"),
        socket.gaierror(socket.EAI_NONAME, "no such host"),
        ToolExecutionError("it failed"),
        caused(ValueError(), *(ValueError() for _ in range(5)), ConnectionError()),
        caused(Marked(False), ConnectionError()),
        Marked("yes"),
        Unreadable(),
        KeyboardInterrupt(),
    ],
)
def test_what_stays_is_not(error: BaseException | None) -> None:
    assert not is_transient(error)
