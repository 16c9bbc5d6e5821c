"""Confine without namespaces, where bubblewrap is missing: landlock and seccomp, under a supervisor process.

Weaker than bubblewrap: the temporary directory has no size, memory is watched and not limited, and what is
hidden in a directory keeps new files out of it. `Unconfined` is the same without any rule, for `sandbox: none`.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import replace

from toolgate.adapters.runners.sandbox import layout, seccomp
from toolgate.adapters.runners.sandbox.backend import (
    NOT_STARTED,
    STOP_GRACE_S,
    TEST_S,
    Files,
    OnOutput,
    User,
    disk_limit,
    limits_of,
    tried,
)
from toolgate.adapters.runners.sandbox.staging import Places
from toolgate.adapters.runners.sandbox.streams import Pipes, Watch, is_readable, used_by
from toolgate.adapters.runners.sandbox.supervisor import FAILED, landlock_version
from toolgate.errors import SandboxError
from toolgate.guards.descriptor import Descriptor
from toolgate.ports.confinement import Confined, Finished

OLDEST = 6
"""The first version that keeps signals to strangers in."""
_EXECUTE, _WRITE, _READ, _LIST, _TRUNCATE, _IOCTL = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14, 1 << 15
_READING = _EXECUTE | _READ | _LIST
_WRITING = ((1 << 16) - 1) & ~_IOCTL
SUPERVISORS_INSIDE = 2
"""How many processes of the supervisor's own are in the namespace that a run is counted in."""
SUPERVISOR = os.path.join(os.path.dirname(__file__), "supervisor.py")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")


def grants_of(confined: Confined, temporary: str) -> list[tuple[str, int]]:
    """Return every path the program may use with what it may do there."""
    settings = layout.SETTINGS + (layout.NETWORK_SETTINGS if confined.network else ())
    readable = (*layout.SYSTEM, *settings, *layout.runtimes_of(confined), *confined.readable)
    found = [(path, _READ | _WRITE) for path in _DEVICES]
    found += [grant for path in readable for grant in _spread(path, confined.hidden, _READING)]
    kept = (*confined.hidden, *confined.locked)
    found += [grant for path in confined.writable for grant in _spread(path, kept, _WRITING)]
    found += [grant for path in confined.locked for grant in _spread(path, confined.hidden, _READING)]
    return [*found, (temporary, _WRITING)]


def _is_in(path: str, roots: Iterable[str]) -> bool:
    return any(layout.within(path, root) for root in roots)


def _spread(path: str, hidden: Iterable[str], access: int) -> list[tuple[str, int]]:
    """Grant a tree; where something in it is hidden, grant what is beside it, piece by piece."""
    if path in hidden:
        return []
    inside = [item for item in hidden if layout.within(item, path)]
    if not inside or not os.path.isdir(path):
        return [(path, access)]
    found = [(path, _LIST)]
    with contextlib.suppress(FileNotFoundError), os.scandir(path) as entries:  # it may be gone by now
        for entry in entries:
            if not entry.is_symlink():
                found += _spread(entry.path, inside, access)
    return found


class Landlock:
    """Runs a program under a supervisor, with landlock and seccomp applied to it."""

    name = "landlock"

    def __init__(self, user: User, files: Files) -> None:
        self.user = user
        self._files = files

    def problem(self) -> str | None:
        version = landlock_version()
        if version < OLDEST:
            return f"the kernel's landlock is version {version}; {OLDEST} is the oldest that works"
        if seccomp.machine() is None:
            return "there is no seccomp table for this processor"
        finished = tried(self, Confined(argv=("/bin/true",), timeout_s=TEST_S))
        return None if finished.exit_code == 0 else f"a first run failed: {finished.stderr.decode(errors='replace')}"

    def _rules(self, confined: Confined, temporary: str) -> dict[str, object]:
        if confined.reach is not None:
            raise SandboxError(
                "A command with a network needs bubblewrap, so nothing ran: landlock cannot hold a program to the "
                "proxy that vets its connections. Install bubblewrap, or take away the command's network."
            )
        target = seccomp.machine()
        if target is None:
            raise SandboxError("There is no seccomp table for this processor.")
        program = seccomp.program(target, internet=confined.network, local=False, shared=self._is_apart())
        writable = [path for path in confined.writable if not _is_in(path, {*confined.writable} - {path})]
        kept = [path for path in (*confined.hidden, *confined.locked) if _is_in(path, writable)]
        rules = {"writable": [*writable, temporary], "kept": sorted(kept, key=len)}
        return rules | {"grants": grants_of(confined, temporary), "seccomp": program.hex()}

    def run(self, confined: Confined, *, stop: int | None = None, on_output: OnOutput | None = None) -> Finished:
        """Run a program to its end or its deadline; SandboxError where the sandbox could not be made."""
        began = time.monotonic()
        temporary = tempfile.mkdtemp(dir=self._files.path)
        try:
            if os.geteuid() == 0:
                os.chown(temporary, *self.user)
            with Pipes() as pipes:
                return self._run(confined, temporary, pipes, began, stop, on_output)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def _run(
        self,
        confined: Confined,
        temporary: str,
        pipes: Pipes,
        began: float,
        stop: int | None,
        on_output: OnOutput | None,
    ) -> Finished:
        leash, control = pipes.to_write()
        status, told = pipes.to_read()
        output, stdout = pipes.to_read()
        errors, stderr = pipes.to_read()
        feed, stdin = pipes.to_write() if confined.stdin else (None, None)
        request = self._request(confined, temporary) | {"control": control.number, "status": told.number}
        places = self._places(confined, temporary)
        asked = pipes.enter_context(_file(json.dumps(request)))
        process = subprocess.Popen(
            places.command([sys.executable, "-I", "-S", SUPERVISOR, str(asked.number)]),
            env={},
            cwd="/",
            stdin=subprocess.DEVNULL if stdin is None else stdin.number,
            stdout=stdout.number,
            stderr=stderr.number,
            pass_fds=(control.number, told.number, asked.number),
        )
        watch = Watch(
            stdin=feed,
            stdout=output,
            stderr=errors,
            data=confined.stdin,
            deadline=began + confined.timeout_s,
            limit=confined.output_bytes,
            stop=stop,
            excess=lambda: used_by(process.pid, memory=confined.memory_bytes, disk=disk_limit(confined)),
            on_output=on_output,
        )
        with process:
            try:
                pipes.hand_over()
                ending = watch.serve()
                code = self._code(watch, status, places) if ending == "exited" else None
            finally:
                _let_go(leash)
                process.wait()
            if ending != "exited":
                watch.drain(STOP_GRACE_S)
            return Finished(
                exit_code=-1 if code is None else code,
                stdout=watch.output.value(),
                stderr=watch.errors.value(),
                ending="timeout" if ending == "exited" and code is None else ending,
                duration_s=time.monotonic() - began,
                backend=self.name,
            )

    def _request(self, confined: Confined, temporary: str) -> dict[str, object]:
        """Return what the supervisor is told, but for its pipes."""
        own = {"HOME": temporary, "TMPDIR": temporary, "LANG": "C.UTF-8", "TERM": "dumb"}
        return {
            "argv": confined.argv,
            "cwd": temporary if confined.cwd == "/tmp" else confined.cwd,
            "environment": own | layout.environment_of(confined),
            "network": confined.network,
            "limits": limits_of(replace(confined, processes=self._process_limit(confined))),
            "apart": self._is_apart(),
            "user": self.user if os.geteuid() == 0 else None,
            **self._rules(confined, temporary),
        }

    def _places(self, confined: Confined, temporary: str) -> Places:
        """Return what must be mounted for the program, and the supervisor, to use what they need; for root alone."""
        if os.geteuid() != 0:
            return Places(self.user)
        readable = (*layout.runtimes_of(confined), *confined.readable)
        wanted = dict.fromkeys(readable, False) | dict.fromkeys((*confined.writable, temporary), True)
        found = Places.of(wanted, self.user)
        if found.covers:  # what the supervisor is may be beneath them
            everything = dict.fromkeys((*layout.interpreter_paths(), SUPERVISOR), False) | wanted
            return replace(Places.of(everything, self.user), blocked=found.blocked)
        return found

    def _is_apart(self) -> bool:
        return has_namespaces(self.user)

    def _process_limit(self, confined: Confined) -> int:
        """Without a user namespace the limit counts everything of the user's: leave room for what there is."""
        if self._is_apart():
            return confined.processes + SUPERVISORS_INSIDE
        own = sum(_threads(pid, self.user.uid) for pid in os.listdir("/proc") if pid.isdigit())
        return confined.processes + own

    @staticmethod
    def _code(watch: Watch, status: Descriptor, places: Places) -> int | None:
        """Return the exit code the supervisor tells; None where the deadline comes first."""
        if not is_readable(status, watch.deadline - time.monotonic()):
            return None
        told = os.read(status.number, 4096).decode(errors="replace")
        if told.startswith(FAILED):
            why = told.removeprefix(FAILED).splitlines()[0]
            raise SandboxError(f"The sandbox could not be set up, so nothing ran: {why}. {NOT_STARTED}")
        if not told:
            said = watch.errors.value().decode(errors="replace").strip()[-300:]
            if places.problem is not None:
                raise SandboxError(
                    f"The sandbox could not be set up: {places.problem}, and it could not be put within reach "
                    f"({said}). Move it to where that user can read it, or let this process "
                    "make mounts (CAP_SYS_ADMIN)."
                )
            why = f"its supervisor ended early ({said or 'it was killed'})"
            raise SandboxError(f"The sandbox failed: {why}.", may_have_run=True)
        return int(told)


class Unconfined(Landlock):
    """The same supervisor without rules: deadline, limits, cleared environment, and nothing left alive.

    In no user namespace: files of others would look like nobody's, which programs such as ssh refuse.
    """

    name = "none"

    def problem(self) -> str | None:
        return None

    def _rules(self, confined: Confined, temporary: str) -> dict[str, object]:
        return {"grants": None, "seccomp": None}

    def _is_apart(self) -> bool:
        return False


@functools.cache
def has_namespaces(user: User) -> bool:
    """Whether a run can have namespaces of its own, where its processes are counted and end together; tried once."""
    request = {"trial": True, "user": user if os.geteuid() == 0 else None}
    line = [sys.executable, "-I", "-S", SUPERVISOR, "0"]
    asked = json.dumps(request).encode()
    return subprocess.run(line, env={}, cwd="/", input=asked, capture_output=True, check=False).returncode == 0


def _file(text: str) -> Descriptor:
    """Return a text, open to be read: an argument of a program cannot be as long."""
    file = Descriptor(os.memfd_create("toolgate-request", os.MFD_CLOEXEC))
    try:
        with open(file.number, "w", encoding="utf-8", closefd=False) as out:
            out.write(text)
        os.lseek(file.number, 0, os.SEEK_SET)
    except OSError:
        file.close()
        raise
    return file


def _threads(pid: str, uid: int) -> int:
    """Return how many threads a process of this user has; none of anybody else's count."""
    try:
        is_own = os.stat(f"/proc/{pid}").st_uid == uid
        return len(os.listdir(f"/proc/{pid}/task")) if is_own else 0
    except OSError:
        return 0


def _let_go(leash: Descriptor) -> None:
    """Make the supervisor kill everything and end; by a word, since a fork of this process may hold the pipe, too."""
    with contextlib.suppress(BrokenPipeError):  # it has ended by itself
        os.write(leash.number, b"x")
    leash.close()
