"""The grammar of a command: its subcommands, its flags and what may follow them. `argv` parses with it.

A grammar lists what is known. What is not listed is refused, so a flag nobody thought of never runs.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

import re2

from toolgate.errors import DefinitionError
from toolgate.guards.files import Access
from toolgate.kernel.policy import Word

T = TypeVar("T")
ValueKind = Literal["str", "int", "path", "rev", "glob", "enum", "path_or_rev"]
Runs = Literal["command", "project", "alone"]
TRUSTED_DIRECTORIES = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin")
"""Where a command that names no executable is looked for; `PATH` is never asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """What a flag's value or a positional may be.

    str: any text. int: between `minimum` and `maximum`.
    path: a file name, reported for checking, with what is done to it. rev: a Git revision. glob: a pattern
    that the program compares names with. enum: one of `choices`. path_or_rev: what Git takes for either.
    matches: what the whole of it must be (RE2); excludes: what must not be found anywhere in it, whatever kind it is.
    """

    kind: ValueKind = "str"
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    matches: str | None = None
    excludes: str | None = None
    access: Access = "read"

    def __post_init__(self) -> None:
        if (self.kind == "enum") != bool(self.choices):
            raise DefinitionError("A value of kind `enum`, and no other, lists its choices.")
        for pattern in (self.matches, self.excludes):
            if pattern is not None:
                compiled(pattern)


@functools.cache
def compiled(pattern: str) -> re2._Regexp:
    """Return a linear-time pattern; DefinitionError where it is none."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise DefinitionError(f"The pattern {pattern!r} cannot be compiled: {error}.") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """A flag by all its names, such as `-n` and `--lines`.

    value: what it takes; None for a switch. optional: its value comes attached or not at all (`--color[=when]`).
    word: what using it leads to. fills: the positional that it supplies (grep's `-e` fills the pattern).
    spares: the positional that need not be there with it (with `-r` grep needs no file).
    ends: what follows is the program's own, not flags. runs: its value names a command of the table, and
    the rest is that command's (`python -m pytest`). executes: what follows, as far as `;` or `{} +`, is one of these
    commands (`find -exec`). writes: the workspace is writable with it. calms: what running the command leads to does
    not count with it (`black --check`).
    """

    names: tuple[str, ...]
    value: Value | None = None
    optional: bool = False
    word: Word = Word.ALLOW
    reason: str = ""
    fills: str | None = None
    spares: str | None = None
    ends: bool = False
    runs: bool = False
    executes: tuple[str, ...] = ()
    writes: bool = False
    calms: bool = False

    def __post_init__(self) -> None:
        if not self.names or not all(isinstance(name, str) and name and name != "--" for name in self.names):
            raise DefinitionError("A flag needs at least one name, and `--` is none.")
        if self.runs and self.value is None:
            raise DefinitionError(f"Flag {self.names[0]!r} runs a command, so it needs a value that names it.")
        if self.executes and (self.value is not None or "git" in self.executes):
            raise DefinitionError(
                f"Flag {self.names[0]!r} executes commands: it takes no value, and Git is none of them."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Positional:
    """Arguments that are no flags: `minimum` to `maximum` of them, None for any number."""

    name: str
    value: Value = field(default_factory=Value)
    minimum: int = 0
    maximum: int | None = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a run of the command may take."""

    timeout_s: float = 30.0
    max_args: int = 256
    max_bytes: int = 65_536
    output_bytes: int = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactLine:
    """A command line that is known to the letter: its arguments in order, and its variables. It has no network.

    input: something is piped or redirected into it. writes: the workspace is writable for it.
    """

    args: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    input: bool = False
    writes: bool = False

    def fits(self, args: Sequence[str], environment: Mapping[str, str], has_input: bool) -> bool:
        same = self.args == tuple(args) and dict(self.environment) == dict(environment)
        return same and self.input is has_input


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command or subcommand.

    executable: its absolute path; None where it is looked for by its name. word, reason: what running it leads
    to, and why. subcommands: what the first argument that is no flag must be; needs_subcommand: it must be
    there. dashes: whether `--` may end the flags; after_dashes: what follows it. combined: `-la` is `-l -a`.
    numbers: `-5` is a flag. interspersed: flags may follow positionals. environment: variables that a caller
    may set. network: it is run with one. writes: the workspace is writable for it. from_workspace: the project's own
    program of that name comes before the system's. lines: whole lines that are known though the rest does not know
    them; only_lines: it is known by them alone. calms: what the command it is a subcommand of leads to does not count
    (`npx tsc`). runs: what follows its positionals is another command of the table, judged by its own grammar:
    `command` runs that one's program, `project` the project's own of that name, `alone` only it, with the variables in
    front of it (`env CI=1 pytest`). run_only: which commands these may be; none: any.
    """

    name: str
    executable: str | None = None
    word: Word = Word.ALLOW
    reason: str = ""
    flags: tuple[Flag, ...] = ()
    positionals: tuple[Positional, ...] = ()
    subcommands: tuple[Command, ...] = ()
    needs_subcommand: bool = False
    dashes: Literal["allowed", "refused"] = "allowed"
    after_dashes: Positional | None = None
    combined: bool = True
    numbers: bool = False
    interspersed: bool = True
    environment: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    network: bool = False
    writes: bool = False
    from_workspace: bool = False
    lines: tuple[ExactLine, ...] = ()
    only_lines: bool = False
    calms: bool = False
    runs: Runs | None = None
    run_only: tuple[str, ...] = ()
    by_flag: Mapping[str, Flag] = field(init=False, repr=False, compare=False)
    by_subcommand: Mapping[str, Command] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.name or "/" in self.name or self.name.startswith("-"):
            raise DefinitionError(f"{self.name!r} is not a bare command name.")
        if self.executable is not None and not os.path.isabs(self.executable):
            raise DefinitionError(f"The executable of `{self.name}` must be an absolute path.")
        if self.subcommands and self.positionals and self.needs_subcommand:
            raise DefinitionError(f"`{self.name}` needs a subcommand, so its positionals can never come.")
        if self.runs is not None and (self.interspersed or self.subcommands):
            raise DefinitionError(f"`{self.name}` runs a command: its flags come first, and it has no subcommands.")
        if sum(positional.maximum is None for positional in self.positionals) > 1:
            raise DefinitionError(f"`{self.name}`: only one positional may take any number of arguments.")
        if any(each.lines for each in self.subcommands):
            raise DefinitionError(f"`lines` stand at `{self.name}` itself, with its subcommand as their first word.")
        by_flag = _unique([(name, flag) for flag in self.flags for name in flag.names], f"flag of `{self.name}`")
        by_name = _unique([(item.name, item) for item in self.subcommands], f"subcommand of `{self.name}`")
        object.__setattr__(self, "by_flag", by_flag)
        object.__setattr__(self, "by_subcommand", by_name)

    @property
    def asks(self) -> bool:
        """Whether a person is asked about some way to run it."""
        words = (self.word, *(flag.word for flag in self.flags))
        is_unsure = self.from_workspace and self.has_network
        return is_unsure or Word.ASK in words or any(each.asks for each in self.subcommands)

    @property
    def has_network(self) -> bool:
        """Whether some way to run it has a network."""
        return self.network or any(each.has_network for each in self.subcommands)


def _unique(pairs: Sequence[tuple[str, T]], what: str) -> dict[str, T]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise DefinitionError(f"{twice!r} is given twice as {what}.")
    return found


def pin(command: Command, *, also: Sequence[str] = ()) -> Command:
    """Return the command with the absolute path of its executable, found in trusted directories.

    `also` are directories looked at first, and this interpreter's own is the last: it has the tools that were
    installed beside Toolgate. A command that is nowhere stays as it is, and cannot be run.
    """
    if command.executable is not None:
        return command
    for directory in (*also, *TRUSTED_DIRECTORIES, os.path.dirname(sys.executable)):
        path = os.path.join(directory, command.name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return replace(command, executable=path)
    return command
