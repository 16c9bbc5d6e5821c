"""What processes share besides files: nothing of it goes in or out of a sandbox, and no odd socket can be made."""

from __future__ import annotations

import ctypes
import json
import os
import socket
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolgate.adapters.runners.sandbox import landlock
from toolgate.adapters.runners.sandbox.backend import NOBODY, Backend, Files, sandbox_user
from toolgate.adapters.runners.sandbox.landlock import Landlock
from toolgate.ports.confinement import Confined

LIBC = ctypes.CDLL(None, use_errno=True)
TABLES = ("shm", "msg", "sem")
REMOVE = 0

MAKE = """
import ctypes, json, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
asked = json.loads(sys.argv[1])
made = [libc.shmget(asked["key"], 4096, 0o1666), libc.msgget(asked["key"], 0o1666)]
made += [libc.semget(asked["key"], 1, 0o1666), libc.mq_open(asked["queue"].encode(), 0o102, 0o666, None)]
at = libc.shmat(asked["segment"], None, 0)
seen = None if at in (None, ctypes.c_void_p(-1).value) else ctypes.string_at(at, 6).decode()
print(json.dumps({"made": [number >= 0 for number in made], "seen": seen}))
"""
ODD = """
import json, socket
def can(family, kind, protocol=0):
    try:
        socket.socket(family, kind, protocol).close()
    except OSError:
        return False
    return True
def can_pair(family, kind):
    try:
        [each.close() for each in socket.socketpair(family, kind)]
    except OSError:
        return False
    return True
print(json.dumps({
    "packet": can(17, 3), "vsock": can(40, 1), "crypto": can(38, 5), "tipc": can(30, 1), "tipc pair": can_pair(30, 5),
    "netlink": [number for number in range(22) if can(16, 3, number)],
    "stream pair": can_pair(1, 1), "datagram pair": can_pair(1, 2), "raw pair": can_pair(1, 3),
}))
"""
SEND = """
import socket, sys
one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
one.sendto(b"escaped", sys.argv[1])
"""


def python(backend: Backend, script: str, *arguments: str, network: bool = False) -> Any:
    argv = ("/usr/bin/python3", "-I", "-c", script, *arguments)
    finished = backend.run(Confined(argv=argv, network=network, timeout_s=60))
    return json.loads(finished.stdout) if finished.stdout else finished


def keys(table: str) -> set[int]:
    lines = Path(f"/proc/sysvipc/{table}").read_text().splitlines()[1:]
    return {int(line.split()[0]) for line in lines}


@pytest.fixture
def segment() -> Iterator[int]:
    """Shared memory of this machine's that everybody may attach."""
    number = LIBC.shmget(0, 4096, 0o1666)
    LIBC.shmat.restype = ctypes.c_void_p
    at = LIBC.shmat(number, None, 0)
    ctypes.memmove(at, b"canary", 6)
    yield number
    LIBC.shmdt(ctypes.c_void_p(at))
    LIBC.shmctl(number, REMOVE, None)


def tried(backend: Backend, segment: int) -> tuple[dict[str, Any], list[str]]:
    """Return what a program made and saw, and the tables of this machine's that it is found in."""
    key = uuid.uuid4().int & 0x7FFFFFFF
    told = python(backend, MAKE, json.dumps({"key": key, "queue": f"/toolgate-{key}", "segment": segment}))
    left = [table for table in TABLES if key in keys(table)]
    if LIBC.mq_unlink(f"/toolgate-{key}".encode()) == 0:
        left.append("queue")
    return told, left


def test_shared_memory_messages_and_semaphores_are_a_runs_own(backend: Backend, segment: int) -> None:
    told, left = tried(backend, segment)
    assert (told["made"][:3], told["seen"], left) == ([True, True, True], None, [])


def test_without_namespaces_they_are_refused(files: Files, segment: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "has_namespaces", lambda _user: False)
    told, left = tried(Landlock(sandbox_user(None, None), files), segment)
    assert (told, left) == ({"made": [False] * 4, "seen": None}, [])


@pytest.mark.parametrize("network", [True, False])
def test_odd_sockets_are_refused(backend: Backend, network: bool) -> None:
    told = python(backend, ODD, network=network)
    is_own = backend.name == "bubblewrap"
    assert told.pop("netlink") == ([0] if network or is_own else [])  # the routes, of a network of its own or granted
    assert {name for name, is_made in told.items() if is_made} == (
        {"stream pair", "datagram pair", "raw pair"} if is_own else {"stream pair"}
    )


def test_a_pair_of_sockets_reaches_no_socket_of_this_machine(backend: Backend, workspace: Path) -> None:
    path = workspace / "listening"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(path))
        path.chmod(0o666)
        if os.geteuid() == 0:
            os.chown(path, NOBODY, NOBODY)
        listening.setblocking(False)
        assert python(backend, SEND, str(path)).exit_code != 0
        with pytest.raises(BlockingIOError):
            listening.recv(16)
