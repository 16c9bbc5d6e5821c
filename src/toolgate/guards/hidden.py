"""Find the files that commands must not see or must not change: what the policy protects, wherever it lies."""

from __future__ import annotations

import os
from typing import NamedTuple

from toolgate.errors import SandboxError
from toolgate.guards.edges import Edges
from toolgate.guards.files import Root

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
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    seen += 1
                    if entry.is_symlink():
                        continue  # what it points at is found by its own name
                    if edges.hidden.match(entry.path) is not None:
                        hidden.append(entry.path)
                    elif edges.locked.match(entry.path) is not None:
                        locked.append(entry.path)
                    elif entry.is_dir():
                        waiting.append(entry.path)
        except OSError:
            continue  # what we cannot list, the sandbox's user cannot either
        if seen > MAX_NAMES:
            raise SandboxError(
                f"{root.path} holds more than {MAX_NAMES} files, too many to find the protected ones among them. "
                "Choose a smaller workspace."
            )
    return Kept(tuple(sorted(hidden, key=len)), tuple(sorted(locked, key=len)))
