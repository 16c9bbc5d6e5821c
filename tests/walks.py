"""Which files a call goes through, in this process: what the architecture page tells is compared with it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

SOURCES = Path(__file__).resolve().parent.parent / "src" / "toolgate"


class Walk:
    """The files entered, in the order of their first time, and how often the file changed."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}
        self.changes = 0
        self._last = ""

    def enter(self, frame: FrameType, event: str, _argument: Any) -> None:
        name = frame.f_code.co_filename
        if event != "call" or not name.startswith(str(SOURCES)):
            return
        file = name[len(str(SOURCES)) + 1 :]
        self.files.setdefault(file)
        self.changes += file != self._last
        self._last = file


@contextmanager
def walking() -> Iterator[Walk]:
    """Note which files are entered, on this thread and those it starts."""
    walk = Walk()
    threading.setprofile(walk.enter)
    sys.setprofile(walk.enter)
    try:
        yield walk
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
