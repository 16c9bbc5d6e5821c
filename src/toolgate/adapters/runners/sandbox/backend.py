"""What the backends share: who a confined program runs as, its limits, and the files made for it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable
from typing import NamedTuple, Protocol

from toolgate.adapters.runners.sandbox.planted import has_record, settle
from toolgate.errors import SandboxError
from toolgate.ports.confinement import DISK_BYTES, Confined, Finished

NOBODY = 65534
MAX_FILE_BYTES = 1 << 30
MAX_OPEN_FILES = 4096
TEST_S = 60.0
"""How long one test of a backend may take, on a busy machine too."""
STOP_GRACE_S = 2.0
"""How long a killed tree may take to be gone."""
NOT_STARTED = (
    "Look whether the program and the directory it starts in are there, and whether the sandbox's user may use them."
)
"""What to do where a program could not be started."""
_PREFIX = "toolgate-sandbox-"
_NEW_S = 60.0
"""A directory younger than this may not be locked yet."""

OnOutput = Callable[[str, bytes], None]
"""Told which stream a piece of output came on, and the piece."""


class User(NamedTuple):
    """Who a confined program is on this machine."""

    uid: int
    gid: int


class Backend(Protocol):
    """One way of confining. `problem` says why it cannot be used here, or None."""

    @property
    def name(self) -> str: ...

    @property
    def user(self) -> User: ...

    def problem(self) -> str | None: ...

    def run(self, confined: Confined, *, stop: int | None = None, on_output: OnOutput | None = None) -> Finished: ...


class Unfinished(Exception):  # no error: a test that took longer than it may says nothing
    """A test took longer than it may. That says nothing about the backend: no other takes its place for it."""


def tried(backend: Backend, confined: Confined) -> Finished:
    """Run a test of a backend; Unfinished where it does not end in time."""
    finished = backend.run(confined)
    if finished.ending == "timeout":
        raise Unfinished("its test did not end in time, perhaps because the machine is busy; try again")
    return finished


def sandbox_user(workspace: str | None, uid: int | None) -> User:
    """Return who runs confined programs: this user, or, for root, a given one, the workspace's owner or nobody."""
    if os.geteuid() != 0:
        if uid is not None and uid != os.geteuid():
            raise SandboxError(f"Only root can run the sandbox as another user ({uid}); leave its user unset.")
        return User(os.geteuid(), os.getegid())
    if uid == 0:
        raise SandboxError("The sandbox never runs as root; choose another user for it.")
    if uid is not None:
        return User(uid, uid)
    owner = os.stat(workspace) if workspace is not None else None
    return User(owner.st_uid, owner.st_gid) if owner is not None and owner.st_uid != 0 else User(NOBODY, NOBODY)


def _leave(path: str, lock: int) -> None:
    shutil.rmtree(path, ignore_errors=True)
    os.close(lock)


def _tidy(folder: str) -> None:
    """Remove the directories of this user's owners that died."""
    now = time.time()
    for entry in os.scandir(folder):
        if not entry.name.startswith(_PREFIX):
            continue
        with contextlib.suppress(OSError):  # it is gone, locked by one who lives, or somebody else's
            lock = os.open(entry.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                found = os.fstat(lock)
                is_own = found.st_uid == os.geteuid()
                if is_own and (now - found.st_mtime > _NEW_S or has_record(entry.path)):
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    settle(entry.path)
                    shutil.rmtree(entry.path, ignore_errors=True)
            finally:
                os.close(lock)


class Files:
    """A private directory with the few files that sandboxes are given; gone with its owner.

    What an owner that was killed could not take away, the next one does: a directory is locked while its owner lives.
    """

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix=_PREFIX)
        os.chmod(self.path, 0o755)
        lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(lock, fcntl.LOCK_EX)
        self._finish = weakref.finalize(self, _leave, self.path, lock)
        _tidy(os.path.dirname(self.path))
        self.empty = self._write("empty", "")
        self.stage = os.path.join(self.path, "stage")
        self.layer = os.path.join(self.path, "layer")
        for place in (self.stage, self.layer):
            os.mkdir(place, 0o755)

    def accounts(self, user: User) -> tuple[str, str]:
        """Return a password and a group file that know this user and nobody else of this machine."""
        passwd = f"root:x:0:0:root:/:/bin/false\nsandbox:x:{user.uid}:{user.gid}:sandbox:/tmp:/bin/false\n"
        group = f"root:x:0:\nsandbox:x:{user.gid}:\n"
        return self._write("passwd", passwd), self._write("group", group)

    def _write(self, name: str, text: str) -> str:
        path = os.path.join(self.path, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o644)
        return path

    def close(self) -> None:
        self._finish()


def disk_limit(confined: Confined) -> int:
    """Return how many bytes a run may write to the disk in all."""
    return DISK_BYTES if confined.disk_bytes is None else confined.disk_bytes


def limits_of(confined: Confined) -> dict[str, int]:
    """Return the resource limits that hold inside, by the names that `prlimit` has for them.

    None is above what this process was given: nobody but root could set that.
    """
    wanted = {
        "nproc": confined.processes,
        "data": confined.memory_bytes,
        "fsize": min(MAX_FILE_BYTES, disk_limit(confined)),
        "nofile": MAX_OPEN_FILES,
        "core": 0,
    }
    return {name: _granted(name, value) for name, value in wanted.items()}


def _granted(name: str, value: int) -> int:
    most = resource.getrlimit(getattr(resource, f"RLIMIT_{name.upper()}"))[1]
    return value if most == resource.RLIM_INFINITY else min(value, most)
