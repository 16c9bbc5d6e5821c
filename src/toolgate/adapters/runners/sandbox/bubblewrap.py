"""Confine with bubblewrap: namespaces, a root of its own, a seccomp filter, and limits set inside."""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

from toolgate.adapters.runners.sandbox import layout, listener, proxy, seccomp
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
from toolgate.adapters.runners.sandbox.overlay import Overlay
from toolgate.adapters.runners.sandbox.proxy import Proxy
from toolgate.adapters.runners.sandbox.staging import must_stage, stage_command
from toolgate.adapters.runners.sandbox.streams import Pipes, Watch, children_of, is_readable, memory_file, used_by
from toolgate.errors import SandboxError
from toolgate.guards.descriptor import Descriptor
from toolgate.guards.grammar import TRUSTED_DIRECTORIES
from toolgate.ports.confinement import AGENT_SOCKET, SECRET_FILE, Confined, Ending, Finished, Secret

OLDEST = (0, 8)
"""The first version that can keep what runs inside from making user namespaces."""
_NOT_STARTED = (b"prlimit: failed to execute ", listener.FAILED.encode())
_NOT_STARTED_CODES = (126, 127)
"""How what starts the program inside ends where it cannot, and what it says first."""


@functools.cache
def find(program: str) -> str | None:
    """Return the path of a program in a trusted directory."""
    return shutil.which(program, path=os.pathsep.join(TRUSTED_DIRECTORIES))


SHARED_HOME = "/tmp/.home"
"""The home of a run whose `/tmp` is its line's: settings that one program leaves are not another's."""


class Bubblewrap:
    """Runs each program in fresh namespaces; when the process we started dies, everything inside dies."""

    name = "bubblewrap"

    def __init__(self, user: User, files: Files) -> None:
        self.user = user
        self._files = files
        self._passwd, self._group = files.accounts(user)
        self._executable = find("bwrap")
        self._limiter = find("prlimit")

    def problem(self) -> str | None:
        if self._executable is None:
            return "bubblewrap is not installed (the program `bwrap`; on Debian: apt-get install bubblewrap)"
        if self._limiter is None:
            return "the program `prlimit` is not installed (on Debian: apt-get install util-linux)"
        if seccomp.machine() is None:
            return "there is no seccomp table for this processor"
        version = subprocess.run([self._executable, "--version"], capture_output=True, text=True, check=False).stdout
        found = re.search(r"(\d+)\.(\d+)", version)
        if found is None or (int(found[1]), int(found[2])) < OLDEST:
            return f"bubblewrap {version.strip() or '?'} is too old; 0.8 is the oldest that works"
        try:
            finished = tried(self, Confined(argv=("/bin/true",), timeout_s=TEST_S))
        except SandboxError as error:
            return str(error)
        return None if finished.exit_code == 0 else f"a first run failed: {finished.stderr.decode(errors='replace')}"

    def run(
        self,
        confined: Confined,
        *,
        stop: int | None = None,
        on_output: OnOutput | None = None,
        overlay: Overlay | None = None,
    ) -> Finished:
        """Run a program to its end or its deadline; SandboxError where the sandbox could not be made."""
        began = time.monotonic()
        if overlay is None:  # over a layer, one may be made by what ran before
            _must_be_program(confined.argv[0])
        with Pipes() as pipes:
            return _Run(self, confined, pipes, began, stop, on_output, overlay).perform()

    def overlay(self, roots: Sequence[str], size: int) -> Overlay:
        """Begin a layer over folders, of at most so many bytes; whoever leaves it throws it away."""
        enterer = find("nsenter")
        if enterer is None:
            raise SandboxError(
                "Nothing ran: an overlay needs the program `nsenter` (on Debian: apt-get install util-linux)."
            )
        return Overlay(roots, place=self._files.layer, user=self.user, size=size, enterer=enterer)

    def command(self, confined: Confined, descriptors: Sequence[int]) -> list[str]:
        """Return the whole command line; `descriptors` are the status's, the filter's and the port's for a proxy."""
        status, seccomp_filter = map(str, descriptors[:2])
        if self._executable is None or self._limiter is None:
            raise SandboxError(f"The sandbox could not be set up: {self.problem()}.")
        line = [self._executable, "--unshare-all", "--unshare-user", "--disable-userns", "--new-session"]
        line += ["--die-with-parent", "--clearenv", "--cap-drop", "ALL", "--hostname", "sandbox"]
        line += ["--share-net"] if confined.network else []
        line += ["--json-status-fd", status, "--seccomp", seccomp_filter]
        line += [*_system(confined.network), "--ro-bind", self._passwd, "/etc/passwd"]
        line += ["--ro-bind", self._group, "/etc/group", "--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"]
        size = str(min(confined.temporary_bytes, disk_limit(confined)))
        line += ["--dev", "/dev", "--perms", "1777", "--size", size, "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]
        if confined.temporary is None:
            line += ["--perms", "1777", "--size", size, "--tmpfs", "/tmp"]
        else:
            line += ["--bind", confined.temporary, "/tmp", "--perms", "0700", "--size", size, "--tmpfs", SHARED_HOME]
        for number, path in zip(descriptors[3:], given_files(confined), strict=False):
            line += ["--perms", "0600", "--file", str(number), path]
        for option, path in self.mounts(confined):
            line += [option, path, path]
        line += self._kept(confined)
        led = {} if confined.reach is None else proxy.environment(confined.reach)
        home = {} if confined.temporary is None else {"HOME": SHARED_HOME}
        for name, value in (layout.BASE_ENVIRONMENT | home | led | layout.environment_of(confined)).items():
            line += ["--setenv", name, value]
        argv = confined.argv if len(descriptors) < 3 else (*_listener(descriptors[2], confined), *confined.argv)
        return [*line, "--remount-ro", "/", "--chdir", confined.cwd, "--", *self._limited(confined), *argv]

    def _limited(self, confined: Confined) -> list[str]:
        """Return the start of a command line that sets the limits inside, where they count for this run alone."""
        return [self._limiter or "", *(f"--{name}={value}" for name, value in limits_of(confined).items()), "--"]

    @staticmethod
    def mounts(confined: Confined) -> list[tuple[str, str]]:
        """Return what is bound of the host's files, outer directories first."""
        own = () if confined.reach is None else layout.interpreter_paths()
        wanted = dict.fromkeys((*own, *layout.runtimes_of(confined), *confined.readable), "--ro-bind")
        wanted |= dict.fromkeys(confined.writable, "--bind")
        return sorted(((option, path) for path, option in wanted.items()), key=lambda item: len(item[1]))

    def _kept(self, confined: Confined) -> list[str]:
        """Return the options for what cannot be seen or changed, outer paths first.

        A mount cannot be renamed, but what lies around it can, with the mount left behind. So each directory on the
        way there from the mount that it is in becomes a mount, too.
        """
        kept = {*confined.hidden, *confined.locked}
        around = {
            path for path in _around(kept, confined.writable) if not any(layout.within(path, one) for one in kept)
        }
        line: list[str] = []
        for path in sorted(kept | around, key=len):
            if path in around:
                line += ["--bind", path, path]
            else:
                line += self._cover(path) if path in confined.hidden else ["--ro-bind", path, path]
        return line

    def _cover(self, path: str) -> list[str]:
        if os.path.isdir(path):
            return ["--size", "4096", "--tmpfs", path, "--remount-ro", path]
        return ["--ro-bind", self._files.empty, path]

    def staged(self, confined: Confined, line: list[str]) -> list[str] | None:
        """Return the command that first puts what the sandbox's user cannot reach where it can; None if it can."""
        if os.geteuid() != 0:
            return None
        own = (*confined.readable, *confined.writable)
        mounted = [path for _, path in self.mounts(confined) if must_stage(path, own, self.user)]
        sources = sorted(mounted, key=len, reverse=True)
        if not sources:
            return None
        moved: list[tuple[int, int, str]] = []
        for index, word in enumerate(line[: line.index("--")]):
            home = next((number for number, path in enumerate(sources) if layout.within(word, path)), None)
            if home is not None and line[index - 1] in ("--ro-bind", "--bind"):
                moved.append((index, home, word[len(sources[home]) :]))
        request = {"user": self.user, "stage": self._files.stage, "is_needed": True}
        return stage_command(request | {"sources": sources, "command": line, "moved": moved})

    def start(
        self,
        confined: Confined,
        descriptors: Sequence[int],
        *,
        stdin: int,
        stdout: int,
        stderr: int,
        overlay: Overlay | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start a program; nothing of what is given is closed here."""
        line = self.command(confined, descriptors)
        staged = self.staged(confined, line)
        as_root = os.geteuid() == 0 and staged is None
        started = staged or line
        if overlay is not None:
            started, as_root = overlay.command(started, self.user if as_root else None), False
        return subprocess.Popen(
            started,
            env={},
            cwd="/",
            close_fds=True,
            pass_fds=descriptors,
            user=self.user.uid if as_root else None,
            group=self.user.gid if as_root else None,
            extra_groups=[] if as_root else None,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
        )

    def explain(self, confined: Confined, said: str) -> str:
        """Return why a sandbox could not be made, naming what is in the way."""
        mounted = [path for _, path in self.mounts(confined)]
        for path in mounted:
            if not os.path.exists(path):
                return f"{path} does not exist"
        for path in mounted:
            blocked = layout.blocker(path, *self.user)
            if blocked is not None:
                return f"user {self.user.uid}, as whom the sandbox runs, cannot enter {blocked} on the way to {path}"
        return said.strip() or "bubblewrap said nothing"


def _must_be_program(path: str) -> None:
    """Raise for what nobody could start: inside, that would look like the end of a program."""
    try:
        status = os.stat(path)
        why = None if stat.S_ISREG(status.st_mode) and status.st_mode & 0o111 else os.strerror(errno.EACCES)
        if why is None and not _has_format(path):
            why = os.strerror(errno.ENOEXEC)
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise  # the machine's trouble, not the program's
        why = error.strerror
    if why is not None:
        raise SandboxError(f"The sandbox could not be set up, so nothing ran: {path}: {why}. {NOT_STARTED}")


def _has_format(path: str) -> bool:
    """Whether the kernel can start a file. What it cannot, `prlimit` would have a shell run, whatever is in it."""
    try:
        with Descriptor(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)) as file:
            head = os.pread(file.number, 64, 0)
    except PermissionError:
        return True  # a shell cannot read it either
    return head.startswith(b"#!") or _is_elf(head)


def _is_elf(head: bytes) -> bool:
    """Whether a file begins as a binary does: executable, and with as many segments as it says it has."""
    if len(head) < 64 or not head.startswith(b"\x7fELF") or head[5] not in (1, 2):
        return False
    order: Literal["little", "big"] = "little" if head[5] == 1 else "big"
    at, wanted = {1: (42, 32), 2: (54, 56)}.get(head[4], (0, -1))
    kind, size, count = (int.from_bytes(head[start : start + 2], order) for start in (16, at, at + 2))
    return kind in (2, 3) and size == wanted and count > 0


def _around(kept: Iterable[str], writable: Iterable[str]) -> Iterator[str]:
    """Yield the directories between what is kept and the writable tree that it lies in."""
    for path in kept:
        root = max((root for root in writable if layout.within(path, root)), key=len, default=None)
        while root is not None and len(path := os.path.dirname(path)) > len(root):
            yield path


def given_files(confined: Confined) -> dict[str, bytes]:
    """Return what a run with a reach finds in its `/tmp`."""
    own = {} if confined.secret is None else {SECRET_FILE: confined.secret.content}
    return own | dict(confined.files)


def _listener(handing: int, confined: Confined) -> list[str]:
    """Return the start of a command line that gives the run its proxy's port, and the agent's socket."""
    agent = "-" if confined.agent is None else AGENT_SOCKET
    return [sys.executable, "-I", "-S", "-c", _script(), str(handing), str(proxy.PORT), agent]


@functools.cache
def _script() -> str:
    with open(listener.__file__, encoding="utf-8") as file:
        return file.read()


@functools.cache
def _system(network: bool) -> tuple[str, ...]:
    """Return the options for the system's own directories: as links where the host has links."""
    line: list[str] = []
    for path in layout.SYSTEM:
        if os.path.islink(path):
            line += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            line += ["--ro-bind", path, path]
    for path in layout.SETTINGS + (layout.NETWORK_SETTINGS if network else ()):
        if os.path.exists(path):
            line += ["--ro-bind", os.path.realpath(path), path]
    return tuple(line)


class _Run:
    """One run: the pipes, the limits, the end."""

    def __init__(
        self,
        backend: Bubblewrap,
        confined: Confined,
        pipes: Pipes,
        began: float,
        stop: int | None,
        on_output: OnOutput | None,
        overlay: Overlay | None,
    ) -> None:
        self._overlay = overlay
        self._backend = backend
        self._confined = confined
        self._pipes = pipes
        self._began = began
        self._stop = stop
        self._on_output = on_output

    def perform(self) -> Finished:
        confined, pipes = self._confined, self._pipes
        status, told = pipes.to_read()
        output, stdout = pipes.to_read()
        errors, stderr = pipes.to_read()
        feed, stdin = pipes.to_write() if confined.stdin else (None, None)
        rules = pipes.enter_context(seccomp_file())
        os.set_blocking(status.number, False)
        serving = None
        handing: tuple[int, ...] = ()
        if confined.reach is not None:
            ours, theirs = pipes.to_talk()
            serving = pipes.enter_context(Proxy(confined.reach, ours, agent=confined.agent))
            kept = (memory_file("toolgate-file", content) for content in given_files(confined).values())
            handing = (theirs.number, *(pipes.enter_context(each).number for each in kept))
        process = self._backend.start(
            confined,
            (told.number, rules.number, *handing),
            stdin=subprocess.DEVNULL if stdin is None else stdin.number,
            stdout=stdout.number,
            stderr=stderr.number,
            overlay=self._overlay,
        )
        watch = Watch(
            stdin=feed,
            stdout=output,
            stderr=errors,
            data=confined.stdin,
            deadline=self._began + confined.timeout_s,
            limit=confined.output_bytes,
            stop=self._stop,
            on_output=self._on_output if confined.secret is None else None,
        )
        with process:
            try:
                pipes.hand_over()
                finished = _masked(self._attend(process, watch, _Status(status)), confined.secret)
                return finished if serving is None else replace(finished, network=serving.reached())
            finally:
                _kill(process)

    def _attend(self, process: subprocess.Popen[bytes], watch: Watch, status: _Status) -> Finished:
        watch.excess = lambda: status.excess(self._confined, is_counted=self._overlay is None)
        ending = watch.serve()
        if ending == "exited":
            ending = self._wait(process)
        if ending != "exited":
            _kill(process)
            watch.drain(STOP_GRACE_S)
        status.wait_for_end()
        code = -1 if ending != "exited" else self._exit_code(status, watch.errors.value())
        return Finished(
            exit_code=code,
            stdout=watch.output.value(),
            stderr=watch.errors.value(),
            ending=ending,
            duration_s=time.monotonic() - self._began,
            backend="bubblewrap",
        )

    def _wait(self, process: subprocess.Popen[bytes]) -> Ending:
        """Wait for a program that closed its outputs; the deadline still holds."""
        try:
            process.wait(max(0.0, self._began + self._confined.timeout_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            return "timeout"
        return "exited"

    def _exit_code(self, status: _Status, said: bytes) -> int:
        code = status.value("exit-code")
        if code in _NOT_STARTED_CODES and said.startswith(_NOT_STARTED):
            # A program can say the same of itself: it may have run.
            why = said.decode(errors="replace").splitlines()[0]
            raise SandboxError(f"The program could not be started: {why}. {NOT_STARTED}", may_have_run=True)
        if code is not None:
            return code
        why = self._backend.explain(self._confined, said.decode(errors="replace"))
        text = f"The sandbox could not be set up: {why}. Run `toolgate doctor` for what is missing."
        # Its own complaint comes before the program's first word; without one it was killed, maybe at work.
        raise SandboxError(text, may_have_run=not said.startswith(b"bwrap: "))


class _Status:
    """What bubblewrap tells of a run: the first process inside, and how the program ended."""

    def __init__(self, source: Descriptor) -> None:
        self._source = source
        self._text = b""
        self._is_marked = False

    def value(self, name: str) -> int | None:
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self._source.number, 4096):
                self._text += data
        for line in self._text.splitlines():
            told = json.loads(line)
            if name in told:
                return int(told[name])
        return None

    def wait_for_end(self) -> None:
        """Wait until the first process inside is gone, and with it, by the kernel's doing, all the others."""
        child = self.value("child-pid")
        if child is None:
            return
        try:
            first = Descriptor(os.pidfd_open(child))
        except ProcessLookupError:
            return
        with first:
            is_readable(first, STOP_GRACE_S)

    def excess(self, confined: Confined, *, is_counted: bool) -> Ending | None:
        """Return what everything inside uses too much of; is_counted: what it writes goes to a disk."""
        child = self.value("child-pid")
        if child is None:
            return None
        if not self._is_marked:
            self._is_marked = True
            with contextlib.suppress(OSError), open(f"/proc/{child}/oom_score_adj", "w", encoding="ascii") as file:
                file.write("1000")  # if memory runs out, this goes first
        return used_by(child, memory=confined.memory_bytes, disk=disk_limit(confined) if is_counted else None)


def seccomp_file() -> Descriptor:
    """Return the filter, open for bubblewrap to read."""
    target = seccomp.machine()
    if target is None:
        raise SandboxError("There is no seccomp table for this processor.")
    return memory_file("toolgate-seccomp", seccomp.program(target))


def _masked(finished: Finished, secret: Secret | None) -> Finished:
    """Return an end without the secret in what the program wrote."""
    for word in () if secret is None else secret.words:
        stdout, stderr = finished.stdout.replace(word, b"***"), finished.stderr.replace(word, b"***")
        finished = replace(finished, stdout=stdout, stderr=stderr)
    return finished


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill what is inside, then the process that holds it.

    Bubblewrap ties the inside to the outside only when all is set up: killing the outer process before that would let
    the program start with nobody to stop it. The outer one is held still first, so that none of its children can go
    and leave its number to a stranger.
    """
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    for child in children_of(process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    process.send_signal(signal.SIGKILL)
    process.wait()
