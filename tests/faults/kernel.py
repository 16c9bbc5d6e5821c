"""Faults only the kernel can inject: failing system calls, a small disk, a root that must obey permissions.

For processes that were forked to die: none of it can be taken back.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import struct
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)
_MACHINES = {"x86_64": (0xC000003E, 317, (74, 75), 126), "aarch64": (0xC00000B7, 277, (82, 83), 91)}
"""By machine: its audit name, and the numbers of seccomp, of fsync and fdatasync, and of capset."""

_LOAD, _IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_NEW_MOUNTS, _NEW_USER, _PRIVATE = 0x00020000, 0x10000000, 0x40000 | 0x4000


def fail_fsync() -> None:
    """From now on every fsync and fdatasync of this process, on any of its threads, answers EIO."""
    audit, seccomp, (fsync, fdatasync), _ = _MACHINES[platform.machine()]
    program = [
        (_LOAD, 0, 0, 4),
        (_IF_EQUAL, 0, 4, audit),
        (_LOAD, 0, 0, 0),
        (_IF_EQUAL, 1, 0, fsync),
        (_IF_EQUAL, 0, 1, fdatasync),
        (_RETURN, 0, 0, _FAIL | errno.EIO),
        (_RETURN, 0, 0, _ALLOW),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in program))
    head = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(program), ctypes.addressof(code)))
    _check(_libc.prctl(38, 1, 0, 0, 0))  # no new privileges, so that anybody may do this
    _check(_libc.syscall(seccomp, 1, 1, head))  # a filter, on every thread


def obey_permissions() -> None:
    """Give up root's right to write what its owner may only read."""
    if os.geteuid() != 0:
        return
    capset = _MACHINES[platform.machine()][3]
    header = ctypes.create_string_buffer(struct.pack("Ii", 0x20080522, 0))
    none = ctypes.create_string_buffer(struct.pack("IIIIII", 0, 0, 0, 0, 0, 0))
    _check(_libc.syscall(capset, header, none))


def mount_small_disk(folder: Path, size_bytes: int) -> bool:
    """Mount a small tmpfs that only this process sees; False where this machine lets nobody do that."""
    who, group = os.geteuid(), os.getegid()
    flags = _NEW_MOUNTS if who == 0 else _NEW_MOUNTS | _NEW_USER
    if _libc.unshare(flags) != 0:
        return False
    if who != 0:  # without a name in its own namespace, a process can make no file there
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        Path("/proc/self/uid_map").write_text(f"{who} {who} 1", encoding="ascii")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")
    if _libc.mount(None, b"/", None, _PRIVATE, None) != 0:
        return False
    options = f"size={size_bytes}".encode()
    return bool(_libc.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", 0, options) == 0)


def limit_files(size_bytes: int) -> None:
    """Let no file of this process grow beyond this."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))


def _check(answer: int) -> None:
    if answer != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
