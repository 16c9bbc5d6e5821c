"""Connections that ask nothing: how long one may take to say what it wants, and how many may wait at once.

The web server itself waits forever for the rest of a request's head, and for a client that takes no answer. Whoever
need not sign in for that could use up the open files of the process. Bodies are timed where they are read.
"""

from __future__ import annotations

import resource
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LOOK_S = 1.0
"""How often connections are looked at."""
MOST_FILES = 65_536
MOST_HEAD = 64 * 1024
"""How many bytes the head of a request may have; the parser itself takes any number."""


class HeadLimitedProtocol(HttpToolsProtocol):
    """The web server's own protocol, for requests whose heads are not endless."""

    _head: int | None = 0
    """How much of a head has come so far; None while a body is read."""

    def data_received(self, data: bytes) -> None:
        if self._head is not None:
            if self._head > MOST_HEAD:
                self.transport.abort()
                return
            self._head += len(data)  # after the check: one read may bring a whole request, body and all
        super().data_received(data)

    def on_headers_complete(self) -> None:
        self._head = None
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._head = 0
        super().on_message_complete()


class Connections:
    """The connections of one server, which has them looked at now and then.

    A connection is idle while no request of it is under way. Of too many idle ones the oldest is closed: a client that
    means it has sent its request long before, and can connect again.
    """

    def __init__(self, *, head_s: float, slow_s: float, most_idle: int, clock: Callable[[], float] = monotonic) -> None:
        self._head_s, self._slow_s, self._most_idle, self._clock = head_s, slow_s, most_idle, clock
        self._idle: OrderedDict[Any, float | None] = OrderedDict()
        """Each with the time since which its next request has been awaited, unless the server times it itself."""
        self._stuck: dict[Any, tuple[int, float]] = {}
        self._looked_at = clock()

    def protocol(self, **given: Any) -> Any:
        """Make the protocol of a new connection, and room for it."""
        made = HeadLimitedProtocol(**given)
        self._idle[made] = self._clock()
        while len(self._idle) > self._most_idle:
            oldest, _ = self._idle.popitem(last=False)
            if _is_open(oldest) and _is_idle(oldest):
                oldest.transport.abort()
        return made

    def look(self, known: set[Any]) -> None:
        """Close what has taken too long of the server's connections; does nothing within a second of the last time."""
        now = self._clock()
        if now - self._looked_at < LOOK_S:
            return
        self._looked_at = now
        for gone in [one for one in self._idle if one.transport is not None and one not in known]:
            del self._idle[gone]  # closed, or a socket by now
        self._stuck = {one: held for one, held in self._stuck.items() if one in known}
        for one in [*known]:
            if hasattr(one, "cycle"):  # sockets have none, and are looked after by the hub
                self._look_at(one, now)

    def _look_at(self, one: Any, now: float) -> None:
        if not _is_idle(one):
            self._idle.pop(one, None)
        elif one.timeout_keep_alive_task is not None:
            self._idle[one] = None
        else:
            since = self._idle.get(one)
            self._idle[one] = since = now if since is None else since
            if now - since >= self._head_s:
                one.transport.abort()
                return
        waiting = one.transport.get_write_buffer_size()
        size, seen = self._stuck.get(one, (0, now))
        if not waiting:
            self._stuck.pop(one, None)
        elif waiting != size:
            self._stuck[one] = (waiting, now)
        elif now - seen >= self._slow_s:
            one.transport.abort()


def _is_idle(one: Any) -> bool:
    return one.cycle is None or one.cycle.response_complete


def _is_open(one: Any) -> bool:
    return one.transport is not None and not one.transport.is_closing() and one in one.connections


def allow_more_files() -> None:
    """Let this process have as many files open as the system lets it: each connection is one."""
    least, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if most == resource.RLIM_INFINITY else min(most, MOST_FILES)
    if least != resource.RLIM_INFINITY and least < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
