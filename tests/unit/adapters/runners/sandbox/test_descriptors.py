"""What a run opens it closes once: what other threads hold open meanwhile is never touched, and nothing is left."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import resource
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.unit.adapters.runners.sandbox import handlers

from toolgate.adapters.runners.sandbox.backend import Backend
from toolgate.adapters.runners.sandbox.runner import MAX_SIDE_BY_SIDE, SandboxRunner
from toolgate.guards.descriptor import Descriptor
from toolgate.ports.confinement import Confined, Finished
from toolgate.ports.runner import Job
from toolgate.testing.conformance.rows import a_call
from toolgate.testing.patience import until

SIDE_BY_SIDE = 16
ROUNDS = 3


class Neighbours:
    """Threads with nothing to do with sandboxes: each opens, writes, checks every byte and closes, again and again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._done = threading.Event()
        self.harmed: list[str] = []
        self.turns = 0

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        works: list[Callable[[], None]] = [self._file, self._socket, self._file, self._socket]
        threads = [threading.Thread(target=self._repeat, args=(work,)) for work in works]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._done.set()
            for thread in threads:
                thread.join()

    def _repeat(self, work: Callable[[], None]) -> None:
        while not self._done.is_set() and len(self.harmed) < 10:
            try:
                work()
            except (OSError, AssertionError) as error:
                self.harmed.append(f"{work.__name__}: {error!r}")
            self.turns += 1

    def _file(self) -> None:
        path, pieces = self._folder / uuid.uuid4().hex, [uuid.uuid4().hex.encode() for _ in range(20)]
        with open(path, "w+b", buffering=0) as file:
            file.writelines(pieces)
        assert path.read_bytes() == b"".join(pieces), "bytes went elsewhere"
        path.unlink()

    def _socket(self) -> None:
        here, there = socket.socketpair()
        with here, there:
            for _ in range(20):
                piece = uuid.uuid4().hex.encode()
                here.sendall(piece)
                there.settimeout(30)
                assert there.recv(64) == piece, "bytes went elsewhere"


def test_unrelated_threads_keep_their_files_and_sockets(backend: Backend, tmp_path: Path) -> None:
    neighbours = Neighbours(tmp_path)

    def call(number: int) -> None:
        given = f"call {number}".encode() * 100
        is_slow = number % 8 == 7
        script, timeout_s = ("sleep 600", 0.2) if is_slow else ("cat; echo done", 60.0)
        finished = backend.run(Confined(argv=("/bin/sh", "-c", script), stdin=given, timeout_s=timeout_s))
        assert (finished.ending, finished.stdout) == (("timeout", b"") if is_slow else ("exited", given + b"done\n"))

    with neighbours.at_work(), ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        for done in [pool.submit(call, number) for number in range(SIDE_BY_SIDE * ROUNDS)]:
            done.result()
    assert neighbours.harmed == []
    assert neighbours.turns > 0


def open_numbers() -> set[str]:
    return {number for number in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{number}")}


@contextlib.contextmanager
def room_for(descriptors: int) -> Iterator[None]:
    """Let this process open so many more and no further one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = {int(number) for number in open_numbers()}
    limit, free = 0, 0
    while free < descriptors or limit <= 2:
        free += limit not in taken
        limit += 1
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_running_out_of_descriptors_at_any_point_leaves_none_behind(backend: Backend) -> None:
    failures: list[int | None] = []
    before = open_numbers()
    confined = Confined(argv=("/bin/cat",), stdin=b"fed", timeout_s=60)
    finished = None
    while finished is None and len(failures) < 60:
        try:
            with room_for(len(failures)):
                finished = backend.run(confined)
        except OSError as error:
            failures.append(error.errno)
            assert open_numbers() <= before
    assert {*failures} == {errno.EMFILE}
    assert finished is not None
    assert finished.stdout == b"fed"
    assert open_numbers() <= before


INHERITED = """
import os, sys
def is_open(number):
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
print(sys.stdin.read(), [number for number in range(3000) if is_open(number)])
"""


def test_numbers_above_a_thousand_are_fine_and_stay_outside(backend: Backend) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    try:
        with contextlib.ExitStack() as held:
            for _ in range(1100):
                held.enter_context(Descriptor(os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)))
            finished = backend.run(Confined(argv=("/usr/bin/python3", "-I", "-c", INHERITED), stdin=b"fed"))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert finished.stdout == b"fed [0, 1, 2]\n"


def test_a_low_hard_limit_is_passed_on(backend: Backend) -> None:
    script = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))\n"
        "from toolgate.adapters.runners.sandbox.sandbox import Sandbox\n"
        "from toolgate.ports.confinement import Confined\n"
        "sandbox = Sandbox()\n"
        f"done = sandbox.run(Confined(argv=('/bin/sh', '-c', 'ulimit -n')), backend={backend.name!r})\n"
        "print(done.stdout.decode().strip(), done.stderr.decode())\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("200", "")


class Slow:
    """A sandbox whose run ends when it is told to, and says what it sees of its own descriptor then."""

    name = "slow"

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.seen: list[str] = []

    def run(self, _confined: Confined, *, stop: int, **_options: object) -> Finished:
        self.begun.set()
        self.go_on.wait(60)
        self.seen.append(os.readlink(f"/proc/self/fd/{stop}")[:5])
        return Finished(exit_code=-1, stdout=b"", stderr=b"", ending="cancelled")

    def choose(self, _name: str) -> Slow:
        return self

    def readable(self) -> tuple[str, ...]:
        return ()

    hidden = readable


def job() -> Job:
    return Job(a_call(), handlers.add, handlers.add.function, False, None)  # type: ignore[arg-type]  # it has one


async def test_a_wait_that_is_cancelled_twice_takes_nothing_from_the_thread() -> None:
    sandbox = Slow()
    waiting = asyncio.ensure_future(SandboxRunner(sandbox).run(job()))  # type: ignore[arg-type]  # a stand-in
    await asyncio.to_thread(sandbox.begun.wait, 60)
    for _ in range(2):
        waiting.cancel()
        await asyncio.sleep(0)
    await asyncio.gather(waiting, return_exceptions=True)
    sandbox.go_on.set()
    await until(lambda: sandbox.seen == ["pipe:"])


async def test_what_nobody_waits_for_any_more_is_not_started() -> None:
    sandbox = Slow()
    runner = SandboxRunner(sandbox)  # type: ignore[arg-type]  # a stand-in
    for _ in range(MAX_SIDE_BY_SIDE):
        runner._room.acquire()
    waiting = asyncio.ensure_future(runner.run(job()))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.sleep(0)
    runner._room.release()
    await asyncio.gather(waiting, return_exceptions=True)
    assert waiting.cancelled()
    assert not sandbox.begun.is_set()


async def test_where_no_thread_can_be_started_nothing_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    before = open_numbers()
    monkeypatch.setattr(threading.Thread, "start", fail)
    with pytest.raises(RuntimeError):
        await SandboxRunner(Slow()).run(job())  # type: ignore[arg-type]  # a stand-in
    monkeypatch.undo()
    assert open_numbers() <= before  # others may close theirs meanwhile
