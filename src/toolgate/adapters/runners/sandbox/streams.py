"""Watch one confined process: feed it, keep the ends of what it writes, and stop it when its time is up."""

from __future__ import annotations

import contextlib
import os
import select
import selectors
import socket
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from toolgate.guards.descriptor import Descriptor, pipe
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


class Pipes(contextlib.ExitStack):
    """The pipes of one run, every end owned here: leaving closes what is open, whatever went wrong before."""

    def __init__(self) -> None:
        super().__init__()
        self._theirs: list[Descriptor] = []

    def to_read(self) -> tuple[Descriptor, Descriptor]:
        """Return our end and theirs of a new pipe that they write to."""
        ours, theirs = self._made()
        self._theirs.append(theirs)
        return ours, theirs

    def to_write(self) -> tuple[Descriptor, Descriptor]:
        """Return our end and theirs of a new pipe that we write to."""
        theirs, ours = self._made()
        self._theirs.append(theirs)
        return ours, theirs

    def to_talk(self) -> tuple[socket.socket, Descriptor]:
        """Return our end and theirs of a new pair of sockets; ours is the caller's to close."""
        ours, theirs = socket.socketpair()
        end = self.enter_context(Descriptor(theirs.detach()))
        self._theirs.append(end)
        return ours, end

    def _made(self) -> tuple[Descriptor, Descriptor]:
        reading, writing = pipe()
        return self.enter_context(reading), self.enter_context(writing)

    def hand_over(self) -> None:
        """The process has its ends: close them here, so that a pipe ends when the process closes it."""
        for end in self._theirs:
            end.close()


def memory_file(name: str, content: bytes) -> Descriptor:
    """Return an open file that is on no disk, at its beginning."""
    file = Descriptor(os.memfd_create(name, os.MFD_CLOEXEC))
    try:
        os.write(file.number, content)
        os.lseek(file.number, 0, os.SEEK_SET)
    except OSError:
        file.close()
        raise
    return file


def is_readable(source: Descriptor, seconds: float) -> bool:
    """Whether there is something to read, or an end, within this time; a number above 1,023 is fine."""
    ready = select.poll()
    ready.register(source.number, select.POLLIN)
    return bool(ready.poll(max(0.0, seconds) * 1000))


@dataclass
class Watch:
    """Serves the pipes of a process until both outputs end or it must be stopped. Closes stdin when all is written.

    stop: a descriptor that becomes readable when somebody wants the process to end. excess: asked now and then, and at
    the end, whether the process used too much of something. on_output: told what comes, as it comes.
    """

    stdin: Descriptor | None
    stdout: Descriptor
    stderr: Descriptor
    data: bytes
    deadline: float
    limit: int
    stop: int | None = None
    excess: Callable[[], Ending | None] | None = None
    on_output: Callable[[str, bytes], None] | None = None
    output: Kept = field(init=False)
    errors: Kept = field(init=False)

    def __post_init__(self) -> None:
        self.output, self.errors = Kept(self.limit), Kept(self.limit)

    def serve(self) -> Ending:
        """Return why it ended: by itself, or because of time, memory, the disk or a wish to stop."""
        with selectors.PollSelector() as ready:  # needs no descriptor of its own
            for end in (self.stdout, self.stderr):
                os.set_blocking(end.number, False)
                ready.register(end.number, selectors.EVENT_READ)
            if self.stdin is not None:
                os.set_blocking(self.stdin.number, False)
                ready.register(self.stdin.number, selectors.EVENT_WRITE)
            if self.stop is not None:
                ready.register(self.stop, selectors.EVENT_READ)
            return self._loop(ready)

    def _loop(self, ready: selectors.BaseSelector) -> Ending:
        outputs = {self.stdout.number: "stdout", self.stderr.number: "stderr"}
        next_look = time.monotonic() + LOOK_EVERY_S
        while outputs:
            now = time.monotonic()
            if now >= self.deadline:
                return "timeout"
            if now >= next_look:
                next_look = now + LOOK_EVERY_S
                if self.excess is not None and (ending := self.excess()) is not None:
                    return ending
            keys = [key.fd for key, _ in ready.select(min(self.deadline, next_look) - now)]
            if self.stop in keys:
                return "cancelled"
            for number in keys:
                if number not in outputs:
                    self._write(ready)
                elif not self._read(number, outputs[number]):
                    ready.unregister(number)
                    del outputs[number]
        # What has just ended may still be there to be asked.
        return "disk" if self.excess is not None and self.excess() == "disk" else "exited"

    def _read(self, number: int, stream: str) -> bool:
        try:
            data = os.read(number, CHUNK)
        except BlockingIOError:
            return True
        if data:
            (self.output if stream == "stdout" else self.errors).add(data)
            if self.on_output is not None:
                self.on_output(stream, data)
        return bool(data)

    def _write(self, ready: selectors.BaseSelector) -> None:
        assert self.stdin is not None
        try:
            written = os.write(self.stdin.number, self.data[:CHUNK])
            self.data = self.data[written:]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self.data = b""
        if not self.data:
            ready.unregister(self.stdin.number)
            self.stdin.close()

    def drain(self, seconds: float) -> None:
        """Take what is left in the pipes of a process that was stopped."""
        end = time.monotonic() + seconds
        for source, kept in ((self.stdout, self.output), (self.stderr, self.errors)):
            while time.monotonic() < end and self._read_rest(source.number, kept):
                pass

    @staticmethod
    def _read_rest(number: int, kept: Kept) -> bool:
        try:
            data = os.read(number, CHUNK)
        except BlockingIOError:
            return False
        kept.add(data)
        return bool(data)


def used_by(root: int, *, memory: int, disk: int | None) -> Ending | None:
    """Return what a process and all its descendants use too much of, as far as can be told; None for nothing.

    memory, disk: how many bytes they may use, and have written to the disk, those that ended included.
    """
    waiting, held, written = [root], 0, 0
    while waiting:
        pid = waiting.pop()
        held += _memory(pid)
        written += 0 if disk is None else _written(pid)
        waiting += children_of(pid)
    return "memory" if held > memory else "disk" if disk is not None and written > disk else None


def _written(pid: int) -> int:
    """Return how many bytes a process, and those it has seen end, changed in files on a disk."""
    found: dict[str, int] = {}
    try:
        with open(f"/proc/{pid}/io", encoding="ascii") as file:
            for line in file:
                name, _, value = line.partition(":")
                found[name] = int(value)
    except (OSError, ValueError):
        return 0
    return found.get("write_bytes", 0) - found.get("cancelled_write_bytes", 0)


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
