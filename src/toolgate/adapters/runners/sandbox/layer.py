"""Keep a copy-on-write layer over folders in a mount namespace of its own, and tell what was written into it.

Run as a program: `layer.py DESCRIPTOR`, a socket from which it reads JSON lines. The first one says what to cover; each
folder then shows, to whoever enters the namespace, what was there with what was written since, which goes into memory
of a fixed size and nowhere else. `look` asks whether a path is a folder by now; any other line asks for all that was
written. When the socket closes, the layer is gone. Standard library only: it starts with `-I -S`.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import stat
import sys
from collections.abc import Iterator
from typing import IO, Any

_libc = ctypes.CDLL(None, use_errno=True)
_NEW_USER, _NEW_MOUNTS, _DIE_WITH_PARENT = 0x10000000, 0x00020000, 1
_NOSUID, _NODEV, _BIND, _RECURSIVE, _PRIVATE = 2, 4, 0x1000, 0x4000, 0x40000
_OWN = "user.overlay."
_OPAQUE = "user.overlay.opaque"


def _check(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _mount(source: bytes, target: bytes, kind: bytes | None, flags: int, data: bytes | None, what: str) -> None:
    _check(_libc.mount(source, target, kind, flags, data), what)


def _separate(*, is_root: bool) -> None:
    """Keep what is mounted from now on to this process and who joins it. Who is not root needs a user namespace."""
    uid, gid = os.getuid(), os.getgid()
    _check(_libc.unshare(_NEW_MOUNTS | (0 if is_root else _NEW_USER)), "namespaces")
    if not is_root:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{name}", "wb", buffering=0) as file:
                file.write(text.encode("ascii"))
    _mount(b"none", b"/", None, _RECURSIVE | _PRIVATE, None, "make mounts private")


def _cover(asked: dict[str, Any]) -> None:
    """Put a layer over each root, all of them in one memory of the size that was asked for."""
    owners = _owners(asked)
    _separate(is_root=os.geteuid() == 0)
    size = f"mode=755,size={asked['bytes']},nr_inodes={asked['names']}".encode("ascii")
    place = os.fsencode(asked["place"])
    _mount(b"tmpfs", place, b"tmpfs", _NOSUID | _NODEV, size, "mount memory")
    os.chdir(place)
    for number, root in enumerate(asked["roots"]):
        where = os.fsencode(root)
        found = os.stat(where)
        for name in ("lower", "upper", "work"):
            os.makedirs(f"{number}/{name}")
        os.chmod(f"{number}/upper", stat.S_IMODE(found.st_mode))
        if os.geteuid() == 0:
            os.chown(f"{number}/upper", *(asked["user"] if found.st_uid == 0 else (found.st_uid, found.st_gid)))
        _lower(where, b"%d/lower" % number, owners if found.st_uid == 0 else None)
        layers = f"lowerdir={number}/lower,upperdir={number}/upper,workdir={number}/work,userxattr,index=off"
        _mount(b"overlay", where, b"overlay", _NOSUID | _NODEV, layers.encode("ascii"), f"overlay on {root}")


def _lower(source: bytes, target: bytes, owners: int | None) -> None:
    """Show a folder at another place, root's files in it as the sandbox user's where that is asked for."""
    if owners is None:
        _mount(source, target, None, _BIND | _RECURSIVE, None, f"bind {os.fsdecode(source)}")
    else:
        stage = _stage()
        stage.put_tree(stage.clone_tree(os.fsdecode(source), owners), os.fsdecode(target))


def _owners(asked: dict[str, Any]) -> int | None:
    """Return the namespace in which root's files are the sandbox user's; None where nobody needs it."""
    if os.geteuid() != 0 or all(os.stat(root).st_uid != 0 for root in asked["roots"]):
        return None
    owners: int | None = _stage().owner_map(*asked["user"])
    return owners


def _stage() -> Any:
    """Return the module beside this one: nothing is imported from anywhere else."""
    here = os.path.dirname(os.path.abspath(__file__))
    if here not in sys.path:
        sys.path.insert(0, here)
    import stage  # type: ignore[import-not-found]  # it is found by the line above

    return stage


def _collect(asked: dict[str, Any], out: IO[bytes]) -> None:
    """Write every entry that is in the layers: a line that says what it is, and the bytes of a file behind it."""
    room, names = asked["most_bytes"], asked["most_names"]
    seen: set[tuple[int, int]] = set()
    found = os.statvfs(".")
    if not found.f_bavail or not found.f_ffree:
        out.write(b'{"kind":"disk"}\n')
        return
    for number, root in enumerate(asked["roots"]):
        for path, inner, status in _entries(os.fsencode(f"{number}/upper")):
            entry = _described(path, status) | {"root": root, "path": inner.hex()}
            names -= 1
            key = (status.st_dev, status.st_ino)
            is_new = entry["kind"] == "file" and key not in seen
            seen.add(key)
            entry["size"] = status.st_size if is_new else 0
            room -= entry["size"]
            if names < 0 or room < 0:
                out.write(b'{"kind":"names"}\n' if names < 0 else b'{"kind":"bytes"}\n')
                return
            out.write(json.dumps(entry).encode("ascii") + b"\n")
            if is_new:
                _copy(path, status.st_size, out)
    out.write(b'{"kind":"end"}\n')


def _entries(top: bytes) -> Iterator[tuple[bytes, bytes, os.stat_result]]:
    """Yield what lies in a layer, each folder before what it holds."""
    waiting = [b""]
    while waiting:
        inner = waiting.pop()
        folder = os.path.join(top, inner)
        for name in sorted(os.listdir(folder)):
            path, below = os.path.join(folder, name), os.path.join(inner, name)
            status = os.lstat(path)
            yield path, below, status
            if stat.S_ISDIR(status.st_mode):
                waiting.append(below)


def _described(path: bytes, status: os.stat_result) -> dict[str, Any]:
    mode = status.st_mode
    found: dict[str, Any] = {"kind": "other", "mode": stat.S_IMODE(mode)}
    if stat.S_ISCHR(mode) and status.st_rdev == 0:
        return {"kind": "gone"}
    if stat.S_ISLNK(mode):
        return {"kind": "link", "target": os.readlink(path).hex()}
    attributes = os.listxattr(path, follow_symlinks=False) if stat.S_ISREG(mode) or stat.S_ISDIR(mode) else []
    if any(not name.startswith(_OWN) for name in attributes):
        found["attributes"] = True
    if stat.S_ISDIR(mode):
        is_whole = _OPAQUE in attributes and os.getxattr(path, _OPAQUE) == b"y"
        return found | {"kind": "folder", "whole": is_whole}
    if stat.S_ISREG(mode):
        return found | {"kind": "file", "mtime": status.st_mtime_ns, "inode": f"{status.st_dev}:{status.st_ino}"}
    return found


def _copy(path: bytes, size: int, out: IO[bytes]) -> None:
    with open(path, "rb") as file:
        while size > 0:
            piece = file.read(min(size, 1 << 20))
            if not piece:
                raise OSError(f"{path!r} became shorter while it was read")
            size -= len(piece)
            out.write(piece)


def main(descriptor: int) -> None:
    """Do what is asked until nobody asks any more."""
    _check(_libc.prctl(_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0), "die with parent")
    os.umask(0)
    with open(descriptor, "rb", closefd=False) as heard, open(descriptor, "wb", closefd=False) as out:
        asked = json.loads(heard.readline())
        try:
            _cover(asked)
        except OSError as error:
            out.write(json.dumps({"error": error.strerror or str(error)}).encode("ascii") + b"\n")
            return
        out.write(b'{"ready":true}\n')
        out.flush()
        for line in heard:
            told = json.loads(line)
            if "look" in told:
                out.write(b"true\n" if os.path.isdir(told["look"]) else b"false\n")
            else:
                _collect(asked | told, out)
            out.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]))
