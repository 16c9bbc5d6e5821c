"""What a program's file is at the moment: its content, where its links lead, and what interprets it.

Files are read once: what the file system says of an unchanged file (its number, its times, its size) stands for the
content that was read. A file that changed within the last second proves nothing, since clocks tick coarsely.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from toolgate.guards.argv import Parsed
from toolgate.guards.descriptor import Descriptor
from toolgate.guards.grammar import TRUSTED_DIRECTORIES, Command
from toolgate.guards.programs import CommandTable, lies_in
from toolgate.kernel.pin import Program

SYSTEM = ("/usr/", "/bin/", "/sbin/", "/lib", "/opt/", "/nix/store/")
"""Where programs lie that come with the system."""
UNREADABLE = "unreadable"
SETTLED_NS = 1_000_000_000
MAX_KNOWN = 4096
MAX_INTERPRETERS = 4
_SHEBANG = 256
_ENVS = ("/usr/bin/env", "/bin/env")


class _Content(NamedTuple):
    sha256: str
    shebang: str | None


_known: dict[str, _Content] = {}
"""What was read, by the stamp of the file it was read from."""


def started(parsed: Iterable[Parsed], commands: Mapping[str, Command]) -> list[str]:
    """Return the files that commands start, and those that what they run (`npx tsc`) stands for."""
    found: list[str] = []
    for one in parsed:
        inner = (commands[name].executable for name in one.runs if name in commands)
        found += [one.executable, *one.programs, *(path for path in inner if path is not None)]
    return list(dict.fromkeys(found))


def look(names: Iterable[str], commands: Mapping[str, Command], roots: Sequence[str]) -> tuple[Program, ...]:
    """Return what these programs are now, with their interpreters: those of the workspace and of tool directories.

    roots: what commands may write. A program of the system's own, which only root replaces, is not among them.
    """
    own, others = commands.places() if isinstance(commands, CommandTable) else ([], [])
    places, search = (*roots, *own, *others), (*own, *others, *TRUSTED_DIRECTORIES)
    found: dict[str, Program] = {}
    for name in names:
        if lies_in(name, places):
            for program in _chain(name, roots, search):
                found.setdefault(program.path, program)
    return tuple(found.values())


def remember(programs: Iterable[Program]) -> None:
    """Take what the record says of files that are still as they were, so that they need not be read again."""
    for program in programs:
        if program.stamp and program.sha256 is not None:
            _keep(program.stamp, _Content(program.sha256, program.shebang))


def look_again(program: Program) -> Program | None:
    """Return what the file of a program on record is now; None where there is none.

    What a policy has commands find by name is not known here: who interprets it counts as found, unless it says so.
    """
    try:
        now = _read(program.path, (os.path.dirname(program.path), *TRUSTED_DIRECTORIES))
    except OSError:
        return None
    return now._replace(interpreter=program.interpreter) if now.shebang == program.shebang else now


def _chain(path: str, roots: Sequence[str], search: Sequence[str]) -> Iterator[Program]:
    """Yield a program and those that interpret it, as far as somebody else than root can replace them."""
    for _ in range(MAX_INTERPRETERS):
        if _is_system(path) and _is_system(os.path.realpath(path)) and not lies_in(path, roots):
            return
        try:
            program = _read(path, search)
        except OSError:
            return  # nothing is there that could run
        yield program
        if program.interpreter is None:
            return
        path = program.interpreter


def _read(path: str, search: Sequence[str]) -> Program:
    """Return what is at a path; OSError where no file is. One that may be run and not read is never what it was."""
    target = os.path.realpath(path)
    if not os.access(target, os.R_OK) and os.path.isfile(target):
        return Program(_text(path), _text(target), UNREADABLE, 0, "never seen")
    with Descriptor(os.open(target, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)) as file:
        told = os.fstat(file.number)
        if not stat.S_ISREG(told.st_mode):
            raise OSError(f"{path} is no file")
        modified = datetime.fromtimestamp(int(told.st_mtime), UTC).isoformat()
        if _is_system(target, told):
            return Program(_text(path), _text(target), None, told.st_size, modified)
        stamp = ":".join(map(str, (told.st_dev, told.st_ino, told.st_mtime_ns, told.st_ctime_ns, told.st_size)))
        content = _known.get(stamp) or _content(file.number)
    is_settled = time.time_ns() - max(told.st_ctime_ns, told.st_mtime_ns) > SETTLED_NS
    if is_settled:
        _keep(stamp, content)
    interpreter = None if content.shebang is None else _interpreter(content.shebang, search)
    return Program(
        _text(path), _text(target), content.sha256, told.st_size, modified, content.shebang,
        None if interpreter is None else _text(interpreter), stamp if is_settled else "",
    )  # fmt: skip


def _content(number: int) -> _Content:
    head = os.pread(number, _SHEBANG, 0)
    with open(number, "rb", closefd=False) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if not head.startswith(b"#!"):
        return _Content(digest, None)
    return _Content(digest, head[2:].partition(b"\n")[0].strip().decode("utf-8", "backslashreplace"))


def _keep(stamp: str, content: _Content) -> None:
    if len(_known) >= MAX_KNOWN:
        _known.clear()
    _known[stamp] = content


def _interpreter(shebang: str, search: Sequence[str]) -> str | None:
    """Return the file that a `#!` line leads to; the name behind `env` is looked for where the sandbox does."""
    words = shebang.split()
    if not words or words[0] not in _ENVS:
        return words[0] if words else None
    named = next((word for word in words[1:] if not word.startswith("-") and "=" not in word), None)
    found = (os.path.join(folder, named) for folder in search if named is not None)
    return next((path for path in found if os.path.isfile(path)), None)


def _is_system(path: str, told: os.stat_result | None = None) -> bool:
    """Whether a program comes with the system: only root can replace it, in a directory that is only root's."""
    if not path.startswith(SYSTEM):
        return False
    try:
        both = (told or os.stat(path), os.stat(os.path.dirname(path)))
    except OSError:
        return False
    return all(one.st_uid == 0 and not one.st_mode & 0o022 for one in both)


def _text(path: str) -> str:
    """Return a path as text that any record can hold."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
