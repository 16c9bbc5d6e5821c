"""Which files a call goes through: what the architecture page tells is compared with it.

A walk begins where a named function is entered. What that function awaits, and the tasks and threads it starts, belong
to it; timers and whoever else shares the loop do not. So a walk is the same however the machine schedules it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from inspect import CO_GENERATOR
from pathlib import Path
from types import FrameType
from typing import Any

SOURCES = f"{Path(__file__).resolve().parents[2] / 'src' / 'toolgate'}/"
ASIDE = {
    "pipeline/time/clockwork.py:_ring": "a deadline",
    "pipeline/remote/orders.py:_renewed": "a lease",
    "interfaces/runner/executor.py:_beat": "a lease",
    "gate/parked.py:_look_after": "a timer",
}
"""What time sets off although a call wound the clock: walks of their own."""
BACKGROUND = "pipeline/background.py"
"""Whether its thread must be woken depends on what it does already: it is part of no walk."""
JUDGES = "pipeline/plan.py:judge"
READS = frozenset({"call", "calls", "approvals", "question", "head", "undo", "grants", "events", "due", "orphans"})


@dataclass
class Walk:
    """The files entered, in the order of their first time, how often the file changed, and what was done on the way."""

    files: dict[str, None] = field(default_factory=dict)
    functions: dict[str, None] = field(default_factory=dict)
    changes: int = 0
    judgements: int = 0
    commits: int = 0
    reads: int = 0
    last: str = ""

    def below(self, *folders: str) -> list[str]:
        """The files in these folders."""
        return [file for file in self.files if file.startswith(folders)]

    def enter(self, file: str, function: str, *, is_first: bool) -> None:
        self.changes += file != self.last
        self.last = file
        if not is_first:
            return
        where = f"{file}:{function}"
        self.files.setdefault(file)
        self.functions.setdefault(where)
        self.judgements += where == JUDGES
        if file.startswith("adapters/") and file.endswith("/store.py"):
            self.commits += function == "commit"
            self.reads += function in READS

    def __add__(self, other: Walk) -> Walk:
        """Both as one: every file once, everything else added up."""
        return Walk(
            files=self.files | other.files,
            functions=self.functions | other.functions,
            changes=self.changes + other.changes,
            judgements=self.judgements + other.judgements,
            commits=self.commits + other.commits,
            reads=self.reads + other.reads,
        )

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


_walk: ContextVar[Walk | None] = ContextVar("walk", default=None)


class Trace:
    """The walks that begin at these functions, by who goes them, in the order they began."""

    def __init__(self, starts: Mapping[str, str]) -> None:
        self._starts = {**starts, **ASIDE}
        self.walks: dict[str, list[Walk]] = {who: [] for who in self._starts.values()}
        self._own: dict[FrameType, Walk] = {}
        self._before: dict[FrameType, Walk | None] = {}

    def last(self, who: str, through: str = "") -> Walk:
        """The latest walk of somebody, of those that went through a function."""
        return next(walk for walk in reversed(self.walks[who]) if not through or through in walk.functions)

    def hear(self, frame: FrameType, event: str, _argument: Any) -> None:
        """What `sys.setprofile` calls; a coroutine is entered and left each time it waits."""
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(SOURCES):
            return
        if code.co_flags & CO_GENERATOR:  # Python 3.11 tells of one when it is made, later ones when it begins
            return
        file = code.co_filename[len(SOURCES) :]
        who = self._starts.get(f"{file}:{code.co_name}")
        if who is not None and event == "return":
            _walk.set(self._before.pop(frame, None))
        if event == "return":
            return
        if who is not None:
            self._before[frame] = _walk.get()
            _walk.set(self._begun(frame, who))
        walk = _walk.get()
        if walk is not None and file != BACKGROUND and code.co_name != "<module>":
            walk.enter(file, code.co_name, is_first=_is_first(frame))

    def _begun(self, frame: FrameType, who: str) -> Walk:
        walk = self._own.get(frame)
        if walk is None:
            walk = self._own[frame] = Walk()
            self.walks[who].append(walk)
        return walk

    def close(self) -> None:
        self._own.clear()  # frames hold what was theirs
        self._before.clear()


def _is_first(frame: FrameType) -> bool:
    """Whether a function begins and does not go on after a wait."""
    at = frame.f_lasti
    return at < 0 or frame.f_code.co_code[at + 1] & 3 == 0  # the argument of RESUME: 0 is the beginning


@contextmanager
def tracing(starts: Mapping[str, str]) -> Iterator[Trace]:
    """Note the walks that begin on this thread and on those it starts."""
    trace = Trace(starts)
    threading.setprofile(trace.hear)
    sys.setprofile(trace.hear)
    try:
        yield trace
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        trace.close()
