"""Make paths hold what a change set says, whole or not at all: each file under another name first, then renamed.

No link is followed on the way, and nothing is written that changed after it was looked at. What fails halfway is put
back; where that fails as well, nobody claims to know what is there.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from toolgate.errors import ToolExecutionError, ToolUnknownOutcomeError
from toolgate.guards.beneath import open_beneath
from toolgate.guards.change_set import ABSENT, Change, ChangeRefused, Node, look, names_in, stamp_of
from toolgate.guards.descriptor import Descriptor
from toolgate.guards.files import Root

SYNCED_ONE_BY_ONE = 32
"""How many files are written to the disk by themselves; more of them in one go."""
NAMED = 5
_SPECIAL = 0o7000
_ATTRIBUTES = ("user.", "system.posix_acl_access")
_libc = ctypes.CDLL(None, use_errno=True)
Roots = Mapping[str, Root]


@contextlib.contextmanager
def opened(paths: Iterable[str]) -> Iterator[Roots]:
    """Hold folders open, by their paths."""
    roots = {path: Root(path) for path in dict.fromkeys(paths)}
    try:
        yield roots
    finally:
        for root in roots.values():
            root.descriptor.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What shall be at a path, and what is there now. same_as: it is another name of the file at that path."""

    root: Root
    path: str
    now: Node
    node: Node
    same_as: str | None = None

    @property
    def depth(self) -> int:
        return self.path.count("/")

    @property
    def makes_file(self) -> bool:
        return self.node.kind in ("file", "link")


def conflicts(changes: Sequence[Change], roots: Roots) -> list[str]:
    """Return the paths at which there is something else by now than what the changes were found against."""
    return [path for path, _ in _compared(changes, roots) if path is not None]


def _compared(changes: Sequence[Change], roots: Roots) -> Iterator[tuple[str | None, Node]]:
    """Yield for each change what is there now, and its path where that is another thing than before."""
    going = {change.place for change in changes if change.after.kind != "folder" and change.before.kind != "absent"}
    for change in changes:
        root = roots[change.root]
        try:
            now = look(root, change.path)
        except ChangeRefused:
            yield change.path, change.before
            continue
        is_same = now == change.before
        if is_same and now.kind == "folder" and change.after.kind != "folder":
            is_same = all((change.root, f"{change.path}/{name}") in going for name in names_in(root, change.path))
        yield None if is_same else change.path, now


def apply(changes: Sequence[Change], roots: Roots) -> None:
    """Make all changes, if what is there is what they were found against.

    ToolExecutionError where nothing was changed, or all was put back; ToolUnknownOutcomeError where it could not be.
    """
    found = list(_compared(changes, roots))
    changed = [path for path, _ in found if path is not None]
    if changed:
        raise ToolExecutionError(f"{named(changed)} changed since the command ran; nothing was applied. Run it again.")
    wanted = [
        Wanted(root=roots[change.root], path=change.path, now=now, node=change.after, same_as=change.same_as)
        for change, (_, now) in zip(changes, found, strict=True)
    ]
    _make_all(wanted)


def restore(states: Sequence[tuple[Root, str, Node]]) -> None:
    """Make paths hold what they held; a folder that something else is in by now stays."""
    now = [look(root, path, may_be_closed=True) for root, path, _ in states]
    wanted = [
        Wanted(root=root, path=path, now=found, node=node)
        for (root, path, node), found in zip(states, now, strict=True)
    ]
    _make_all(wanted, spares=True)


def _make_all(wanted: Sequence[Wanted], *, spares: bool = False) -> None:
    """Make all of it, or put back what was made."""
    try:
        _make(wanted, spares=spares)
    except (OSError, ChangeRefused) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        try:
            _make(list(_back(wanted)), spares=True)
        except (OSError, ChangeRefused):
            raise ToolUnknownOutcomeError(
                f"the changes could not all be made ({why}), and those that were could not all be taken back"
            ) from error
        raise ToolExecutionError(f"The changes could not be made: {why}. All of them were taken back.") from error


def _back(wanted: Sequence[Wanted]) -> Iterator[Wanted]:
    """Yield what puts back what was made; what somebody else made meanwhile stays."""
    for one in wanted:
        now = look(one.root, one.path, may_be_closed=True)
        if now.kind == "folder" or now in (one.node, ABSENT):
            yield replace(one, now=now, node=one.now, same_as=None)


def named(paths: Sequence[str]) -> str:
    """Name a few paths in a sentence."""
    more = f" and {len(paths) - NAMED:,} more" if len(paths) > NAMED else ""
    return ", ".join(f"'{path}'" for path in paths[:NAMED]) + more


def _make(wanted: Sequence[Wanted], *, spares: bool = False) -> None:
    """Go from what is there to what shall be: away with what goes, folders, files, and the folders' modes last."""
    todo = [one for one in wanted if one.now != one.node or (one.makes_file and one.now.mtime_ns != one.node.mtime_ns)]
    deepest = sorted(todo, key=lambda one: -one.depth)
    for one in deepest:
        if one.now.kind in ("file", "link") and not one.makes_file:
            _unlink(one)
    for one in deepest:
        if one.now.kind == "folder" and one.node.kind != "folder":
            _rmdir(one, spares=spares)
    for one in reversed(deepest):
        if one.node.kind == "folder":
            _open_folder(one)
    files = sorted((one for one in todo if one.makes_file), key=lambda one: one.same_as is not None)
    for one in files:
        _put(one, is_synced=len(files) <= SYNCED_ONE_BY_ONE)
    for one in deepest:
        if one.node.kind == "folder":
            _set_mode(one)
    _make_lasting(todo, is_whole=len(files) > SYNCED_ONE_BY_ONE)


def _parent(one: Wanted) -> tuple[Descriptor, str]:
    folder, name = os.path.split(one.path)
    flags = os.O_RDONLY | os.O_DIRECTORY
    return Descriptor(open_beneath(one.root.descriptor.number, folder.encode() or b".", flags)), name


def _check_same(one: Wanted, parent: Descriptor, name: str) -> None:
    """Raise where there is something else than what was looked at."""
    try:
        found = stamp_of(os.lstat(name, dir_fd=parent.number))
    except FileNotFoundError:
        found = None
    if found != (None if one.now.kind == "absent" else one.now.stamp) and one.now.kind != "folder":
        raise ChangeRefused("changed", f"'{one.path}' changed at that moment")


def _unlink(one: Wanted) -> None:
    parent, name = _parent(one)
    with parent:
        _check_same(one, parent, name)
        os.unlink(name, dir_fd=parent.number)


def _rmdir(one: Wanted, *, spares: bool) -> None:
    parent, name = _parent(one)
    with parent:
        try:
            os.rmdir(name, dir_fd=parent.number)
        except OSError:
            if not spares or one.node.kind != "absent":
                raise


def _open_folder(one: Wanted) -> None:
    """Make a folder, or open one for what is to be put into it; its mode comes last."""
    parent, name = _parent(one)
    with parent:
        if one.now.kind == "folder":
            _chmod(parent, name, (one.now.mode or 0) | 0o700)
            return
        os.mkdir(name, 0o700, dir_fd=parent.number)
        owner = _owner(one)
        if owner is not None:
            os.chown(name, *owner, dir_fd=parent.number, follow_symlinks=False)


def _chmod(parent: Descriptor, name: str, mode: int) -> None:
    """Change the permissions of a folder; what else its mode says stays."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    with Descriptor(os.open(name, flags, dir_fd=parent.number)) as folder:
        kept = os.fstat(folder.number).st_mode & _SPECIAL
        os.fchmod(folder.number, mode | kept)


def _set_mode(one: Wanted) -> None:
    parent, name = _parent(one)
    with parent:
        _chmod(parent, name, one.node.mode or 0)


def _put(one: Wanted, *, is_synced: bool) -> None:
    """Put a file or a link in its place at once."""
    parent, name = _parent(one)
    temporary = f".{secrets.token_hex(8)}.toolgate"
    with parent:
        try:
            if one.node.kind == "link":
                os.symlink(one.node.target or "", temporary, dir_fd=parent.number)
            elif one.same_as is not None:
                _link(one, one.same_as, temporary, parent)
            else:
                _write(one, temporary, parent, name, is_synced=is_synced)
            _check_same(one, parent, name)
            os.rename(temporary, name, src_dir_fd=parent.number, dst_dir_fd=parent.number)
        finally:
            with contextlib.suppress(FileNotFoundError):  # it is in its place, or was never made
                os.unlink(temporary, dir_fd=parent.number)


def _link(one: Wanted, first: str, temporary: str, parent: Descriptor) -> None:
    folder, name = os.path.split(first)
    home = open_beneath(one.root.descriptor.number, folder.encode() or b".", os.O_RDONLY | os.O_DIRECTORY)
    with Descriptor(home) as source:
        os.link(name, temporary, src_dir_fd=source.number, dst_dir_fd=parent.number, follow_symlinks=False)


def _write(one: Wanted, temporary: str, parent: Descriptor, name: str, *, is_synced: bool) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    node = one.node
    with open(os.open(temporary, flags, 0o600, dir_fd=parent.number), "wb", buffering=0) as file:
        view = memoryview(node.content or b"")
        while view:
            view = view[file.write(view) :]
        owner = _owner(one)
        if owner is not None:
            os.fchown(file.fileno(), *owner)
        if one.now.kind == "file":
            _keep_attributes(parent, name, file.fileno())
        os.fchmod(file.fileno(), (node.mode or 0) & 0o777)
        if node.mtime_ns is not None:
            os.utime(file.fileno(), ns=(node.mtime_ns, node.mtime_ns))
        if is_synced:
            os.fsync(file.fileno())


def _owner(one: Wanted) -> tuple[int, int] | None:
    """Return whose a new file is where this process is root: the old one's owner, or the folder's."""
    if os.geteuid() != 0:
        return None
    status = os.fstat(one.root.descriptor.number)
    return one.node.owner or one.now.owner or (status.st_uid, status.st_gid)


def _keep_attributes(parent: Descriptor, name: str, new: int) -> None:
    """Give a file the attributes and access list of the one whose place it takes, where we may."""
    with contextlib.suppress(OSError):
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with Descriptor(os.open(name, flags, dir_fd=parent.number)) as old:
            for attribute in os.listxattr(old.number):
                if attribute.startswith(_ATTRIBUTES):
                    os.setxattr(new, attribute, os.getxattr(old.number, attribute))


def _make_lasting(todo: Sequence[Wanted], *, is_whole: bool) -> None:
    """Write what changed to the disk."""
    if is_whole:
        for root in {one.root.path: one.root for one in todo}.values():
            with Descriptor(os.open(".", os.O_RDONLY | os.O_CLOEXEC, dir_fd=root.descriptor.number)) as folder:
                _libc.syncfs(folder.number)
        return
    for (_, path), home in {(one.root.path, os.path.dirname(one.path)): one.root for one in todo}.items():
        _sync(home, path)


def _sync(root: Root, path: str) -> None:
    flags = os.O_RDONLY | os.O_DIRECTORY
    try:
        folder = Descriptor(open_beneath(root.descriptor.number, path.encode() or b".", flags))
    except (FileNotFoundError, NotADirectoryError):
        return  # it went with what was in it
    with folder:
        os.fsync(folder.number)
