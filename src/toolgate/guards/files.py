"""What a path argument points at, as the kernel tells it, and the way to open exactly that.

`look` turns an argument into a fact: the real path of the object itself, every link followed by hand. Rules
judge the fact. `open` then opens that real path beneath its root with no link followed at all, so whatever was
swapped in between cannot lead anywhere that was not judged. Nothing here writes, or waits for a FIFO.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal, NamedTuple, Self

from toolgate.errors import UsageError
from toolgate.guards import Refused
from toolgate.guards.beneath import O_PATH, open_beneath
from toolgate.guards.descriptor import Descriptor

Access = Literal["read", "write", "list"]
"""What is done to a path; `write` is also creating and deleting."""
Kind = Literal["file", "directory", "link", "fifo", "socket", "device", "absent", "other"]
"""What an object is; `link` where a symbolic link itself was looked at."""

MAX_PATH_BYTES = 4096
MAX_NAME_BYTES = 255
MAX_LINKS = 40
MAX_SCANNED = 100_000
"""How many names are looked through for the other names of a file that has several."""

_LOOK = O_PATH | os.O_NOFOLLOW


class PathRefused(Refused):
    """The path cannot be an argument, or what it points at cannot be told or opened."""


class PathFact(NamedTuple):
    """What a path points at. `path` is the object's own, absolute, with no link in it.

    root: the real path of the root it lies beneath; None beneath none.
    aliases: the file's other names beneath that root (hard links).
    linked_outside: the file has a further name that is not beneath the root, or too many to tell.
    """

    given: str
    path: str
    root: str | None
    kind: Kind
    size: int | None = None
    device: int | None = None
    inode: int | None = None
    aliases: tuple[str, ...] = ()
    linked_outside: bool = False

    @property
    def relative(self) -> str:
        """The path beneath the root, `.` for the root itself."""
        if self.root is None:
            raise UsageError(f"{self.path!r} lies beneath no root.")
        return os.path.relpath(self.path, self.root)


class Root:
    """A directory held open until it is closed or nobody has it any more.

    Its identity is the descriptor's, whatever its name means later.
    """

    __slots__ = ("__weakref__", "descriptor", "identity", "path", "prefix")

    def __init__(self, path: str | Path) -> None:
        real = os.path.realpath(path)
        try:
            self.descriptor = Descriptor(os.open(real, O_PATH | os.O_DIRECTORY | os.O_CLOEXEC))
        except OSError as error:
            raise UsageError(f"The root {str(path)!r} cannot be opened: {error.strerror}. Create it first.") from None
        self.path = real
        self.prefix = real.rstrip("/") + "/"
        self.identity = _identity(os.fstat(self.descriptor.number))
        # A policy that was replaced is closed by nobody: calls may still use it.
        weakref.finalize(self, self.descriptor.close)


class Workspace:
    """The roots beneath which files may be touched; relative paths start at the first."""

    def __init__(self, root: str | Path, *, extra_roots: Sequence[str | Path] = ()) -> None:
        self.roots: tuple[Root, ...] = ()
        try:
            for path in (root, *extra_roots):
                self.roots += (Root(path),)
        except UsageError:
            self.close()
            raise
        self._by_length = sorted(self.roots, key=lambda root: -len(root.path))

    @property
    def path(self) -> str:
        return self.roots[0].path

    def look(self, path: str, *, base: str | None = None, follow: bool = True) -> PathFact:
        """Return what a path points at, without touching it. `base` is where a relative one starts.

        follow: whether its last name, if that is a link, stands for what it points at, or for the link itself.
        Raises PathRefused for a path that can be no argument or that no object can have. One that leads out of
        every root is a fact like any other, with `root` None.
        """
        check_text(path)
        if base is None and path[0] not in "/." and "/." not in path and "//" not in path:
            root = self.roots[0]
            whole = root.prefix + path
            return self._directly(path, path.encode(), whole, root) or self._by_hand(path, whole, follow)
        if base is not None and not path.startswith("/"):
            check_text(base)
            whole = os.path.join(self.path, base, path)
        else:
            whole = os.path.join(self.path, path)
        for root in self._by_length:
            if whole.startswith(root.prefix):
                inner = whole[len(root.prefix) :].encode() or b"."
                return self._directly(path, inner, os.path.normpath(whole), root) or self._by_hand(path, whole, follow)
        return self._by_hand(path, whole, follow)

    def spell(self, path: str, *, base: str | None = None, follow: bool = True) -> PathFact:
        """Return where a path leads by its words alone, for files of another machine, which cannot be looked at.

        Words do not tell links, so whether they are followed is for that machine to heed.

        Raises PathRefused for a path that can be no argument.
        """
        check_text(path)
        if base is not None:
            check_text(base)
        whole = "/" + os.path.normpath(os.path.join(self.path, base or "", path)).lstrip("/")
        root = next((root for root in self._by_length if f"{whole}/".startswith(root.prefix)), None)
        return PathFact(given=path, path=whole, root=None if root is None else root.path, kind="absent")

    @staticmethod
    def _directly(given: str, inner: bytes, path: str, root: Root) -> PathFact | None:
        """The quick way, for paths with no link in them; None where that cannot be told."""
        try:
            descriptor = open_beneath(root.descriptor.number, inner, O_PATH)
        except OSError:
            return None
        try:
            return _fact(given, path.rstrip("/") or "/", root, os.fstat(descriptor))
        finally:
            os.close(descriptor)

    def _by_hand(self, given: str, whole: str, follow: bool) -> PathFact:
        trail = _Trail(given, follow=follow)
        try:
            trail.walk(whole)
            index, root = self._root_of(trail.entries)
            names = [entry.name for entry in trail.entries[index + 1 :]] + trail.absent
            start = "/" if root is None else root.path
            path = os.path.join(start, *names)
            if trail.absent:
                return PathFact(given=given, path=path, root=None if root is None else root.path, kind="absent")
            return _fact(given, path, root, trail.entries[-1].status)
        finally:
            trail.close()

    def _root_of(self, entries: Sequence[_Entry]) -> tuple[int, Root | None]:
        for index in range(len(entries) - 1, -1, -1):
            for root in self.roots:
                if root.identity == _identity(entries[index].status):
                    return index, root
        return 0, None

    def open(self, fact: PathFact, flags: int, mode: int = 0) -> int:
        """Return a descriptor of exactly the object a fact names; PathRefused where it is there no more.

        Never waits for the other end of a FIFO and never follows a link.
        """
        return self.open_with_status(fact, flags, mode)[0]

    def open_with_status(self, fact: PathFact, flags: int, mode: int = 0) -> tuple[int, os.stat_result]:
        """Do what `open` does, and give the open object's status as well."""
        root = self._held(fact)
        inner = fact.path[len(root.prefix) :].encode() or b"."
        try:
            descriptor = open_beneath(root.descriptor.number, inner, flags | os.O_NONBLOCK | os.O_NOCTTY, mode)
        except OSError as error:
            raise cannot_open(fact.given, error) from None
        status = os.fstat(descriptor)
        if fact.kind != "absent" and (status.st_ino != fact.inode or status.st_dev != fact.device):
            os.close(descriptor)
            raise PathRefused("changed", f"{fact.given!r} was replaced while it was being opened. Try again.")
        return descriptor, status

    def open_parent(self, fact: PathFact) -> tuple[int, str]:
        """Return a descriptor of the directory that holds the object, and the object's name in it."""
        root = self._held(fact)
        if fact.path == root.path:
            raise PathRefused("is_root", f"{fact.given!r} is the root itself. Name something inside it.")
        parent, name = os.path.split(fact.path)
        inner = parent[len(root.prefix) :].encode() or b"."
        try:
            return open_beneath(root.descriptor.number, inner, os.O_RDONLY | os.O_DIRECTORY), name
        except OSError as error:
            raise cannot_open(fact.given, error) from None

    def _held(self, fact: PathFact) -> Root:
        for root in self.roots:
            if root.path == fact.root:
                return root
        raise PathRefused(
            "outside",
            f"{fact.given!r} leads outside the workspace ({fact.path}). Choose one inside, or allow it with `paths:`.",
        )

    def close(self) -> None:
        for root in self.roots:
            root.descriptor.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def check_text(path: object) -> None:
    """Raise PathRefused for what cannot be a path; any other text is a literal name, `~` and `$HOME` too."""
    if not isinstance(path, str) or not path:
        raise PathRefused("empty", f"{str(path)[:80]!r} is no path: that is a text that is not empty.")
    if "\0" in path:
        raise PathRefused("nul", f"{path[:80]!r} holds a NUL character, which no path can. Leave it out.")
    if len(path) <= MAX_NAME_BYTES and path.isascii():
        return
    try:
        encoded = path.encode()
    except UnicodeEncodeError:
        raise PathRefused("encoding", f"{path[:80]!r} is not valid UTF-8 text, which a path must be.") from None
    if len(encoded) >= MAX_PATH_BYTES or any(len(name) > MAX_NAME_BYTES for name in encoded.split(b"/")):
        raise PathRefused(
            "too_long",
            f"{path[:80]!r}, or a name in it, is longer than the system allows ({MAX_NAME_BYTES} bytes for a name, "
            f"{MAX_PATH_BYTES - 1} in all). Choose a shorter one.",
        )


def kind_of(status: os.stat_result) -> Kind:
    """Return what kind of object a status is of. Files that the kernel makes up (procfs, sysfs) are `other`."""
    mode = status.st_mode
    if stat.S_ISREG(mode):
        return "other" if status.st_dev in _made_up() else "file"
    if stat.S_ISDIR(mode):
        return "directory"
    if stat.S_ISLNK(mode):
        return "link"
    if stat.S_ISFIFO(mode):
        return "fifo"
    if stat.S_ISSOCK(mode):
        return "socket"
    return "device" if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) else "other"


def cannot_open(given: str, error: OSError) -> PathRefused:
    """Return the refusal that says why a path could not be opened."""
    if error.errno == errno.ENOENT:
        return PathRefused("absent", f"{given!r} does not exist.")
    if error.errno in (errno.ELOOP, errno.EXDEV):
        return PathRefused("changed", f"{given!r} changed while it was being opened. Try again.")
    if error.errno == errno.ENXIO:
        return PathRefused("kind", f"{given!r} is not a regular file.")
    return PathRefused("unreadable", f"{given!r} cannot be opened: {error.strerror}.")


_PSEUDO = ("/proc", "/sys")
_pseudo_devices: set[int] = set()


def _made_up() -> set[int]:
    if not _pseudo_devices:
        for path in _PSEUDO:
            with contextlib.suppress(OSError):
                if os.path.ismount(path):
                    _pseudo_devices.add(os.stat(path).st_dev)
        _pseudo_devices.add(-1)
    return _pseudo_devices


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _fact(given: str, path: str, root: Root | None, status: os.stat_result) -> PathFact:
    kind = kind_of(status)
    aliases: tuple[str, ...] = ()
    outside = False
    if kind == "file" and status.st_nlink > 1 and root is not None:
        aliases, outside = _names_of(root, status, path)
    home = None if root is None else root.path
    return PathFact(given, path, home, kind, status.st_size, status.st_dev, status.st_ino, aliases, outside)


def _names_of(root: Root, status: os.stat_result, own: str) -> tuple[tuple[str, ...], bool]:
    """Return the other names of a file beneath a root, and whether there are more elsewhere."""
    found: list[str] = []
    for scanned, (path, inode) in enumerate(tree(root.path)):
        if inode == status.st_ino and path != own and _is_same(path, status):
            found.append(path)
            if len(found) + 1 >= status.st_nlink:
                return tuple(found), False
        if scanned >= MAX_SCANNED:
            break
    return tuple(found), True


def _is_same(path: str, status: os.stat_result) -> bool:
    try:
        return _identity(os.lstat(path)) == _identity(status)
    except OSError:
        return False


def tree(top: str) -> Iterator[tuple[str, int]]:
    """Yield every name beneath a directory with its inode, links not followed."""
    waiting = [top]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    yield entry.path, entry.inode()
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError:
            continue  # a directory that went away or cannot be read hides no name that could be counted


class _Entry(NamedTuple):
    name: str
    descriptor: int
    status: os.stat_result


class _Trail:
    """The directories from `/` to an object, each held open, links followed by reading them."""

    def __init__(self, given: str, *, follow: bool) -> None:
        self._given = given
        self._follow = follow
        self.entries: list[_Entry] = []
        self.absent: list[str] = []

    def walk(self, path: str) -> None:
        self._restart()
        names = _names(path)
        links = 0
        while names:
            name = names.pop()
            if self.absent:
                if name == "..":
                    raise PathRefused("absent", f"{self._given!r} goes through a directory that does not exist.")
                self.absent.append(name)
            elif name == "..":
                self._leave()
            elif (target := self._enter(name, follow=self._follow or bool(names))) is not None:
                links += 1
                if links > MAX_LINKS:
                    raise PathRefused("loop", f"{self._given!r} goes through too many links.")
                if target.startswith("/"):
                    self._restart()
                names += _names(target)
        self._check_end(path)

    def _check_end(self, path: str) -> None:
        """`file/` and `file/.` name nothing; `new/` names a directory that is not there."""
        if path.endswith(("/", "/.")) and not self.absent and not stat.S_ISDIR(self.entries[-1].status.st_mode):
            raise PathRefused("not_directory", f"{self._given!r} names a directory, and there is none of that name.")

    def _enter(self, name: str, *, follow: bool) -> str | None:
        """Go into a name, or return where it points if it is a link that is followed."""
        here = self.entries[-1]
        if not stat.S_ISDIR(here.status.st_mode):
            raise PathRefused("not_directory", f"{self._given!r} goes through {here.name!r}, which is not a directory.")
        try:
            descriptor = os.open(name, _LOOK | os.O_CLOEXEC, dir_fd=here.descriptor)
        except FileNotFoundError:
            self.absent.append(name)
            return None
        except OSError as error:
            raise cannot_open(self._given, error) from None
        status = os.fstat(descriptor)
        if not follow or not stat.S_ISLNK(status.st_mode):
            self.entries.append(_Entry(name, descriptor, status))
            return None
        try:
            return os.readlink("", dir_fd=descriptor)
        except OSError as error:
            raise cannot_open(self._given, error) from None
        finally:
            os.close(descriptor)

    def _leave(self) -> None:
        if not stat.S_ISDIR(self.entries[-1].status.st_mode):
            raise PathRefused("not_directory", f"{self._given!r} goes through a file as if it were a directory.")
        if len(self.entries) > 1:
            os.close(self.entries.pop().descriptor)

    def _restart(self) -> None:
        self.close()
        descriptor = os.open("/", _LOOK | os.O_CLOEXEC)
        self.entries.append(_Entry("/", descriptor, os.fstat(descriptor)))

    def close(self) -> None:
        for entry in self.entries:
            os.close(entry.descriptor)
        self.entries.clear()


def _names(path: str) -> list[str]:
    """Return the names of a path, last first, so that the next one is at the end."""
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]


def sync_folder(folder: Path) -> None:
    """Return when the names in `folder` are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
