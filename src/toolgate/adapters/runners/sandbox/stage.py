"""Put what another user must see where that user can reach it, then become that user and go on.

Run as a program, by root alone: `stage.py {json}`. In a mount namespace of its own it binds each source below a
directory, with owners mapped where the kernel can, gives up root and becomes the command. `moved` says which words of
the command lie beneath which source. Standard library only: it starts with `-I -S`.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys

_libc = ctypes.CDLL(None, use_errno=True)
_NEW_USER, _NEW_MOUNTS = 0x10000000, 0x00020000
_RECURSIVE, _PRIVATE = 0x4000, 0x40000
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_HERE, _EMPTY_PATH, _CLONE, _WHOLE = -100, 0x1000, 1, 0x8000
_IDMAP = 0x00100000


class _Attributes(ctypes.Structure):
    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns", ctypes.c_uint64),
    )


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _owner_map(uid: int, gid: int) -> int:
    """Return a user namespace in which root's files are the sandbox user's."""
    ready, told = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ready)
        _check(_libc.unshare(_NEW_USER), "unshare")
        os.write(told, b"x")
        signal.pause()
        os._exit(0)
    os.close(told)
    try:
        os.read(ready, 1)
        for name, number in (("uid_map", uid), ("gid_map", gid)):
            with open(f"/proc/{child}/{name}", "w") as file:
                file.write(f"0 {number} 1\n")
        return os.open(f"/proc/{child}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(ready)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _bind(source: str, target: str, owners: int | None) -> None:
    tree = _check(_libc.syscall(_OPEN_TREE, _HERE, source.encode(), _CLONE | _WHOLE | os.O_CLOEXEC), f"open {source}")
    if owners is not None:
        attributes = _Attributes(_IDMAP, 0, 0, owners)
        size = ctypes.sizeof(attributes)
        # Where the file system cannot map owners, its files are what their permission bits say.
        _libc.syscall(_MOUNT_SETATTR, tree, b"", _EMPTY_PATH | _WHOLE, ctypes.byref(attributes), size)
    _check(_libc.syscall(_MOVE_MOUNT, tree, b"", _HERE, target.encode(), 4), f"place {source}")
    os.close(tree)


def main(request: str) -> None:
    """Do what the request says; never returns."""
    asked = json.loads(request)
    uid, gid, stage = asked["uid"], asked["gid"], asked["stage"]
    owners = _owner_map(uid, gid)
    _check(_libc.unshare(_NEW_MOUNTS), "unshare")
    _check(_libc.mount(None, b"/", None, _RECURSIVE | _PRIVATE, None), "make mounts private")
    _check(_libc.mount(b"tmpfs", stage.encode(), b"tmpfs", 0, b"mode=755,size=65536"), "mount the stage")
    places = []
    for index, source in enumerate(asked["sources"]):
        place = f"{stage}/{index}"
        if os.path.isdir(source):
            os.mkdir(place)
        else:
            os.close(os.open(place, os.O_CREAT | os.O_WRONLY, 0o644))
        _bind(source, place, owners)
        places.append(place)
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    os.chdir("/")
    command = asked["command"]
    for index, source, rest in asked["moved"]:
        command[index] = places[source] + rest
    os.execv(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1])
