"""Read a whole shell line by the grammars of its commands: each is judged on its own, from the directory it runs in.

A redirection is judged as the command that does the same: `> file` as `tee file`, `< file` as `cat file`. A pattern is
judged, and run, as the words that it stands for. A line that cannot be split is one unknown command, for a shell, to
the letter.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from toolgate.guards.argv import Parsed, PathUse
from toolgate.guards.expansion import expander
from toolgate.guards.files import Access, Workspace
from toolgate.guards.grammar import Command
from toolgate.guards.shell import Connector, Redirect, Simple, Unsplittable, split
from toolgate.guards.unknown import read_argv, shell_text
from toolgate.guards.words import ArgvRefused
from toolgate.kernel.policy import Word

_SHELLS = frozenset(("bash", "sh", "/bin/bash", "/bin/sh", "/usr/bin/bash", "/usr/bin/sh"))
_INNER = frozenset(("-c", "-lc", "-ec", "-euc"))
_NOWHERE = "/dev/null"
NETWORK_ASKED = "a network is asked for, which its grammar does not give it"
_LOOKING = frozenset("cat cut diff file grep head jq ls md5sum nl rg sed sha256sum sort stat tail tr uniq wc".split())
_WAYS = {"read": ("cat",), "write": ("tee",), "append": ("tee", "-a")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One command of a line. judged: itself, then what its redirections amount to; its paths are absolute."""

    judged: tuple[Parsed, ...]
    redirects: tuple[Redirect, ...] = ()
    start: str

    @property
    def command(self) -> Parsed:
        return self.judged[0]

    @property
    def writes(self) -> bool:
        return any(each.writes for each in self.judged)


@dataclass(frozen=True, slots=True, kw_only=True)
class LineStep:
    """Commands that a pipe joins, or a directory to go to."""

    connector: Connector
    parts: tuple[Part, ...] = ()
    directory: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line as it is judged and run. text: how it was written, where it was.

    expanded: each pattern in it, with the words that it stands for.
    """

    steps: tuple[LineStep, ...]
    text: str = ""
    expanded: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def judged(self) -> tuple[Parsed, ...]:
        return tuple(each for step in self.steps for part in step.parts for each in part.judged)


def read_command(
    commands: Mapping[str, Command],
    command: str,
    args: Sequence[str],
    environment: Mapping[str, str],
    home: str,
    workspace: Workspace | None = None,
) -> Line:
    """Return what a name with arguments, or a whole line without any, amounts to.

    home: where it starts. workspace: where the files are, if they are on this machine: there patterns are expanded, and
    `/tmp` is known to be the sandbox's own.
    """
    if args:
        inner = _inner(commands, (command, *args))
        if inner is None or environment:
            parsed = read_argv(commands, [command, *args], environment=environment, home=home)
            parsed = _Walk(commands, environment, home, workspace).absolute(parsed)
            return Line(steps=(LineStep(connector=";", parts=(Part(judged=(parsed,), start=home),)),))
        command = inner
    return read_line(commands, command, environment, home, workspace)


def read_line(
    commands: Mapping[str, Command],
    text: str,
    environment: Mapping[str, str],
    home: str,
    workspace: Workspace | None = None,
) -> Line:
    """Return what a line amounts to; ArgvRefused where a part of it cannot be run, asked or not."""
    try:
        steps = split(text)
        alone = steps[0].commands[0]
        is_alone = len(steps) == len(steps[0].commands) == 1
        if is_alone and not (alone.redirects or alone.variables or alone.patterns):
            inner = _inner(commands, alone.words)
            if inner is not None and inner != text:
                return read_line(commands, inner, environment, home, workspace)
        found = _Walk(commands, environment, home, workspace)
        for step in steps:
            found.take(step.connector, step.commands)
    except Unsplittable as error:
        if environment:
            raise ArgvRefused("environment", "A line for a shell takes no variables; write them in the line.") from None
        part = Part(judged=(shell_text(commands, text, str(error)),), start=home)
        return Line(steps=(LineStep(connector=";", parts=(part,)),), text=text)
    return Line(steps=tuple(found.steps), text=text, expanded=tuple(found.expanded.items()))


def with_network(line: Line) -> Line:
    """Return a line whose commands all have a network, with a person asked about each that has none by its grammar."""
    steps = (replace(step, parts=tuple(_connected(part) for part in step.parts)) for step in line.steps)
    return replace(line, steps=tuple(steps))


def _connected(part: Part) -> Part:
    own, *others = part.judged
    if own.network:
        return part
    word = Word.DENY if own.word is Word.DENY else Word.ASK
    asked = replace(own, network=True, word=word, reasons=(*own.reasons, NETWORK_ASKED))
    return replace(part, judged=(asked, *others))


def _inner(commands: Mapping[str, Command], words: Sequence[str]) -> str | None:
    """Return the line in `bash -c LINE`, unless the policy has a grammar for the shell itself."""
    is_shell = len(words) == 3 and words[0] in _SHELLS and words[1] in _INNER
    return words[2] if is_shell and os.path.basename(words[0]) not in commands else None


class _Walk:
    """Goes through the steps with the directory each starts in."""

    def __init__(
        self, commands: Mapping[str, Command], environment: Mapping[str, str], home: str, workspace: Workspace | None
    ) -> None:
        self.commands = commands
        self.workspace = workspace
        self.expand = None if workspace is None else expander(workspace)
        self.home = home
        self.expanded: dict[str, tuple[str, ...]] = {}
        self.has_written = False
        self.environment = environment
        self.here = home
        self.left_from: str | None = None
        self.steps: list[LineStep] = []

    def take(self, connector: Connector, commands: tuple[Simple, ...]) -> None:
        if connector != "&&" and self.left_from is not None:
            raise Unsplittable("a `cd` that may not happen before what follows it")
        if any(command.words[0] == "cd" for command in commands):
            self._go(connector, commands)
            return
        parts = tuple(self._part(self._expanded(command), number > 0) for number, command in enumerate(commands))
        self.steps.append(LineStep(connector=connector, parts=parts))
        self.has_written = self.has_written or any(part.writes for part in parts)

    def _expanded(self, command: Simple) -> Simple:
        """Return a command with the words that its patterns stand for."""
        if not command.patterns:
            return command
        patterns = dict(command.patterns)
        if self.expand is None:
            raise Unsplittable(f"a pattern ({command.words[min(patterns)]!r})")
        if self.has_written:
            raise Unsplittable(f"a pattern ({command.words[min(patterns)]!r}) after a command that may change files")
        words: list[str] = []
        for number, word in enumerate(command.words):
            found = self.expand(patterns[number], self.here) if number in patterns else (word,)
            words += found
            if number in patterns:
                self.expanded[f"{self.here}/{word}"] = found
        return replace(command, words=tuple(words), patterns=())

    def _go(self, connector: Connector, commands: tuple[Simple, ...]) -> None:
        (first, *rest) = commands
        is_plain = not (rest or first.redirects or first.variables or first.patterns) and len(first.words) == 2
        if not is_plain or first.words[1].startswith("-") or not first.words[1]:
            raise Unsplittable("a `cd` with more or less than one directory")
        if connector == "||":  # what follows would start in one of two places
            raise Unsplittable("a `cd` that may not happen before what follows it")
        if connector != ";":
            self.left_from = self.here
        self.here = os.path.join(self.here, first.words[1])
        self.steps.append(LineStep(connector=connector, directory=self.here))

    def _part(self, command: Simple, is_piped: bool) -> Part:
        has_input = is_piped or any(each.descriptor == 0 for each in command.redirects)
        variables = {**self.environment, **dict(command.variables)}
        own = read_argv(self.commands, command.words, environment=variables, home=self.here, has_input=has_input)
        files = [each for each in command.redirects if each.kind != "same" and each.target != _NOWHERE]
        if any(each.target.startswith("-") for each in files):
            raise Unsplittable("a redirection to a name that begins with '-'")
        others = [self._redirected(each) for each in files if not self._is_private(self._place(each.target))]
        if self.here != self.home:
            own = replace(own, paths=(*own.paths, PathUse(path=self.here, access="list", argument="cd")))
        judged = tuple(self.absolute(each) for each in (own, *others))
        return Part(judged=judged, redirects=command.redirects, start=self.here)

    def _redirected(self, redirect: Redirect) -> Parsed:
        """Return the command that does what a redirection does; its file counts as written whoever knows it."""
        argv = [*_WAYS[redirect.kind], redirect.target]
        parsed = read_argv(self.commands, argv, home=self.here, has_input=True)
        access: Access = "read" if redirect.kind == "read" else "write"
        use = PathUse(path=redirect.target, access=access, argument="redirection")
        return replace(parsed, paths=(*parsed.paths, use), writes=access == "write")

    def absolute(self, parsed: Parsed) -> Parsed:
        """Return a command with its paths as they lead from here, without those in the sandbox's own `/tmp`.

        Only those that look at files name it unasked: there is nothing in it that the same line did not put there.
        """
        uses = [replace(use, path=self._place(use.path)) for use in parsed.paths]
        if parsed.command == "git":  # it is looked into from outside the sandbox, too
            return replace(parsed, paths=tuple(uses))
        own = [use for use in uses if self._is_private(use.path)]
        if own and parsed.word is Word.ALLOW and parsed.command not in _LOOKING:
            why = f"{own[0].path!r} is in the call's own /tmp, which begins empty and is gone when the call ends"
            parsed = replace(parsed, word=Word.ASK, reasons=(*parsed.reasons, why))
        return replace(parsed, paths=tuple(use for use in uses if use not in own))

    def _is_private(self, path: str) -> bool:
        """Whether a path is in the `/tmp` that each call has of its own: no file of this machine."""
        if self.workspace is None or not path.startswith("/tmp/") or ".." in path.split("/"):
            return False
        place = os.path.normpath(path)
        roots = [root.path for root in self.workspace.roots]
        return not any(f"{place}/".startswith(f"{root}/") or root.startswith(f"{place}/") for root in roots)

    def _place(self, path: str) -> str:
        """Return where a path leads from here.

        From a directory that the line itself makes (`mkdir x && cd x && ls ..`) that is judged by the letters alone;
        when it is there, and may be a link, everything is read and judged again before the command runs.
        """
        found = os.path.join(self.here, path)
        return found if os.path.lexists(self.here) else os.path.normpath(found)
