"""Watch one confined process: feed it, keep the ends of what it writes, and stop it when its time is up."""

from __future__ import annotations

import os
import selectors
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from toolgate.ports.confinement import Ending

CHUNK = 65_536
LOOK_EVERY_S = 0.25
MARKER = "\n[... {} bytes left out ...]\n"


class Kept:
    """The beginning and the end of a stream, within a limit, with a mark for what was left out between them."""

    def __init__(self, limit: int) -> None:
        self._head_room = limit - limit // 2
        self._tail_limit = limit // 2
        self._head: list[bytes] = []
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self.dropped = 0

    def add(self, data: bytes) -> None:
        if self._head_room:
            self._head.append(data[: self._head_room])
            rest = data[self._head_room :]
            self._head_room -= len(self._head[-1])
            data = rest
        if not data:
            return
        self._tail.append(data)
        self._tail_bytes += len(data)
        while self._tail_bytes > self._tail_limit:
            extra = self._tail_bytes - self._tail_limit
            first = self._tail.popleft()
            cut = min(extra, len(first))
            if cut < len(first):
                self._tail.appendleft(first[cut:])
            self._tail_bytes -= cut
            self.dropped += cut

    def value(self) -> bytes:
        middle = MARKER.format(self.dropped).encode() if self.dropped else b""
        return b"".join((*self._head, middle, *self._tail))


@dataclass
class Watch:
    """Serves the pipes of a process until both outputs end or it must be stopped.

    stop: a descriptor that becomes readable when somebody wants the process to end. too_big: asked now and then
    whether the process uses too much memory. on_output: told what comes, as it comes.
    """

    stdin: int | None
    stdout: int
    stderr: int
    data: bytes
    deadline: float
    limit: int
    stop: int | None = None
    too_big: Callable[[], bool] | None = None
    on_output: Callable[[str, bytes], None] | None = None
    kept: dict[int, Kept] = field(init=False)

    def __post_init__(self) -> None:
        self.kept = {self.stdout: Kept(self.limit), self.stderr: Kept(self.limit)}

    def serve(self) -> Ending:
        """Return why it ended: by itself, or because of time, memory or a wish to stop."""
        with selectors.DefaultSelector() as ready:
            for descriptor in (self.stdout, self.stderr):
                os.set_blocking(descriptor, False)
                ready.register(descriptor, selectors.EVENT_READ)
            if self.stdin is not None:
                os.set_blocking(self.stdin, False)
                ready.register(self.stdin, selectors.EVENT_WRITE)
            if self.stop is not None:
                ready.register(self.stop, selectors.EVENT_READ)
            return self._loop(ready)

    def _loop(self, ready: selectors.BaseSelector) -> Ending:
        open_outputs = {self.stdout, self.stderr}
        next_look = time.monotonic() + LOOK_EVERY_S
        while open_outputs:
            now = time.monotonic()
            if now >= self.deadline:
                return "timeout"
            if now >= next_look:
                next_look = now + LOOK_EVERY_S
                if self.too_big is not None and self.too_big():
                    return "memory"
            keys = [key.fd for key, _ in ready.select(min(self.deadline, next_look) - now)]
            if self.stop in keys:
                return "cancelled"
            for descriptor in keys:
                if descriptor == self.stdin:
                    self._write(ready)
                elif not self._read(descriptor):
                    ready.unregister(descriptor)
                    open_outputs.discard(descriptor)
        return "exited"

    def _read(self, descriptor: int) -> bool:
        try:
            data = os.read(descriptor, CHUNK)
        except BlockingIOError:
            return True
        if data:
            self.kept[descriptor].add(data)
            if self.on_output is not None:
                self.on_output("stdout" if descriptor == self.stdout else "stderr", data)
        return bool(data)

    def _write(self, ready: selectors.BaseSelector) -> None:
        assert self.stdin is not None
        try:
            written = os.write(self.stdin, self.data[:CHUNK])
            self.data = self.data[written:]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self.data = b""
        if not self.data:
            ready.unregister(self.stdin)
            os.close(self.stdin)
            self.stdin = None

    def drain(self, seconds: float) -> None:
        """Take what is left in the pipes of a process that was stopped."""
        end = time.monotonic() + seconds
        for descriptor in (self.stdout, self.stderr):
            while time.monotonic() < end and self._read_rest(descriptor):
                pass

    def _read_rest(self, descriptor: int) -> bool:
        try:
            data = os.read(descriptor, CHUNK)
        except (BlockingIOError, OSError):
            return False
        self.kept[descriptor].add(data)
        return bool(data)


def memory_of(roots: Iterable[int]) -> int:
    """Return the bytes of memory that processes and all their descendants use, as far as can be told."""
    waiting, total = list(roots), 0
    while waiting:
        pid = waiting.pop()
        total += _memory(pid)
        waiting += children_of(pid)
    return total


def children_of(pid: int) -> list[int]:
    """Return the processes a process started and did not lose; none where it is gone."""
    found: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return found
    for thread in threads:
        try:
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                found += [int(word) for word in file.read().split()]
        except (OSError, ValueError):
            continue
    return found


def _memory(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            for line in file:
                if line.startswith("Pss:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
    except (OSError, ValueError, IndexError):
        return 0
