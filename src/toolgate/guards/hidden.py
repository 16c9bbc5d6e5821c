"""Find the files that commands must not see: what the policy protects from reading, wherever it lies."""

from __future__ import annotations

import os

from toolgate.errors import SandboxError
from toolgate.guards.edges import Edges
from toolgate.guards.files import Root

MAX_NAMES = 300_000


def hidden_in(edges: Edges) -> tuple[str, ...]:
    """Return the paths to hide beneath the workspace's roots, outermost first; SandboxError where too many to look."""
    return tuple(path for root in edges.workspace.roots for path in _in_root(edges, root))


def _in_root(edges: Edges, root: Root) -> list[str]:
    found: list[str] = []
    waiting = [root.path]
    seen = 0
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    seen += 1
                    if edges.hidden.match(entry.path) is not None:
                        if not entry.is_symlink():
                            found.append(entry.path)
                    elif entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError:
            continue  # what we cannot list, the sandbox's user cannot either
        if seen > MAX_NAMES:
            raise SandboxError(
                f"{root.path} holds more than {MAX_NAMES} files, too many to find the protected ones among them. "
                "Choose a smaller workspace."
            )
    return sorted(found, key=len)
