"""Which file a command's name stands for: the project's own tools, a person's tool directories, the system's.

What lies in the workspace is code that an agent can write. So it takes the place of a system program only where the
grammar says so, never Git's, and a person is asked before it runs with a network.
"""

from __future__ import annotations

import glob
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from toolgate.guards.grammar import TRUSTED_DIRECTORIES, Command

_NEVER_FROM_WORKSPACE = frozenset(("git",))
"""What is given more than other commands: an identity, and files that are hidden from others."""
_DIGITS = re.compile(r"(\d+)")


class CommandTable(Mapping[str, Command]):
    """The commands of a policy, each with the program that its name stands for at the moment.

    directories: absolute patterns, in order; of several that one stands for, the last by number (`v20` after `v9`).
    roots: what commands may write. A directory in there is the workspace's.
    """

    def __init__(
        self, commands: Mapping[str, Command], directories: tuple[str, ...] = (), roots: tuple[str, ...] = ()
    ) -> None:
        self._commands = commands
        self._directories = directories
        self._roots = roots

    def __getitem__(self, name: str) -> Command:
        command = self._commands[name]
        return command if command.executable is not None else replace(command, executable=self._find(name, command))

    def __contains__(self, name: object) -> bool:
        return name in self._commands

    def __iter__(self) -> Iterator[str]:
        return iter(self._commands)

    def __len__(self) -> int:
        return len(self._commands)

    def places(self) -> tuple[list[str], list[str]]:
        """Return the tool directories that are there now: the workspace's, and those outside it."""
        found = [place for directory in self._directories for place in _expanded(directory)]
        own = [place for place in found if self.is_own(place)]
        return own, [place for place in found if place not in own]

    def is_own(self, path: str) -> bool:
        """Whether a path lies in the workspace, or leads there: commands may write it."""
        return lies_in(path, self._roots)

    def find(self, name: str) -> str | None:
        """Return the program that a name without grammar stands for: the project's own first, as a person sees it."""
        own, others = self.places()
        return _first(name, () if name in _NEVER_FROM_WORKSPACE else own, others, TRUSTED_DIRECTORIES, _beside())

    def bare(self, path: str) -> str | None:
        """Return the name that stands for this very file of a tool directory, where it has a grammar."""
        directory, name = os.path.split(path)
        own, others = self.places()
        if directory not in (*own, *others) or name not in self._commands:
            return None
        return name if self[name].executable == path else None

    def _find(self, name: str, command: Command) -> str | None:
        own, others = self.places()
        if name in _NEVER_FROM_WORKSPACE:
            return _first(name, others, TRUSTED_DIRECTORIES, _beside())
        if command.from_workspace:
            return _first(name, own, others, TRUSTED_DIRECTORIES, _beside())
        return _first(name, others, TRUSTED_DIRECTORIES, () if command.has_network else own, _beside())


def lies_in(path: str, roots: Iterable[str]) -> bool:
    """Whether a path lies in one of the directories, by its name or by what its links lead to."""
    names = (path, os.path.realpath(path))
    found = {place for root in roots for place in (root, os.path.realpath(root))}
    return any(name == place or name.startswith(f"{place}/") for name in names for place in found)


def find_program(commands: Mapping[str, Command], name: str) -> str | None:
    """Return the program that a name stands for that has no grammar."""
    return (commands if isinstance(commands, CommandTable) else CommandTable(commands)).find(name)


def _beside() -> tuple[str]:
    """Where the tools are that were installed with Toolgate; looked at last."""
    return (os.path.dirname(sys.executable),)


def _first(name: str, *groups: list[str] | tuple[str, ...]) -> str | None:
    for directory in (directory for group in groups for directory in group):
        path = os.path.join(directory, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def _expanded(directory: str) -> list[str]:
    found = [path for path in glob.glob(directory) if os.path.isdir(path)]
    return [max(found, key=_by_number)] if found else []


def _by_number(path: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in _DIGITS.split(path)]
