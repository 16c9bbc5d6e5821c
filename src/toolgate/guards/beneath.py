"""Open what lies beneath a directory, with no link followed on the way: `openat2`, or the same walk by hand."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct

_OPENAT2 = 437  # the same number on every architecture
_NO_MAGICLINKS = 0x02
_NO_SYMLINKS = 0x04
_BENEATH = 0x08
_RESOLVE = _NO_MAGICLINKS | _NO_SYMLINKS | _BENEATH
_TRIES = 16
O_PATH: int = getattr(os, "O_PATH", os.O_RDONLY)

_libc = ctypes.CDLL(None, use_errno=True)
_syscall = getattr(_libc, "syscall", None)
_how = struct.Struct("=QQQ").pack
_HOW_BYTES = 24


def _openat2(directory: int, path: bytes, flags: int, mode: int) -> int:
    """Return a descriptor; raise OSError. EAGAIN means that a rename nearby raced with us: try again."""
    how = _how(flags | os.O_CLOEXEC, mode, _RESOLVE)
    number = 0
    for _ in range(_TRIES):
        descriptor: int = _syscall(_OPENAT2, directory, path, how, _HOW_BYTES)  # type: ignore[misc]  # probed below
        if descriptor >= 0:
            return descriptor
        number = ctypes.get_errno()
        if number not in (errno.EAGAIN, errno.EINTR):
            break
    raise OSError(number, os.strerror(number))


def _has_openat2() -> bool:
    if _syscall is None:
        return False
    try:
        os.close(_openat2(-100, b".", O_PATH, 0))
    except OSError as error:
        return error.errno not in (errno.ENOSYS, errno.EPERM, errno.EINVAL)
    return True


HAS_OPENAT2 = _has_openat2()


def open_beneath(directory: int, path: bytes, flags: int, mode: int = 0) -> int:
    """Return a descriptor of `path` beneath `directory`, through directories alone; raise OSError.

    A link anywhere on the way, the last name included, is ELOOP; `..` above the directory is EXDEV.
    """
    if HAS_OPENAT2:
        return _openat2(directory, path, flags, mode)
    return walk_beneath(directory, path, flags, mode)


def walk_beneath(directory: int, path: bytes, flags: int, mode: int = 0) -> int:
    """Do what `open_beneath` does, one name at a time, where the system call is missing."""
    if path.startswith(b"/"):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
    names = [name for name in path.split(b"/") if name not in (b"", b".")]
    is_last_directory = path.endswith((b"/", b"/."))
    opened = [os.dup(directory)]
    try:
        for name in names[:-1] if names and not is_last_directory else names:
            if name != b"..":
                opened.append(_open_directory(opened[-1], name))
            elif len(opened) > 1:
                os.close(opened.pop())
            else:
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        return _open_last(opened, names[-1] if names and not is_last_directory else b".", flags, mode)
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _open_directory(parent: int, name: bytes) -> int:
    try:
        return os.open(name, O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    except NotADirectoryError:
        if _is_link(parent, name):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
        raise


def _open_last(opened: list[int], name: bytes, flags: int, mode: int) -> int:
    if name == b"..":
        if len(opened) == 1:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        os.close(opened.pop())
        name = b"."
    if name != b"." and _is_link(opened[-1], name):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    # O_NOFOLLOW: a link that takes the name's place after the look above is refused as well.
    descriptor = os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=opened[-1])
    if flags & O_PATH and stat.S_ISLNK(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return descriptor


def _is_link(parent: int, name: bytes) -> bool:
    try:
        return stat.S_ISLNK(os.lstat(name, dir_fd=parent).st_mode)
    except FileNotFoundError:
        return False
