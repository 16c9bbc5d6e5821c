"""Named instants at which a process can die, put around the product from outside; nothing in it knows of them.

Only for processes that were forked to die: what is replaced here is never put back.
"""

from __future__ import annotations

import functools
import os
import signal
import sqlite3
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from toolgate.adapters import sealing
from toolgate.adapters.runners.inline import InlineRunner
from toolgate.adapters.sqlite import file as sqlite_file
from toolgate.adapters.sqlite import store as sqlite
from toolgate.adapters.sqlite.write import Writer
from toolgate.pipeline.driver import Driver
from toolgate.pipeline.people.deciding import Deciding
from toolgate.pipeline.recording import Recorder
from toolgate.pipeline.time.reconciling import Reconciling
from toolgate.pipeline.time.recovery import Recovery

IN_A_COMMIT = ("commit.asked", "commit.begun", "commit.written", "commit.done", "commit.told", "commit.announced")
AROUND_A_RUN = ("dispatch", "effect", "effect.done", "dispatch.done", "result", "result.done")
AROUND_HOOKS = ("prepare", "prepare.done", "undo", "undo.done")
AROUND_ANSWERS = ("decide", "decide.done", "acknowledge", "acknowledge.done")
IN_RECOVERY = ("recover", "recover.done", "reconcile", "reconcile.done")
AT_BIRTH = ("schema.statement", "schema.made", "schema.done", "key.written", "key.linked")
POINTS = (*IN_A_COMMIT, *AROUND_A_RUN, *AROUND_HOOKS, *AROUND_ANSWERS, *IN_RECOVERY)


class Points:
    """Counts how often each point is passed, and dies with SIGKILL at the n-th passage of one of them."""

    def __init__(self, point: str | None = None, nth: int = 1) -> None:
        assert point is None or point in (*POINTS, *AT_BIRTH), point
        self._point = point
        self._nth = nth
        self._lock = threading.Lock()
        self.passed: Counter[str] = Counter()

    def reach(self, point: str) -> None:
        with self._lock:
            self.passed[point] += 1
            if point == self._point and self.passed[point] == self._nth:
                die()


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class _Watched:
    """The writer's connection, watched at the beginning and the end of each transaction."""

    def __init__(self, connection: Any, points: Points) -> None:
        self._connection = connection
        self._points = points

    def execute(self, sql: str, *values: Any) -> Any:
        if sql == "COMMIT":
            self._points.reach("commit.written")
        done = self._connection.execute(sql, *values)
        if sql.startswith("BEGIN"):
            self._points.reach("commit.begun")
        elif sql == "COMMIT":
            self._points.reach("commit.done")
        return done

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def install(points: Points) -> None:
    """Put the points around commits, dispatches, results, decisions and recovery of this process."""
    make = Writer.__init__

    def watched(self: Writer, connection: Any, sealer: Any, watch: Any) -> None:
        make(self, _Watched(connection, points), sealer, watch)  # type: ignore[arg-type]  # stands in for it

    Writer.__init__ = watched  # type: ignore[method-assign]  # this process dies
    _before(points, Writer, "write", "commit.asked")
    _before(points, Writer, "write_alone", "commit.asked")
    _before(points, sqlite, "tell", "commit.told")
    _before(points, Driver, "_announce", "commit.announced")
    _around(points, InlineRunner, "run", "dispatch")
    _around(points, Recorder, "finish", "result")
    _around(points, Deciding, "decide", "decide")
    _around(points, Recovery, "_take_over", "recover")
    _around(points, Reconciling, "_settle", "reconcile")


def install_at_birth(points: Points) -> None:
    """Put the points around making a new file: each statement of its schema, and its key."""
    connect = sqlite_file.connect

    def traced(path: Path, *, busy_s: float) -> sqlite3.Connection:
        connection = connect(path, busy_s=busy_s)
        if path.name.endswith(".new"):
            connection.set_trace_callback(lambda _statement: points.reach("schema.statement"))
        return connection

    sqlite_file.connect = traced
    _before(points, Path, "replace", "schema.made")
    _before(points, sealing, "_create", "schema.done")
    _before(points, os, "link", "key.written")
    _before(points, Path, "unlink", "key.linked")


def _before(points: Points, owner: Any, name: str, point: str) -> None:
    inner: Callable[..., Any] = getattr(owner, name)

    @functools.wraps(inner)
    def outer(*args: Any, **options: Any) -> Any:
        points.reach(point)
        return inner(*args, **options)

    setattr(owner, name, outer)


def _around(points: Points, owner: Any, name: str, point: str) -> None:
    inner: Callable[..., Awaitable[Any]] = getattr(owner, name)

    @functools.wraps(inner)
    async def outer(*args: Any, **options: Any) -> Any:
        points.reach(point)
        value = await inner(*args, **options)
        points.reach(f"{point}.done")
        return value

    setattr(owner, name, outer)
