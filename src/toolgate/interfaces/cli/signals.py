"""Ctrl-C and SIGTERM end every command, whatever the process that started it ignores.

A shell starts the background jobs of a script with SIGINT ignored, and others block or ignore SIGTERM; a child inherits
that. Commands with an end of their own (`serve`, `runner`, `worker`, `demo`) put their handlers in the place of these.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def heeded() -> Iterator[None]:
    """Let SIGINT and SIGTERM end what runs inside, in good order: terminals are given back, databases closed.

    After SIGTERM the process dies of that signal, as whoever watches it expects. In a thread other than the main one,
    where no signal arrives, nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    terminated = False

    def terminate(_number: int, _frame: FrameType | None) -> None:
        nonlocal terminated
        terminated = True
        sys.exit(128 + signal.SIGTERM)

    before = {number: signal.getsignal(number) for number in ENDING}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, terminate)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if terminated:
            sys.stdout.flush()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.raise_signal(signal.SIGTERM)
