"""What a run in an overlay would change, entry by entry: found by comparing its layer with what is there."""

from __future__ import annotations

import base64
import hashlib
import os
import stat
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from toolgate.guards import Refused
from toolgate.guards.beneath import open_beneath
from toolgate.guards.descriptor import Descriptor
from toolgate.guards.files import Root
from toolgate.ports.confinement import MEBIBYTE, Written

MAX_BYTES = 64 * MEBIBYTE
"""How much the files of a change set hold at most, before and after: both are kept with the call."""
MAX_CHANGES = 10_000
_SET_ID = 0o6000
_PERMISSIONS = 0o777
Kind = Literal["absent", "file", "folder", "link", "other"]
Place = tuple[str, str]
"""A root, and a path beneath it."""


class ChangeRefused(Refused):
    """What a command left cannot be applied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """What lies at a path. `content` is known where it is needed, `digest` always. stamp: tells whether it is still
    the very same file; owner: whose it is."""

    kind: Kind = "absent"
    mode: int | None = None
    digest: str | None = None
    target: str | None = None
    mtime_ns: int | None = field(default=None, compare=False)
    content: bytes | None = field(default=None, compare=False, repr=False)
    stamp: tuple[int, ...] | None = field(default=None, compare=False)
    owner: tuple[int, int] | None = field(default=None, compare=False)

    def as_json(self, *, whole: bool) -> dict[str, Any]:
        """Return it as JSON; `whole`: with what it holds."""
        told: dict[str, Any] = {"kind": self.kind}
        for name in ("mode", "digest", "target", "mtime_ns", "owner"):
            if getattr(self, name) is not None:
                told[name] = getattr(self, name)
        if whole and self.content is not None:
            packed = zlib.compress(self.content, 1)
            told |= {"z": _text(packed)} if len(packed) < len(self.content) else {"raw": _text(self.content)}
        return told

    @classmethod
    def of_json(cls, told: Mapping[str, Any]) -> Node:
        """Return what `as_json` wrote."""
        known = dict(told)
        packed, raw, owner = known.pop("z", None), known.pop("raw", None), known.pop("owner", None)
        content = None if raw is None else base64.b64decode(raw)
        if packed is not None:
            content = zlib.decompress(base64.b64decode(packed))
        return cls(**known, content=content, owner=None if owner is None else (owner[0], owner[1]))


ABSENT = Node()


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def file_node(content: bytes, mode: int, mtime_ns: int) -> Node:
    """Return a file that holds this."""
    digest = hashlib.sha256(content).hexdigest()
    return Node(kind="file", mode=mode, digest=digest, mtime_ns=mtime_ns, content=content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One path: what is there, and what shall be. same_as: the path of which it is another name (a hard link)."""

    root: str
    path: str
    before: Node
    after: Node
    same_as: str | None = None

    @property
    def place(self) -> Place:
        return self.root, self.path

    @property
    def action(self) -> str:
        """What becomes of the path, in a word."""
        if self.before.kind == "absent" or self.after.kind == "absent":
            return "create" if self.before.kind == "absent" else "delete"
        if self.before.kind != self.after.kind:
            return "replace"
        if (self.before.digest, self.before.target) != (self.after.digest, self.after.target):
            return "change"
        return "mode" if self.before.mode != self.after.mode else "touch"

    def as_json(self) -> dict[str, Any]:
        told = {"root": self.root, "path": self.path, "before": self.before.as_json(whole=False)}
        told["after"] = self.after.as_json(whole=self.same_as is None)
        return told if self.same_as is None else told | {"same_as": self.same_as}

    @classmethod
    def of_json(cls, told: Mapping[str, Any]) -> Change:
        before, after = Node.of_json(told["before"]), Node.of_json(told["after"])
        return cls(root=told["root"], path=told["path"], before=before, after=after, same_as=told.get("same_as"))


def look(root: Root, path: str, *, most: int = MAX_BYTES, may_be_closed: bool = False) -> Node:
    """Return what lies at a path beneath a root, with no link followed; a file with what it holds.

    ChangeRefused where that cannot be told: a link on the way, a file that cannot be read, or is too large to be kept.
    may_be_closed: a file that this user may not read is told without what it holds.
    """
    folder, name = os.path.split(path)
    try:
        with Descriptor(_folder(root, folder)) as parent:
            status = os.lstat(name, dir_fd=parent.number)
            if stat.S_ISREG(status.st_mode):
                is_closed = may_be_closed and not os.access(name, os.R_OK, dir_fd=parent.number)
                return _known(status) if is_closed else _file(parent, name, path, most)
            target = os.readlink(name, dir_fd=parent.number) if stat.S_ISLNK(status.st_mode) else None
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    except OSError as error:
        raise ChangeRefused("unreadable", f"'{path}' cannot be looked at: {error.strerror}.") from None
    known = {"stamp": stamp_of(status), "owner": (status.st_uid, status.st_gid)}
    if target is not None:
        return Node(kind="link", target=target, **known)  # type: ignore[arg-type]  # as they are named
    is_folder = stat.S_ISDIR(status.st_mode)
    mode = status.st_mode & _PERMISSIONS if is_folder else None
    return Node(kind="folder" if is_folder else "other", mode=mode, **known)  # type: ignore[arg-type]  # as they are named


def _folder(root: Root, path: str) -> int:
    return open_beneath(root.descriptor.number, path.encode() or b".", os.O_RDONLY | os.O_DIRECTORY)


def _file(parent: Descriptor, name: str, path: str, most: int) -> Node:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with open(os.open(name, flags, dir_fd=parent.number), "rb", buffering=0) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ChangeRefused("changed", f"'{path}' changed while it was looked at.")
        content = file.read() if status.st_size <= most else b""
        if status.st_size > most or len(content) > most:
            raise ChangeRefused(
                "too_large",
                f"'{path}' is {status.st_size:,} bytes, more than the {most:,} that can be kept to put it back.",
            )
    return replace(_known(status), digest=hashlib.sha256(content).hexdigest(), content=content)


def _known(status: os.stat_result) -> Node:
    """Return a file by its status alone."""
    return Node(
        kind="file",
        mode=status.st_mode & _PERMISSIONS,
        mtime_ns=status.st_mtime_ns,
        stamp=stamp_of(status),
        owner=(status.st_uid, status.st_gid),
    )


def stamp_of(status: os.stat_result) -> tuple[int, ...]:
    """Return what a change of a file alters; another name that it gets or loses alters none of it."""
    return status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns


def names_in(root: Root, path: str) -> list[str]:
    """Return the names in a folder beneath a root; none where it is not there."""
    try:
        with Descriptor(_folder(root, path)) as folder:
            return sorted(os.listdir(folder.number))
    except OSError:
        return []


class _Comparing:
    """Compares the layer over one root with what the root holds."""

    def __init__(self, root: Root, written: Sequence[Written], room: int) -> None:
        self._root = root
        self._written = {_path_of(one.path): one for one in written}
        self._whole: set[str] = set()
        self.room = room
        self.found: dict[str, Change] = {}

    def run(self) -> Iterable[Change]:
        for path, entry in self._written.items():  # each folder before what it holds
            self._compare(path, entry)
        return self.found.values()

    def _compare(self, path: str, entry: Written) -> None:
        before = self._look(path)
        after = self._after(path, entry)
        if entry.kind == "folder" and (entry.is_whole or os.path.dirname(path) in self._whole):
            self._whole.add(path)
        if before.kind == "folder" and (after.kind != "folder" or path in self._whole):
            self._empty(path, keeping=after.kind == "folder")
        is_touched = after.kind == "file" and before.mtime_ns != after.mtime_ns
        if before == after and not is_touched:
            return
        same_as = None if entry.same_as is None else _path_of(entry.same_as)
        self._add(Change(root=self._root.path, path=path, before=before, after=after, same_as=same_as))

    def _after(self, path: str, entry: Written) -> Node:
        if entry.kind == "gone":
            return ABSENT
        if entry.kind == "link":
            return Node(kind="link", target=_path_of(entry.target))
        if entry.kind == "folder":
            return Node(kind="folder", mode=entry.mode & _PERMISSIONS)
        if entry.kind == "other":
            raise ChangeRefused("special", f"it made '{path}', which is a device, a pipe or a socket")
        if entry.mode & _SET_ID:
            raise ChangeRefused("set_id", f"it made '{path}' run as its owner or group (set-user-id or set-group-id)")
        first = entry if entry.same_as is None else self._written[_path_of(entry.same_as)]
        if entry.same_as is None:
            self._take(len(entry.content))
        return file_node(first.content, entry.mode & _PERMISSIONS, entry.mtime_ns)

    def _empty(self, path: str, *, keeping: bool) -> None:
        """Note that everything in a folder goes; `keeping`: but for what the layer has in its place."""
        for name in names_in(self._root, path):
            inner = f"{path}/{name}"
            if keeping and inner in self._written:
                continue
            before = self._look(_path_of(os.fsencode(inner)))
            if before.kind == "folder":
                self._empty(inner, keeping=False)
            self._add(Change(root=self._root.path, path=inner, before=before, after=ABSENT))

    def _look(self, path: str) -> Node:
        found = look(self._root, path, most=max(self.room, 0))
        if found.kind == "other":
            raise ChangeRefused("special", f"'{path}' is a device, a pipe or a socket, which cannot be put back")
        self._take(len(found.content or b""))
        return found

    def _take(self, size: int) -> None:
        self.room -= size
        if self.room < 0:
            raise ChangeRefused(
                "too_large",
                f"it changed files that hold more than {MAX_BYTES // MEBIBYTE} MiB, before and after; that is as much "
                "as is kept with a call",
            )

    def _add(self, change: Change) -> None:
        self.found[change.path] = change
        if len(self.found) > MAX_CHANGES:
            raise ChangeRefused("too_many", f"it changed more than {MAX_CHANGES:,} files")


def _path_of(path: bytes) -> str:
    try:
        return path.decode()
    except UnicodeDecodeError:
        shown = path.decode(errors="backslashreplace")
        raise ChangeRefused("encoding", f"it made a name that is not UTF-8 text, '{shown}'") from None


def changes_of(written: Sequence[Written], roots: Mapping[str, Root]) -> tuple[Change, ...]:
    """Return what a layer would change beneath roots, by name; ChangeRefused where it cannot be applied as a whole."""
    found: list[Change] = []
    room = MAX_BYTES
    for path, root in roots.items():
        comparing = _Comparing(root, [one for one in written if one.root == path], room)
        found += comparing.run()
        room = comparing.room
    if len(found) > MAX_CHANGES:
        raise ChangeRefused("too_many", f"it changed more than {MAX_CHANGES:,} files")
    return tuple(sorted(found, key=lambda change: change.place))


def load(told: Iterable[Mapping[str, Any]]) -> tuple[Change, ...]:
    """Return changes that were kept as JSON; what is another name of a file holds what that file does."""
    changes = [Change.of_json(one) for one in told]
    known = {change.place: change.after.content for change in changes}
    return tuple(
        replace(change, after=replace(change.after, content=known.get((change.root, change.same_as))))
        if change.same_as is not None
        else change
        for change in changes
    )
