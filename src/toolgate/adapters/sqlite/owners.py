"""Which processes are alive: each owner holds a lock on a file of its own, and death lets go of it."""

from __future__ import annotations

import errno
import fcntl
import os
import weakref
from pathlib import Path
from time import sleep

from toolgate.errors import StoreError
from toolgate.guards.descriptor import Descriptor

SCHEMA_OWNER = "schema"
"""The name under which whoever makes or upgrades the file locks others out; a lock for everybody, so it stays."""
TRIES = 1000


class OwnerLock:
    """Holds the lock of one owner for as long as its process lives."""

    def __init__(self, folder: Path, owner: str) -> None:
        self.owner = owner
        self._folder = folder
        self._path = folder / f"{owner}.lock"
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            self._descriptor = _take(self._path)
        except OSError as error:
            raise StoreError(f"The lock folder {folder.name} cannot be used ({error.strerror}).") from error
        _held.add(self)

    def tidy(self) -> None:
        """Remove the lock files of owners that died while nobody asked after them."""
        for name in os.listdir(self._folder):
            owner, dot, kind = name.rpartition(".")
            if dot and kind == "lock" and owner != SCHEMA_OWNER:
                self.is_alive(owner)

    def is_alive(self, owner: str) -> bool:
        """Whether the process that holds this owner's lock still lives. The file of a dead one is removed."""
        if owner == self.owner:
            return self._descriptor.is_open
        return is_alive(self._folder, owner)

    def close(self) -> None:
        """Let go; from now on this owner counts as dead."""
        if self._descriptor.is_open:
            self._path.unlink(missing_ok=True)
            self._descriptor.close()

    def leave_to_parent(self) -> None:
        """In a forked child: let go without ending the lock, which is the parent's alone."""
        self._descriptor.close()


def is_alive(folder: Path, owner: str) -> bool:
    """Whether the process that holds an owner's lock still lives. The file of a dead one is removed."""
    path = folder / f"{owner}.lock"
    try:
        descriptor = Descriptor(os.open(path, os.O_RDWR | os.O_CLOEXEC))
    except FileNotFoundError:
        return False
    except PermissionError:
        return True  # somebody else's: only who may look can call it dead
    with descriptor:
        try:
            fcntl.flock(descriptor.number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        path.unlink(missing_ok=True)
        return False


def _take(path: Path) -> Descriptor:
    """Make the lock file of an owner that is new, and hold it. Whoever tidies up may do so just then."""
    for _ in range(TRIES):
        descriptor = Descriptor(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        try:
            fcntl.flock(descriptor.number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(descriptor.number), path.stat()):
                return descriptor
        except (BlockingIOError, FileNotFoundError):
            sleep(0.001)
        except OSError:
            descriptor.close()
            raise
        descriptor.close()
    raise BlockingIOError(errno.EWOULDBLOCK, "somebody else holds it")


_held: weakref.WeakSet[OwnerLock] = weakref.WeakSet()


def _after_fork() -> None:
    """A child shares its parent's descriptors, and would keep a dead parent's locks for as long as it lives."""
    for lock in _held:
        lock.leave_to_parent()
    _held.clear()


os.register_at_fork(after_in_child=_after_fork)
