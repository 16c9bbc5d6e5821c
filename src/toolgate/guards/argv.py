"""Read a command line by its grammar: the words it may run with, and every path it touches.

The parse follows the programs' own rules (getopt's, or find's where the grammar says so), so what is checked is
what runs. There is no shell: characters such as `;` or `$` mean nothing here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from types import MappingProxyType
from typing import NamedTuple, NoReturn

from toolgate.guards.files import Access
from toolgate.guards.grammar import Command, Flag, Limits, Positional, Value, compiled
from toolgate.guards.variables import variable_problem
from toolgate.guards.words import ArgvRefused, checked
from toolgate.kernel.policy import Word

_RANK = {Word.ALLOW: 0, Word.ASK: 1, Word.DENY: 2}
_NUMBER = re.compile(r"-\d{1,9}\Z")
_INTEGER = re.compile(r"[+-]?\d{1,18}\Z")
# Refs, ranges, ancestry, reflogs and `rev:path`; never a leading dash, blank or control character.
_REV = re.compile(r"(?!-)(?:@\{[^}\x00-\x1f]{0,80}\}|[^\s\x00-\x1f\x7f\\]){1,1024}\Z")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_MAX_NESTED = 5
_SHOWN_PATTERN = 80
"""How long a pattern may be that is shown: a longer one tells nobody anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathUse:
    """A path that a command touches, what it does to it, and where in the command line it stands."""

    path: str
    access: Access
    argument: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """A command line. `argv` is what runs; `word` the strictest of all its parts.

    unknown: why no grammar knows it, where a person is asked about it as it stands.
    has_input: something is piped or redirected into it. runs: the commands that it runs in its turn.
    programs: their files, but for those that the project's own tools are found by.
    """

    command: str
    subcommands: tuple[str, ...]
    executable: str
    argv: tuple[str, ...]
    word: Word
    reasons: tuple[str, ...]
    paths: tuple[PathUse, ...]
    environment: Mapping[str, str]
    limits: Limits
    network: bool
    writes: bool
    unknown: str = ""
    has_input: bool = False
    runs: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()


def parse(
    commands: Mapping[str, Command],
    argv: Sequence[str],
    *,
    environment: Mapping[str, str] = MappingProxyType({}),
    has_input: bool = False,
) -> Parsed:
    """Return what a command line means; raise ArgvRefused where the table knows no such line.

    has_input: there is a standard input to read, so that no file need be named.
    """
    wrappers, words, variables = unwrap(commands, checked(argv), environment)
    name, command = words[0], _found(commands, words[0])
    if command.executable is None:
        raise _not_pinned(name)
    reading = _Reading(commands, has_input=has_input)
    for wrapper in wrappers:
        reading.count(wrapper, wrapper.name)
    reading.run(command, name, words[1:])
    _check_size(command, words)
    for at, inner in reading.inner:
        if inner.executable is None:
            raise _not_pinned(inner.name)
        words[at] = inner.executable
    return Parsed(
        command=name,
        subcommands=tuple(reading.subcommands),
        executable=command.executable,
        argv=(command.executable, *words[1:]),
        word=max((each.word for each in reading.said), key=_RANK.__getitem__),
        reasons=tuple(each.reason for each in reading.said if each.word is not Word.ALLOW),
        paths=tuple(reading.paths),
        environment=_environment(reading.last, variables),
        limits=reading.last.limits,
        network=any(each.network for each in reading.said),
        writes=any(each.writes for each in reading.said),
        has_input=has_input,
        runs=tuple(reading.runs),
        programs=tuple(words[at] for at, _ in reading.inner),
    )


def unwrap(
    commands: Mapping[str, Command], words: Sequence[str], environment: Mapping[str, str]
) -> tuple[list[Command], list[str], dict[str, str]]:
    """Return what only stands in front of a line (`env CI=1`, `time`), the line itself, and all its variables."""
    wrappers: list[Command] = []
    inside, variables = list(words), dict(environment)
    while True:
        command = commands.get(inside[0])
        count = next((at for at, word in enumerate(inside[1:], 1) if not _ASSIGNMENT.match(word)), 0)
        if command is None or command.runs != "alone" or not count or inside[count].startswith("-"):
            return wrappers, inside, variables
        variables |= dict(word.split("=", 1) for word in inside[1:count])
        wrappers.append(command)
        inside = inside[count:]


def _found(commands: Mapping[str, Command], name: str) -> Command:
    if "/" in name or name != name.strip() or any(char.isspace() for char in name):
        raise ArgvRefused(
            "not_bare",
            f"{name!r} is not a bare command name. Give the name alone, such as 'git', and its arguments one by one.",
        )
    command = commands.get(name)
    if command is None:
        raise ArgvRefused("unknown_command", f"Command {name!r} is not in the policy's table of commands.")
    return command


def _not_pinned(name: str) -> ArgvRefused:
    return ArgvRefused(
        "not_pinned",
        f"Command '{name}' is not installed in the system's directories, nor in the policy's `tool_directories`. "
        f"Install it, or name its place in the policy: `commands: {{{name}: {{executable: /path}}}}`.",
    )


def denied(parsed: Parsed) -> ArgvRefused:
    """Return the refusal of a command that the policy's grammar denies."""
    said = "; ".join(parsed.reasons) or "it gives no reason"
    line = " ".join((parsed.command, *parsed.subcommands))
    return ArgvRefused(
        "denied",
        f"The policy denies this command, '{line}': {said}. With `decision: ask` under `commands:` a person is asked.",
    )


def _check_size(command: Command, words: Sequence[str]) -> None:
    limits = command.limits
    if len(words) > limits.max_args or sum(len(word.encode()) + 1 for word in words) > limits.max_bytes:
        raise ArgvRefused(
            "too_long",
            f"'{command.name}' takes at most {limits.max_args} arguments and {limits.max_bytes} bytes of them; it was "
            f"given {len(words)} with {sum(len(word.encode()) + 1 for word in words)} bytes.",
        )


def _environment(command: Command, given: Mapping[str, str]) -> Mapping[str, str]:
    for name, value in given.items():
        problem = variable_problem(command, name, value)
        if problem is not None:
            raise ArgvRefused("environment", problem)
    return MappingProxyType(dict(given))


class _Said(NamedTuple):
    """What one part of a line leads to. command: whose own it is; a flag's is nobody's."""

    word: Word
    reason: str
    network: bool
    writes: bool
    command: Command | None


@dataclass(slots=True)
class _Reading:
    """One pass over a command line."""

    commands: Mapping[str, Command]
    title: str = ""
    subcommands: list[str] = field(default_factory=list)
    said: list[_Said] = field(default_factory=list)
    paths: list[PathUse] = field(default_factory=list)
    last: Command = field(init=False)
    words: list[str] = field(default_factory=list)
    filled: set[str] = field(default_factory=set)
    spared: set[str] = field(default_factory=set)
    has_input: bool = False
    inner: list[tuple[int, Command]] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)
    length: int = 0

    def run(self, command: Command, name: str, words: list[str]) -> None:
        self.title, self.words, self.length = name, words, len(words) + 1
        self._level(command)

    def count(self, command: Command, title: str) -> None:
        reason = command.reason or f"'{title}' is set to {command.word}"
        self.said.append(_Said(command.word, reason, command.network, command.writes, command))

    def _level(self, command: Command) -> None:
        """Read one command with its flags; a subcommand takes over what follows it."""
        self.last = command
        if command.only_lines:
            self._refuse("unknown_line", "is known only by the exact lines the policy lists")
        self.count(command, self.title)
        self.filled, self.spared = set(), set()
        loose: list[str] = []
        while self.words:
            word = self.words.pop(0)
            if word == "--":
                return self._after_dashes(command, loose)
            flag, attached = self._flag(command, word)
            if flag is not None:
                if self._use(command, flag, attached):
                    return None
            elif command.subcommands and not loose:
                if word in command.by_subcommand:
                    return self._subcommand(command, command.by_subcommand[word])
                if not command.positionals:
                    self._refuse("unknown_subcommand", f"has no subcommand {word!r} in the policy")
                loose.append(word)
            else:
                loose.append(word)
            if loose and not command.interspersed:
                loose += self.words
                self.words = []
        return self._finish(command, loose, [])

    def _subcommand(self, above: Command, command: Command) -> None:
        if command.calms:
            self._calm(above)
        self._descend(command)

    def _descend(self, command: Command) -> None:
        self.subcommands.append(command.name)
        self.title = f"{self.title} {command.name}"
        self._level(command)

    def _after_dashes(self, command: Command, loose: list[str]) -> None:
        if command.dashes == "refused":
            self._refuse("dashes", "does not take '--'")
        rest, self.words = self.words, []
        if command.after_dashes is None:
            self._finish(command, loose + rest, [])
        else:
            self._finish(command, loose, rest)

    def _finish(self, command: Command, loose: list[str], rest: list[str]) -> None:
        if command.needs_subcommand:
            self._refuse("missing_argument", f"needs a subcommand: {', '.join(command.by_subcommand)}")
        wanted = [
            replace(item, minimum=0) if item.name in self.spared or self._is_read_instead(item) else item
            for item in command.positionals
            if item.name not in self.filled
        ]
        if command.runs is not None:
            return self._run_inner(command, wanted, loose)
        self._positionals(wanted, loose)
        if command.after_dashes is not None and rest:
            self._positionals([command.after_dashes], rest)
        return None

    def _run_inner(self, command: Command, wanted: list[Positional], loose: list[str]) -> None:
        """Read what follows the positionals as a command of its own."""
        count = sum(item.minimum for item in wanted)
        self._positionals(wanted, loose[:count])
        inside = loose[count:]
        if not inside:
            if command.runs == "alone":
                return
            self._refuse("missing_argument", "needs a command to run")
        name = inside[0]
        # Git is never run but with its configuration neutralised, which only the gate itself can see to.
        if name == "git" or (command.run_only and name not in command.run_only):
            self._refuse("bad_value", f"runs no {name!r} unasked")
        at = self.length - len(inside)
        inner = self._hand_over(name, inside[1:])
        if command.runs != "project":
            self.inner.append((at, inner))
        elif inner.has_network:  # an agent can write the project's tools
            self._refuse("bad_value", "gives the project's own tools no network unasked")

    def _is_read_instead(self, item: Positional) -> bool:
        return self.has_input and item.value.kind == "path" and item.value.access == "read"

    def _positionals(self, wanted: list[Positional], loose: list[str]) -> None:
        """Give each positional its share: what it needs first, the rest to those that take more, in order."""
        spare = len(loose) - sum(item.minimum for item in wanted)
        if spare < 0:
            needed = accumulate(item.minimum for item in wanted)
            missing = next(item for item, count in zip(wanted, needed, strict=True) if count > len(loose))
            nothing = "; there is no standard input to read" if missing.value.kind == "path" else ""
            self._refuse("missing_argument", f"needs an argument `{missing.name}`{nothing}")
        start = 0
        for item in wanted:
            room = spare if item.maximum is None else min(spare, item.maximum - item.minimum)
            end = start + item.minimum + room
            spare -= room
            for word in loose[start:end]:
                self._value(item.value, word, item.name)
            start = end
        if start < len(loose):
            self._refuse("unexpected_argument", f"takes no further argument, such as {loose[start]!r}")

    def _flag(self, command: Command, word: str) -> tuple[Flag | None, str | None]:
        """Return the flag a word is, with the value attached to it; None for an argument that is no flag."""
        exact = command.by_flag.get(word)
        if exact is not None:
            return exact, None
        if not word.startswith("-") or word == "-":
            return None, None
        if command.numbers and _NUMBER.match(word):
            return _NUMBER_FLAG, None
        if word.startswith("--") or not command.combined:
            name, equals, value = word.partition("=")
            flag = command.by_flag.get(name)
            if flag is not None and equals:
                return self._attached(flag, name, value)
            self._refuse("unknown_flag", f"does not know the flag {name!r} in the policy")
        return self._short(command, word)

    def _attached(self, flag: Flag, name: str, value: str) -> tuple[Flag, str]:
        if flag.value is None:
            self._refuse("unexpected_argument", f"takes no value with {name!r}")
        return flag, value

    def _short(self, command: Command, word: str) -> tuple[Flag, str | None]:
        """Read `-la`, `-n5` and their mixtures: switches first, the last one with its value."""
        for index, char in enumerate(word[1:], start=1):
            flag = command.by_flag.get(f"-{char}")
            if flag is None:
                self._refuse("unknown_flag", f"does not know the flag '-{char}' (in {word!r}) in the policy")
            rest = word[index + 1 :]
            if flag.value is not None:
                return flag, rest or None
            if flag.ends and rest:
                self._refuse("unknown_flag", f"takes '-{char}' only by itself")
            if not rest:
                return flag, None
            self._use(command, flag, None)
        raise AssertionError("a short flag has at least one letter")  # pragma: no cover

    def _use(self, command: Command, flag: Flag, attached: str | None) -> bool:
        """Account for a flag; True where nothing after it is this command's."""
        name = flag.names[0]
        reason = flag.reason or f"'{self.title} {name}' is set to {flag.word}"
        self.said.append(_Said(flag.word, reason, False, flag.writes, None))
        if flag.calms:
            self._calm(command)
        if flag.fills is not None:
            self.filled.add(flag.fills)
        if flag.spares is not None:
            self.spared.add(flag.spares)
        value = attached
        if flag.value is not None and (attached is not None or not flag.optional):
            if value is None:
                if not self.words:
                    self._refuse("missing_value", f"needs a value after {name!r}")
                value = self.words.pop(0)
            self._value(flag.value, value, name)
        if flag.executes:
            self._execute(flag)
        if flag.runs:
            self._hand_over(value or "", self.words)
            return True
        if flag.ends:
            rest, self.words = self.words, []
            self._finish(command, rest, [])
            return True
        return False

    def _execute(self, flag: Flag) -> None:
        """Read a command that ends with `;` or `{} +` by its own grammar."""
        ends = (
            number
            for number, (before, word) in enumerate(zip(("", *self.words), self.words, strict=False))
            if word == ";" or (word == "+" and before == "{}")
        )
        end = next(ends, None)
        if not end:
            self._refuse("missing_value", f"needs a command after {flag.names[0]!r}, and a ';' or '{{}} +' at its end")
        at, inside = self.length - len(self.words), self.words[:end]
        del self.words[: end + 1]
        command = self.commands.get(inside[0]) if inside[0] in flag.executes else None
        if command is None:
            self._refuse("bad_value", f"runs no {inside[0]!r} unasked")
        within = _Reading(self.commands, has_input=False)
        within.run(command, inside[0], inside[1:])
        self.said += within.said
        self.paths += within.paths
        self.runs += (inside[0], *within.runs)
        self.inner.append((at, command))

    def _hand_over(self, name: str, words: list[str]) -> Command:
        command = self.commands.get(name)
        if command is None:
            said = f"'{self.title}' would run {name[:200]!r}, which is not in the policy's table of commands."
            raise ArgvRefused("unknown_command", said, program=name)
        if len(self.runs) == _MAX_NESTED:
            self._refuse("bad_value", f"runs a command in a command more than {_MAX_NESTED} times")
        self.words = words
        self.runs.append(name)
        self._descend(command)
        return command

    def _value(self, value: Value, word: str, argument: str) -> None:
        if value.excludes is not None and compiled(value.excludes).search(word) is not None:
            self._refuse("bad_value", f"takes no {argument!r} such as {word[:200]!r} unasked")
        if value.matches is not None and compiled(value.matches).fullmatch(word) is None:
            shown = value.matches if len(value.matches) <= _SHOWN_PATTERN else "those its grammar lists"
            self._refuse("bad_value", f"takes a text like {shown} as {argument!r}, not {word[:200]!r}")
        problem = _CHECKS[value.kind](self, value, word, argument)
        if problem is not None:
            self._refuse("bad_value", f"takes {problem} as {argument!r}, not {word[:200]!r}")

    def _as_text(self, value: Value, word: str, argument: str) -> str | None:
        return None

    def _as_integer(self, value: Value, word: str, argument: str) -> str | None:
        if not _INTEGER.match(word):
            return "a whole number"
        number = int(word)
        low = value.minimum is not None and number < value.minimum
        high = value.maximum is not None and number > value.maximum
        return f"a number from {value.minimum} to {value.maximum}" if low or high else None

    def _as_choice(self, value: Value, word: str, argument: str) -> str | None:
        return None if word in value.choices else f"one of {', '.join(value.choices)}"

    def _as_path(self, value: Value, word: str, argument: str) -> str | None:
        if word == "-" and value.access == "read":
            if self.has_input:
                return None
            return "the name of a file (there is no standard input; a file of that name is './-')"
        return self._as_name(value, word, argument)

    def _as_name(self, value: Value, word: str, argument: str) -> str | None:
        if not word:
            return "a path"
        self.paths.append(PathUse(path=word, access=value.access, argument=argument))
        return None

    def _as_rev(self, value: Value, word: str, argument: str) -> str | None:
        if not _REV.match(word):
            return "a revision"
        # `rev:path` reads a file out of the history: the same names are protected there.
        _, colon, path = word.partition(":")
        if colon and path and not path.startswith("/"):
            self.paths.append(PathUse(path=path, access=value.access, argument=argument))
        return None

    def _as_path_or_rev(self, value: Value, word: str, argument: str) -> str | None:
        """Git decides by looking, so it is checked as both: a revision, read as a path, is a name nobody has."""
        self._as_rev(value, word, argument)
        return self._as_name(value, word, argument)

    def _as_glob(self, value: Value, word: str, argument: str) -> str | None:
        return None if word else "a pattern"

    def _calm(self, command: Command) -> None:
        self.said = [each for each in self.said if each.command is not command or each.word is Word.DENY]

    def _refuse(self, kind: str, problem: str) -> NoReturn:
        raise ArgvRefused(kind, f"'{self.title}' {problem}.")


_CHECKS = {
    "str": _Reading._as_text,
    "int": _Reading._as_integer,
    "enum": _Reading._as_choice,
    "path": _Reading._as_path,
    "rev": _Reading._as_rev,
    "glob": _Reading._as_glob,
    "path_or_rev": _Reading._as_path_or_rev,
}
_NUMBER_FLAG = Flag(names=("-NUMBER",))
