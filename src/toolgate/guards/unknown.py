"""Command lines no grammar knows: what a person is asked about them, and what stays refused whoever is asked.

An unknown line has no network, may write the workspace, and every word of it that could name a file is judged as
one. What the grammar denies by name stays denied, and a program that is in no trusted directory cannot be run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from toolgate.guards.argv import Parsed, PathUse, parse, unwrap
from toolgate.guards.grammar import TRUSTED_DIRECTORIES, Command, Flag, Limits
from toolgate.guards.programs import CommandTable, find_program
from toolgate.guards.words import ArgvRefused
from toolgate.kernel.policy import Word

UNKNOWN_KINDS = frozenset(
    "unknown_command not_bare unknown_subcommand unknown_flag unexpected_argument missing_argument missing_value "
    "bad_value dashes environment unknown_line".split()
)
"""The refusals that mean that the grammar does not know a line. Any other is final."""
LIMITS = Limits(timeout_s=600.0)
STARTERS = frozenset(
    "bash command dash env exec ionice nice nohup parallel setsid sh stdbuf sudo time timeout watch xargs zsh".split()
)
"""Programs that start the program their arguments name."""
FIXED_VARIABLES = frozenset("BASH_ENV ENV HOME IFS NODE_OPTIONS PATH PERL5OPT PYTHONHOME RUBYOPT SHELL TMPDIR".split())
FIXED_PREFIXES = ("LD_", "DYLD_", "GIT_", "BASH_FUNC_", "TOOLGATE_")
_VISIBLE = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/dev", "/proc", "/tmp")
"""What every sandbox shows of its own, so that naming it gives nothing away."""
_PIECES = re.compile(r"[\s'\"`()<>|&;,=:@{}$]+")
_URL = re.compile(r"\b(?:https?|ssh|git)://[A-Za-z0-9@.:/_~%+-]*")
"""What names a place on another machine, and no file of this one."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_MAX_NAMES = 2000
_MAX_TEXT = 32_768


def read_argv(
    commands: Mapping[str, Command],
    argv: Sequence[str],
    *,
    environment: Mapping[str, str] = MappingProxyType({}),
    home: str,
    has_input: bool = False,
) -> Parsed:
    """Return what a command line means by its grammar, or as one that a person must be asked about.

    home: the absolute directory it starts in. Raises ArgvRefused for what cannot be run, asked or not.
    """
    argv = _bare(commands, argv, home)
    try:
        return _asked(commands, parse(commands, argv, environment=environment, has_input=has_input))
    except ArgvRefused as error:
        if error.kind not in UNKNOWN_KINDS:
            raise
        denied = denial(commands, argv)
        if denied is not None:
            raise ArgvRefused("denied", denied) from None
        if error.program:  # nobody need be asked about what is not there
            _executable(commands, error.program, home)
        _, words, variables = unwrap(commands, argv, environment)
        found = _unknown(commands, words, variables, home, str(error))
    found = replace(found, has_input=has_input)
    known = commands.get(argv[0])
    for line in () if known is None else known.lines:
        if line.fits(argv[1:], environment, has_input):
            return replace(found, word=Word.ALLOW, reasons=(), writes=line.writes, unknown="")
    return found


def _bare(commands: Mapping[str, Command], argv: Sequence[str], home: str) -> Sequence[str]:
    """Return the line with a bare name, where it names the very file that the name stands for: `.venv/bin/pytest`."""
    if not isinstance(commands, CommandTable) or not argv or not isinstance(argv[0], str) or "/" not in argv[0]:
        return argv
    name = commands.bare(os.path.normpath(os.path.join(home, argv[0])))
    return argv if name is None else [name, *argv[1:]]


def _asked(commands: Mapping[str, Command], parsed: Parsed) -> Parsed:
    """Return a line as one to ask about, where it would give a network to a program that an agent can write."""
    if not isinstance(commands, CommandTable) or not parsed.network or parsed.word is not Word.ALLOW:
        return parsed
    own = next((each for each in (parsed.executable, *parsed.programs) if commands.is_own(each)), None)
    if own is None:
        return parsed
    why = f"'{os.path.basename(own)}' is a program of the workspace ({own}) and would run with a network"
    return replace(parsed, word=Word.ASK, reasons=(*parsed.reasons, why))


def _unknown(
    commands: Mapping[str, Command], argv: list[str], environment: dict[str, str], home: str, why: str
) -> Parsed:
    check_variables(environment)
    name = argv[0]
    known = commands.get(name)
    executable = _executable(commands, name, home)
    paths = [
        *([name] if "/" in name and not _is_trusted(executable) else ()),
        *names_in([*argv[1:], *environment.values()]),
    ]
    return Parsed(
        command=os.path.basename(name),
        subcommands=(),
        executable=executable,
        argv=(executable, *argv[1:]),
        word=Word.ASK,
        reasons=(why,),
        paths=tuple(PathUse(path=path, access="read", argument="command line") for path in paths),
        environment=MappingProxyType(environment),
        limits=LIMITS if known is None else known.limits,
        network=False,
        writes=True,
        unknown=why,
    )


def shell_text(commands: Mapping[str, Command], text: str, why: str) -> Parsed:
    """Return a line that only a shell could run, as one that a person must be asked about, to the letter."""
    if "\0" in text or len(text) > _MAX_TEXT:
        raise ArgvRefused(
            "too_long",
            f"The line {text[:40]!r} is refused: one for a shell has at most {_MAX_TEXT} characters, none of them NUL. "
            "Write it to a file, and run that.",
        )
    words = [word for word in re.split(r"[\s'\"`(){}<>|&;$=]+", text) if word]
    denied = denial(commands, ["sh", *words])
    if denied is not None:
        raise ArgvRefused("denied", denied)
    shell = _executable({}, "bash" if find_program({}, "bash") else "sh", "/")
    return Parsed(
        command=os.path.basename(shell),
        subcommands=(),
        executable=shell,
        argv=(shell, "-c", text),
        word=Word.ASK,
        reasons=(why,),
        paths=tuple(PathUse(path=path, access="read", argument="command line") for path in names_in(words)),
        environment=MappingProxyType({}),
        limits=LIMITS,
        network=False,
        writes=True,
        unknown=why,
    )


def check_variables(environment: Mapping[str, object]) -> None:
    """Refuse variables that choose which code runs; nobody sets those from outside."""
    for name, value in environment.items():
        if not isinstance(value, str) or "\0" in value or not _VARIABLE.match(name):
            raise ArgvRefused(
                "environment_fixed",
                f"The variable {name[:80]!r} must be letters, digits and `_`, with a text without NUL. Rename it.",
            )
        if name in FIXED_VARIABLES or name.startswith(FIXED_PREFIXES):
            raise ArgvRefused(
                "environment_fixed",
                f"The variable {name!r} decides which code runs; a command line cannot set it, and no policy lets it. "
                "Leave it out.",
            )


def _executable(commands: Mapping[str, Command], name: str, home: str) -> str:
    if "/" in name:
        found = os.path.normpath(os.path.join(home, name))
        if os.path.isfile(found) and os.access(found, os.X_OK):
            return found
        raise ArgvRefused(
            "not_installed",
            f"There is no program {name!r} that could be run from {home}. Name a file that is there and is executable.",
        )
    if not name or name.startswith("-") or any(char.isspace() for char in name):
        raise ArgvRefused(
            "not_bare",
            f"{name[:80]!r} is not the name of a program. Give a name such as 'git', and its arguments one by one.",
        )
    known = commands.get(name)
    executable = find_program(commands, name) if known is None else known.executable
    if executable is None:
        places = ", ".join(TRUSTED_DIRECTORIES)
        raise ArgvRefused(
            "not_installed",
            f"Command '{name}' is not installed in a trusted directory ({places}), so nobody is asked about it. "
            f"Install it there, or name its directory in the policy: `tool_directories: [/path]`.",
        )
    return executable


def _is_trusted(executable: str) -> bool:
    return os.path.dirname(executable) in TRUSTED_DIRECTORIES


_ASKS = "With `decision: ask` there, under `commands:`, a person is asked."


def denial(commands: Mapping[str, Command], argv: Sequence[str]) -> str | None:
    """Return why a line is denied by a word of the grammar, wherever in the line that word stands."""
    for start, word in enumerate(argv):
        command = commands.get(os.path.basename(word)) if start == 0 else commands.get(word)
        if command is not None:
            found = _denied_in(command, command.name, list(argv[start + 1 :]))
            if found is not None:
                return found
        if start == 0 and os.path.basename(word) not in STARTERS:
            return None
    return None


def _denied_in(command: Command, title: str, words: list[str]) -> str | None:
    if command.word is Word.DENY:
        return f"'{title}' is denied by the policy" + (f": {command.reason}. " if command.reason else ". ") + _ASKS
    for flag in command.flags:
        if flag.word is Word.DENY and any(_uses(flag, word) for word in words):
            reason = f": {flag.reason}." if flag.reason else "."
            return f"'{title} {flag.names[0]}' is denied by the policy{reason} {_ASKS}"
    for number, word in enumerate(words):
        inner = command.by_subcommand.get(word)
        if inner is not None:
            found = _denied_in(inner, f"{title} {word}", words[number + 1 :])
            if found is not None:
                return found
    return None


def asked_word(command: Command, words: Sequence[str], title: str = "") -> str | None:
    """Return the word of a line that the grammar has a person asked about, though it does not know the line."""
    title = title or command.name
    if command.word is Word.ASK:
        return title
    for flag in command.flags:
        if flag.word is Word.ASK and any(_uses(flag, word) for word in words):
            return f"{title} {flag.names[0]}"
    inner = (
        (number, command.by_subcommand[word]) for number, word in enumerate(words) if word in command.by_subcommand
    )
    found = (asked_word(each, words[number + 1 :], f"{title} {each.name}") for number, each in inner)
    return next((asked for asked in found if asked is not None), None)


def _uses(flag: Flag, word: str) -> bool:
    """Whether a word may be this flag: by its name, with a value, or among other letters."""
    for name in flag.names:
        if word == name or word.startswith(f"{name}="):
            return True
        if len(name) == 2 and len(word) > 1 and word[0] == "-" != word[1] and name[1] in word[1:]:
            return True
    return False


def names_in(words: Iterable[str]) -> list[str]:
    """Return every text in the words that could name a file outside of what each sandbox shows anyway."""
    found = list(dict.fromkeys(name for word in words for name in _names(word) if _could_be_path(name)))
    if len(found) > _MAX_NAMES:
        raise ArgvRefused(
            "too_long",
            f"A line without grammar may name at most {_MAX_NAMES} things, this one also {found[_MAX_NAMES][:40]!r}. "
            "Run it in parts, or add a grammar for it under `commands:` in the policy.",
        )
    return found


def _names(word: str) -> Iterator[str]:
    whole = word.removeprefix("file://")
    yield whole
    if whole.startswith("-"):
        yield whole[2:]
    for piece in _PIECES.split(_URL.sub(" ", whole)):
        if piece.strip("/"):  # a slash between other characters names nothing
            yield piece
            yield piece.lstrip("-")


def _could_be_path(name: str) -> bool:
    if not name or name.startswith("-") or len(name) > 1024 or _CONTROL.search(name) or "://" in name:
        return False
    if not name.startswith("/"):
        return not name.startswith("//")
    top = "/" + name.lstrip("/").partition("/")[0]
    if any(f"{os.path.normpath(name)}/".startswith(f"{place}/") for place in _VISIBLE):
        return False
    return os.path.lexists(top)
