"""Try to get out: what a backend must withstand before anything is confined by it."""

from __future__ import annotations

import json
import os
import socket
import sys
import tempfile
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolgate.adapters.runners.sandbox import layout
from toolgate.adapters.runners.sandbox.backend import TEST_S, Backend, Unfinished, tried
from toolgate.errors import SandboxError
from toolgate.ports.confinement import MEBIBYTE, Confined

_ESCAPES = """
import json, os, socket, sys
asked = json.loads(sys.argv[1])
os.listdir(".")
def attempt(action):
    try:
        action()
    except Exception as error:
        return type(error).__name__
    return None
def connect(family, kind, address):
    with socket.socket(family, kind) as it:
        it.settimeout(2)
        it.connect(address)
        if kind == socket.SOCK_DGRAM:
            it.send(b"escaped")
            if asked["udp_echo"] and it.recv(16) != b"heard":
                raise OSError
def namespace():
    import ctypes
    if ctypes.CDLL(None, use_errno=True).unshare(0x10000000):
        raise OSError
def set_id():
    path = os.path.join(os.environ["TMPDIR"], "probe")
    open(path, "w").close()
    os.chmod(path, 0o4755)
print(json.dumps({
    "write_proc_sys": attempt(lambda: os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY))),
    "read_outside": attempt(lambda: open(asked["secret"]).read()),
    "write_outside": attempt(lambda: open(asked["drop"], "w").close()),
    "network": attempt(lambda: connect(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", asked["tcp"]))),
    "network_udp": attempt(lambda: connect(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", asked["udp"]))),
    "local_socket": attempt(lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, chr(0) + asked["abstract"])),
    "signal_parent": attempt(lambda: os.kill(asked["pid"], 0)),
    "new_namespace": attempt(namespace),
    "set_user_id": attempt(set_id),
    "root": "ok" if os.getuid() else None,
}))
"""
_FORK_BOMB = """
import os, sys
for count in range(20000):
    try:
        if os.fork() == 0:
            os.read(0, 1) or os._exit(0)
            import time; time.sleep(30)
    except OSError:
        print("stopped", flush=True)
        os._exit(0)
"""
_MEMORY_BOMB = """
kept = []
try:
    for _ in range(64):
        kept.append(bytearray(64 << 20))
except MemoryError:
    raise SystemExit(7)
"""
_STAY = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for stream in (0, 1, 2):
            os.close(stream)
        time.sleep(60)
    os._exit(0)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeReport:
    """How a backend did. `problem` says why it cannot be used at all; `failed` names the probes that got out."""

    backend: str
    problem: str | None = None
    passed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    is_unfinished: bool = False
    """Nothing is known: the test took too long."""

    @property
    def holds(self) -> bool:
        return self.problem is None and not self.failed

    def as_json(self) -> dict[str, Any]:
        return {
            "backend": self.backend,
            "holds": self.holds,
            "passed": list(self.passed),
            "failed": list(self.failed),
            "problem": self.problem,
        }

    @property
    def summary(self) -> str:
        if self.problem is not None:
            return self.problem
        return f"these probes got out: {', '.join(self.failed)}" if self.failed else f"{len(self.passed)} probes held"


def probe(backend: Backend, directory: str) -> ProbeReport:
    """Return how a backend did; one that is meant not to confine is only asked whether it can be used."""

    def try_all() -> dict[str, bool]:
        return _escapes(backend, directory, ()) | _bombs(backend) | {"keep_alive": _leaves_nothing(backend)}

    return _judged(backend, try_all)


def probe_in(backend: Backend, directory: str, roots: Sequence[str]) -> ProbeReport:
    """Return how a backend did with what calls will see, the workspace first: what tries to get out starts there."""
    return _judged(backend, lambda: _escapes(backend, directory, roots))


def _judged(backend: Backend, try_all: Callable[[], dict[str, bool]]) -> ProbeReport:
    try:
        problem = backend.problem()
        if problem is not None or backend.name == "none":
            return ProbeReport(backend=backend.name, problem=problem)
        results = try_all()
    except Unfinished as error:
        return ProbeReport(backend=backend.name, problem=str(error), is_unfinished=True)
    except SandboxError as error:
        return ProbeReport(backend=backend.name, problem=str(error))
    except OSError as error:  # this user cannot even start the interpreter
        return ProbeReport(backend=backend.name, problem=f"it cannot be tried ({error})")
    return ProbeReport(
        backend=backend.name,
        passed=tuple(name for name, held in results.items() if held),
        failed=tuple(name for name, held in results.items() if not held),
    )


def _python(script: str, *arguments: str, **options: Any) -> Confined:
    """Return a probe: Python source, run by the interpreter that runs what is called."""
    return Confined(
        argv=(sys.executable, "-I", "-S", "-c", script, *arguments),
        readable=(*layout.interpreter_paths(), *options.pop("roots", ())),
        timeout_s=TEST_S,
        **options,
    )


def _escapes(backend: Backend, directory: str, roots: Sequence[str]) -> dict[str, bool]:
    """Everything that one program can try, against targets that really are there."""
    with (
        tempfile.TemporaryDirectory(dir=directory) as outside,
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as local,
    ):
        os.chmod(outside, 0o777)
        secret = Path(outside) / "secret"
        secret.write_text("canary", encoding="utf-8")
        secret.chmod(0o644)
        udp.bind(("127.0.0.1", 0))
        udp.setblocking(False)
        name = f"toolgate-{uuid.uuid4().hex}"
        local.bind(f"\0{name}")
        local.listen()
        asked = {
            "secret": str(secret),
            "drop": str(Path(outside) / "dropped"),
            "tcp": tcp.getsockname()[1],
            "udp": udp.getsockname()[1],
            "udp_echo": False,
            "abstract": name,
            "pid": os.getpid(),
        }
        cwd = roots[0] if roots else "/tmp"  # the sandbox's own
        finished = tried(backend, _python(_ESCAPES, json.dumps(asked), roots=roots, cwd=cwd))
        if finished.exit_code != 0:
            said = finished.stderr.decode(errors="replace").strip()[-300:]
            raise SandboxError(f"the probes did not run: {said or finished.ending}")
        results: dict[str, bool] = {key: value is not None for key, value in json.loads(finished.stdout).items()}
        results["network_udp"] = not _heard(udp)
        return results


def _heard(udp: socket.socket) -> bool:
    """Whether anything came: a datagram inside a network of its own is sent, and never arrives."""
    try:
        return bool(udp.recv(16))
    except BlockingIOError:
        return False


def _bombs(backend: Backend) -> dict[str, bool]:
    forks = tried(backend, _python(_FORK_BOMB, processes=24))
    memory = tried(backend, _python(_MEMORY_BOMB, memory_bytes=256 * MEBIBYTE))
    return {
        "fork_bomb": b"stopped" in forks.stdout,
        "memory_bomb": memory.exit_code != 0,
    }


def _leaves_nothing(backend: Backend) -> bool:
    mark = uuid.uuid4().hex
    tried(backend, _python(_STAY, mark))
    return not any(_has_argument(pid, mark) for pid in os.listdir("/proc") if pid.isdigit())


def _has_argument(pid: str, mark: str) -> bool:
    try:
        return mark.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
