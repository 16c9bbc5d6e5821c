"""Put what another user must see where that user can reach it, then go on as the command.

Run as a program, by root alone: `stage.py {json}`. In a mount namespace of its own it binds each source, with owners
mapped where the kernel can. With `stage`, the sources go beneath that directory, root is given up, and `moved` says
which words of the command lie beneath which source. Without, each source is put at its own path again: a directory on
the way that the user cannot enter is covered by an empty one. Standard library only: it starts with `-I -S`.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from typing import Any

_libc = ctypes.CDLL(None, use_errno=True)
_NEW_USER, _NEW_MOUNTS = 0x10000000, 0x00020000
_RECURSIVE, _PRIVATE = 0x4000, 0x40000
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_HERE, _EMPTY_PATH, _CLONE, _WHOLE = -100, 0x1000, 1, 0x8000
_IDMAP, _READ_ONLY = 0x00100000, 1


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


def owner_map(uid: int, gid: int) -> int | None:
    """Return a user namespace in which root's files are the sandbox user's; None where none can be made."""
    ready, told = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ready)
        if _libc.unshare(_NEW_USER) == 0:
            os.write(told, b"x")
            signal.pause()
        os._exit(0)
    os.close(told)
    try:
        if not os.read(ready, 1):
            return None
        for name, number in (("uid_map", uid), ("gid_map", gid)):
            with open(f"/proc/{child}/{name}", "w") as file:
                file.write(f"0 {number} 1\n")
        return os.open(f"/proc/{child}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(ready)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def clone_tree(source: str, owners: int | None, *, is_writable: bool = True) -> int:
    """Return a copy of what is mounted at a source, in which root's files are the sandbox user's."""
    flags = _CLONE | _WHOLE | os.O_CLOEXEC
    tree = _check(_libc.syscall(_OPEN_TREE, _HERE, source.encode(), flags), f"open {source}")
    if not is_writable:
        _check(_set(tree, _Attributes(_READ_ONLY, 0, 0, 0)), f"protect {source}")
    if owners is not None and os.stat(source).st_uid == 0:
        # Where the file system cannot map owners, its files are what their permission bits say.
        _set(tree, _Attributes(_IDMAP, 0, 0, owners))
    return tree


def _set(tree: int, attributes: _Attributes) -> int:
    size = ctypes.sizeof(attributes)
    return int(_libc.syscall(_MOUNT_SETATTR, tree, b"", _EMPTY_PATH | _WHOLE, ctypes.byref(attributes), size))


def put_tree(tree: int, target: str) -> None:
    _check(_libc.syscall(_MOVE_MOUNT, tree, b"", _HERE, target.encode(), 4), f"place {target}")
    os.close(tree)


def _make(path: str, *, is_directory: bool) -> None:
    if os.path.exists(path):
        return
    os.makedirs(path if is_directory else os.path.dirname(path), 0o755, exist_ok=True)
    if not is_directory:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))


def _empty(path: str) -> None:
    _check(_libc.mount(b"tmpfs", path.encode(), b"tmpfs", 0, b"mode=755,size=65536"), f"mount on {path}")


def _separate() -> None:
    """Keep what is mounted from now on to this process and what it starts."""
    _check(_libc.unshare(_NEW_MOUNTS), "unshare")
    _check(_libc.mount(None, b"/", None, _RECURSIVE | _PRIVATE, None), "make mounts private")


def _beneath(asked: dict[str, Any]) -> None:
    """Put sources beneath the stage, change the command to where they are, and become the sandbox's user."""
    (uid, gid), stage = asked["user"], asked["stage"]
    owners = owner_map(uid, gid)
    _separate()
    _empty(stage)
    for index, source in enumerate(asked["sources"]):
        _make(f"{stage}/{index}", is_directory=os.path.isdir(source))
        put_tree(clone_tree(source, owners), f"{stage}/{index}")
    for word, source, rest in asked["moved"]:
        asked["command"][word] = f"{stage}/{source}{rest}"
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def _in_place(asked: dict[str, Any]) -> None:
    """Put each source at its place, outer ones first, after what is in the way was covered."""
    owners = owner_map(*asked["user"])
    _separate()
    trees = [
        (clone_tree(source, owners, is_writable=is_writable), place, os.path.isdir(source))
        for source, place, is_writable in asked["places"]
    ]
    for path in asked["covers"]:
        _empty(path)
    for tree, place, is_directory in trees:
        _make(place, is_directory=is_directory)
        put_tree(tree, place)


def main(request: str) -> None:
    """Do what the request says; never returns."""
    asked = json.loads(request)
    os.umask(0o022)
    try:
        (_beneath if "stage" in asked else _in_place)(asked)
    except OSError as error:
        if asked["is_needed"]:
            sys.exit(f"sandbox: {error}")
    os.chdir("/")
    os.execv(asked["command"][0], asked["command"])


if __name__ == "__main__":
    main(sys.argv[1])
