"""Which files a confined program could write, whatever names lead to them, and whether they are still the same."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

from toolgate.guards.descriptor import Descriptor

ABSENT = "absent"
UNREADABLE = "unreadable"
MAX_LINKS = 40


def fingerprint_of(text: str) -> str:
    """Return what a text is recognized by."""
    return hashlib.sha256(text.encode()).hexdigest()


def fingerprint(path: str) -> str:
    """Return what a file's text, or the names in a folder, are recognized by; also that nothing is there."""
    try:
        if os.path.isdir(path):
            return fingerprint_of("\0".join(sorted(os.listdir(path))))
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return ABSENT
    except OSError:
        return UNREADABLE


def pin(path: str) -> Descriptor | None:
    """Take hold of a file, so that no other one can get its number while this is open; None where there is none."""
    try:
        return Descriptor(os.open(path, os.O_PATH | os.O_CLOEXEC))
    except OSError:
        return None


def is_still(pinned: Descriptor, path: str) -> bool:
    """Whether a path leads to the very file that was pinned."""
    try:
        return os.path.samestat(os.fstat(pinned.number), os.stat(path))
    except OSError:
        return False


def exposed(paths: Iterable[str], *, writable: Sequence[str], kept: Sequence[str]) -> Mapping[str, bool]:
    """Return those of these paths that a program which may write beneath `writable` could change, each with whether
    `kept`, what mounts keep from it, covers every name of it there."""
    roots, covers = [_folder(os.path.realpath(root)) for root in writable], [_folder(path) for path in kept]
    found: dict[str, bool] = {}
    for path in paths:
        reached = [step for step in _steps(path) if _lies(step, roots)]
        if reached:
            found[path] = all(_lies(step, covers) for step in reached)
        elif roots and _has_other_names(path):
            found[path] = False
    return found


def _folder(path: str) -> str:
    return path if path.endswith("/") else f"{path}/"


def _lies(path: str, folders: Sequence[str]) -> bool:
    return any(f"{path}/".startswith(folder) for folder in folders)


def _steps(path: str) -> Iterator[str]:
    """Yield where a path really is, and every link on the way there: each of them decides what is read."""
    parts = os.path.abspath(path).split("/")[1:]
    at, followed = "", 0
    while parts:
        name = parts.pop(0)
        at = os.path.dirname(at) if name == ".." else at if name in ("", ".") else f"{at}/{name}"
        if followed < MAX_LINKS and os.path.islink(at):
            yield at
            followed += 1
            target = os.readlink(at)
            parts = [*target.split("/"), *parts]
            at = "" if target.startswith("/") else os.path.dirname(at)
    yield at or "/"


def _has_other_names(path: str) -> bool:
    """Whether a file has hard links: one of them may lie where the program writes."""
    try:
        return os.path.isfile(path) and os.stat(path).st_nlink > 1
    except OSError:
        return True
