"""Find the Git repository a path belongs to, and what its index says of files. Git itself is not run here.

A `.git` that is a file leads elsewhere: to the folder of a worktree or of a submodule. One that leads outside the
workspace counts only where that folder names this work tree in turn: whoever writes a pointer cannot write the answer.
"""

from __future__ import annotations

import hashlib
import os
import re
import struct
from collections.abc import Sequence
from typing import NamedTuple

from toolgate.guards import Refused

MAX_INDEX_BYTES = 256 << 20
MAX_FILE_BYTES = 16 << 20
_POINTER_BYTES = 8192
_STAT_BYTES = 40
_ASSUMED, _EXTENDED, _STAGE, _SKIPPED = 0x8000, 0x4000, 0x3000, 0x4000
_WORKTREE = re.compile(r"^\s*worktree\s*=\s*(.+?)\s*$", re.IGNORECASE | re.MULTILINE)


class RepositoryRefused(Refused):
    """The repository is none that commands can be run in safely."""


class Repository(NamedTuple):
    """`top`: where its files lie. `folder`: its own `.git`; `common`: the one it shares with its worktrees."""

    top: str
    folder: str
    common: str


class TrackedFile(NamedTuple):
    """A tracked file: the name of its content, whether it is in conflict, and whether Git looks at the file at all."""

    content: str
    is_merged: bool
    is_watched: bool


def repository_of(path: str, roots: Sequence[str]) -> Repository | None:
    """Return the innermost repository that holds a path, within the workspace's roots."""
    home = next((root for root in roots if path == root or path.startswith(root.rstrip("/") + "/")), None)
    while home is not None:
        found = _at(path, roots)
        if found is not None or path == home:
            return found
        path = os.path.dirname(path)
    return None


def _at(top: str, roots: Sequence[str]) -> Repository | None:
    marker = os.path.join(top, ".git")
    if os.path.islink(marker):
        raise RepositoryRefused(
            "repository",
            f"'{marker}' is a link; Git runs only where it is a folder or a file. Put the folder there, or run the "
            "command where the repository is.",
        )
    if os.path.isdir(marker):
        return Repository(top, marker, marker)
    said = _first_line(marker)
    if said is None or not said.startswith("gitdir: "):
        return None
    folder = os.path.realpath(os.path.join(top, said.removeprefix("gitdir: ")))
    shared = _first_line(os.path.join(folder, "commondir"))
    common = folder if shared is None else os.path.realpath(os.path.join(folder, shared))
    is_inside = any(common.startswith(root.rstrip("/") + "/") for root in roots)
    if not is_inside and not _answers(folder, common, top):
        raise RepositoryRefused(
            "repository",
            f"'{marker}' leads to '{folder}' outside the workspace, which does not name '{top}' as its work tree. "
            "Repair it with `git worktree repair`, or run the command where the repository is.",
        )
    return Repository(top, folder, common)


def _answers(folder: str, common: str, top: str) -> bool:
    """Whether a folder outside the workspace says itself that its work tree is here."""
    back = _first_line(os.path.join(folder, "gitdir"))
    if back is not None:
        is_listed = os.path.dirname(folder) == os.path.join(common, "worktrees")
        return is_listed and os.path.realpath(os.path.dirname(os.path.join(folder, back))) == os.path.realpath(top)
    if folder != common:
        return False  # its own configuration may lie in the workspace; only what is outside can answer
    try:
        with open(os.path.join(folder, "config"), encoding="utf-8", errors="replace") as file:
            named = _WORKTREE.findall(file.read(1 << 20))
    except OSError:
        return False
    return any(os.path.realpath(os.path.join(folder, name.strip('"'))) == os.path.realpath(top) for name in named)


def _first_line(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            text = file.read(_POINTER_BYTES)
    except OSError:
        return None
    return os.fsdecode(text).partition("\n")[0].rstrip("\r")


def tracked(repository: Repository, names: Sequence[str]) -> dict[str, TrackedFile]:
    """Return the index's entries of these files and of what lies beneath these folders, by their paths from the top."""
    try:
        with open(os.path.join(repository.folder, "index"), "rb") as file:
            data = file.read(MAX_INDEX_BYTES + 1)
    except FileNotFoundError:
        return {}
    try:
        return _entries(data, {os.fsencode(name) for name in names})
    except (struct.error, ValueError, IndexError) as error:
        raise RepositoryRefused(
            "index",
            f"The index of '{repository.top}' cannot be read ({error}), so it is not known which protected files "
            "are tracked. Run `git update-index --no-split-index --index-version 2` there.",
        ) from None


def _entries(data: bytes, names: set[bytes]) -> dict[str, TrackedFile]:
    signature, version, count = struct.unpack_from(">4sII", data)
    if signature != b"DIRC" or version not in (2, 3, 4) or len(data) > MAX_INDEX_BYTES:
        raise ValueError("its form is not known")
    size = 32 if hashlib.sha256(data[:-32]).digest() == data[-32:] else 20
    folders = tuple(name + b"/" for name in names)
    found: dict[str, TrackedFile] = {}
    place, name = 12, b""
    for _ in range(count):
        start = place
        place += _STAT_BYTES + size
        (flags,) = struct.unpack_from(">H", data, place)
        place += 2
        more = 0
        if flags & _EXTENDED:
            (more,) = struct.unpack_from(">H", data, place)
            place += 2
        if version == 4:
            cut, place = _number(data, place)
            end = data.index(b"\0", place)
            name, place = name[: len(name) - cut] + data[place:end], end + 1
        else:
            end = data.index(b"\0", place)
            name, place = data[place:end], end + 8 - (end - start) % 8
        if name in names or name.startswith(folders):
            content = data[start + _STAT_BYTES : start + _STAT_BYTES + size].hex()
            is_watched = not (flags & _ASSUMED or more & _SKIPPED)
            found[os.fsdecode(name)] = TrackedFile(content, not flags & _STAGE, is_watched)
    if data[place : place + 4] == b"link":
        raise ValueError("it is split over two files")
    return found


def _number(data: bytes, place: int) -> tuple[int, int]:
    """Return a number of the index's own spelling, and where it ends."""
    value = data[place] & 0x7F
    while data[place] & 0x80:
        place += 1
        value = ((value + 1) << 7) | (data[place] & 0x7F)
    return value, place + 1


def is_unchanged(path: str, entry: TrackedFile) -> bool:
    """Whether a file holds exactly what the index has of it: then Git's own store discloses as much."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    with open(descriptor, "rb") as file:
        content = file.read(MAX_FILE_BYTES + 1)
    kind = hashlib.sha256 if len(entry.content) == 64 else hashlib.sha1
    known = kind(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
    return entry.is_merged and len(content) <= MAX_FILE_BYTES and known == entry.content
