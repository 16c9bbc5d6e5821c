"""Find the names at which something steers programs, so that what a command adds to them can be told and put aside.

A place that is not there yet cannot be mounted over without making it, and a name made in somebody's workspace is in
the way of others while the command runs. So the names are compared: those before it, and those after it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Collection, Iterable, Iterator

from toolgate.guards.patterns import PathPatterns

_REPOSITORY = frozenset(("HEAD", "objects", "refs"))
"""What makes Git take any folder for a repository, and run what its configuration names."""


def is_repository(names: Collection[str]) -> bool:
    """Whether a folder with these names in it is a repository to Git, whatever it is called itself."""
    return _REPOSITORY.issubset(names)


def steering_names(roots: Iterable[str], patterns: PathPatterns, *, opens: bool = False) -> Iterator[str]:
    """Yield the outermost names beneath roots that steer programs: files, folders and links, repositories too.

    opens: folders that a command closed to their owner are opened again. Who knows the names in one can use them.
    """
    waiting = list(roots)
    tops = frozenset(waiting)
    while waiting:
        folder = waiting.pop()
        if opens and not os.access(folder, os.R_OK | os.X_OK, effective_ids=True):
            with contextlib.suppress(OSError):  # somebody else's
                os.chmod(folder, stat.S_IMODE(os.lstat(folder).st_mode) | stat.S_IRWXU)
        try:
            with os.scandir(folder) as found:
                entries = list(found)
        except OSError:
            continue  # what we cannot list steers nobody; when it can be listed again, it is a new name
        if folder not in tops and is_repository({entry.name for entry in entries}):
            yield folder
            continue
        for entry in entries:
            if patterns.match(entry.path) is not None:
                yield entry.path
            elif entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)


def is_bare(path: str) -> bool:
    """Whether a folder of any other name than `.git` is a repository."""
    is_folder = os.path.isdir(path) and not os.path.islink(path)
    return is_folder and os.path.basename(path) != ".git" and is_repository(os.listdir(path))


def put_aside(path: str) -> str | None:
    """Give what lies at a name another one, at which it steers nobody, and return that; None where it was empty.

    Nothing is thrown away: a person may have made it at the same time. It stays in its folder, so nothing is copied.
    """
    if is_bare(path):  # by any name; without its HEAD it is none
        return _renamed(f"{path}/HEAD")
    if _is_empty(path):
        with _writable(os.path.dirname(path)):
            (os.rmdir if os.path.isdir(path) else os.unlink)(path)
        return None
    aside = _renamed(path)
    if is_bare(aside):
        _renamed(f"{aside}/HEAD")
    return aside


def _is_empty(path: str) -> bool:
    if os.path.islink(path):
        return False
    return not os.listdir(path) if os.path.isdir(path) else os.path.getsize(path) == 0


def _renamed(path: str) -> str:
    folder, name = os.path.split(path)
    aside = os.path.join(folder, f"aside-{secrets.token_hex(4)}-{name.lstrip('.')}")
    with _writable(folder):
        os.rename(path, aside)
    return aside


@contextlib.contextmanager
def _writable(folder: str) -> Iterator[None]:
    """Take back, for a moment, a folder that a command closed to its owner."""
    mode = stat.S_IMODE(os.stat(folder).st_mode)
    if os.access(folder, os.W_OK | os.X_OK):
        yield
        return
    os.chmod(folder, mode | stat.S_IRWXU)
    try:
        yield
    finally:
        os.chmod(folder, mode)
