"""Find the files that commands must not see or must not change: what the policy protects, wherever it lies."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable
from typing import NamedTuple

from toolgate.errors import SandboxError
from toolgate.guards.edges import Edges
from toolgate.guards.files import Root, tree
from toolgate.guards.steering import is_repository

MAX_NAMES = 300_000


class Kept(NamedTuple):
    """Paths beneath the workspace's roots, outermost first: what is hidden, and what can be read but not changed."""

    hidden: tuple[str, ...]
    locked: tuple[str, ...]


def hidden_in(edges: Edges) -> tuple[str, ...]:
    """Return the paths to hide; SandboxError where there are too many files to look for them."""
    return kept_in(edges).hidden


def kept_in(edges: Edges) -> Kept:
    """Return the paths to hide and to lock; SandboxError where there are too many files to look for them."""
    found = [_in_root(edges, root) for root in edges.workspace.roots]
    return Kept(
        tuple(path for each in found for path in each.hidden), tuple(path for each in found for path in each.locked)
    )


def _in_root(edges: Edges, root: Root) -> Kept:
    hidden: list[str] = []
    locked: list[str] = []
    waiting = [root.path]
    seen = 0
    while waiting:
        folder = waiting.pop()
        entries = _listed(folder)
        if entries is None:
            hidden += [folder] if folder != root.path and os.path.isdir(folder) else []
            continue
        seen += len(entries)
        if folder != root.path and is_repository({entry.name for entry in entries}):
            locked.append(folder)
        for entry in entries:
            if entry.is_symlink():
                _follow(edges, root, entry.path, hidden, locked)
            elif edges.hidden.match(entry.path) is not None:
                hidden.append(entry.path)
            elif edges.locked.match(entry.path) is not None:
                locked.append(entry.path)
            elif entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
        if seen > MAX_NAMES:
            raise SandboxError(
                f"{root.path} holds more than {MAX_NAMES} files, too many to find the protected ones among them. "
                "Choose a smaller workspace."
            )
    hidden += _real(edges.private_files, root, hidden)
    locked += _real(edges.policy_files, root, [*hidden, *locked])
    covered = tuple(f"{path}/" for path in (*hidden, *locked))
    hidden += _other_names(root, hidden, covered)
    locked += _other_names(root, locked, covered)
    unseen = tuple(f"{path}/" for path in hidden)  # a hidden folder hides what is in it: nothing can be mounted there
    hidden, locked = ([path for path in paths if not path.startswith(unseen)] for paths in (hidden, locked))
    return Kept(_outer_first(hidden), _outer_first(set(locked).difference(hidden)))


def _listed(folder: str) -> list[os.DirEntry[str]] | None:
    """Return what is in a folder; None where that cannot be told.

    A command that may write can close a folder, and the next one open it again: what it holds cannot be found
    meanwhile, so all of it is hidden.
    """
    if not os.access(folder, os.R_OK | os.X_OK, effective_ids=True):
        return None
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return None


def _real(names: Iterable[str], root: Root, kept: Iterable[str]) -> list[str]:
    """Return where files of these names really are, of those beneath a root that are not kept yet."""
    done = tuple(f"{path}/" for path in kept)
    found = (os.path.realpath(name) for name in names)
    return [p for p in found if p.startswith(f"{root.path}/") and not f"{p}/".startswith(done) and os.path.exists(p)]


def _outer_first(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(dict.fromkeys(paths), key=lambda path: (len(path), path)))


def _follow(edges: Edges, root: Root, link: str, hidden: list[str], locked: list[str]) -> None:
    """Keep what a link with a protected name leads to; anything else is found by its own name."""
    for patterns, kept in ((edges.hidden, hidden), (edges.locked, locked)):
        if patterns.match(link) is not None:
            target = os.path.realpath(link)
            if target.startswith(f"{root.path}/") and os.path.exists(target):
                kept.append(target)
            return


def _other_names(root: Root, kept: list[str], covered: tuple[str, ...]) -> list[str]:
    """Return the other names beneath a root (hard links) of files that are kept, but for those `covered` anyway."""
    linked: set[tuple[int, int]] = set()
    for path in kept:
        with contextlib.suppress(OSError):  # it went away
            status = os.lstat(path)
            if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
                linked.add((status.st_dev, status.st_ino))
    if not linked:
        return []
    inodes = {inode for _, inode in linked}
    known = set(kept)
    names = (path for path, inode in tree(root.path) if inode in inodes and path not in known)
    return [path for path in names if not path.startswith(covered) and _is_one(path, linked)]


def _is_one(path: str, linked: set[tuple[int, int]]) -> bool:
    with contextlib.suppress(OSError):
        status = os.lstat(path)
        return (status.st_dev, status.st_ino) in linked
    return False
