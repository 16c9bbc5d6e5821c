"""The `toolgate` commands that pages show, taken apart and held against the command line's own tree."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import typer.main

from toolgate.interfaces.cli.app import app

TREE: Any = typer.main.get_command(app)
_ENDS = {"|", "||", "&&", "&", ";", ">", ">>", "<", "2>", ")", "("}
_ASSIGNMENT = re.compile(r"^\w+=")


def commands_in(script: str) -> Iterator[list[str]]:
    """Return the words of every `toolgate` command of a script, without what the shell does with it."""
    for line in script.replace("\\\n", " ").splitlines():
        words = list(_words(line))
        for start, word in enumerate(words):
            if word == "toolgate" and all(_ASSIGNMENT.match(before) for before in _before(words[:start])):
                yield list(_until_the_end(words[start + 1 :]))


def _words(line: str) -> Iterator[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>()")
    lexer.whitespace_split = True
    return iter(lexer)


def _before(words: list[str]) -> list[str]:
    """What stands between the last end of a command and here."""
    ends = [place for place, word in enumerate(words) if word in _ENDS]
    return words[ends[-1] + 1 :] if ends else words


def _until_the_end(words: list[str]) -> Iterator[str]:
    for word in words:
        if word in _ENDS:
            return
        yield word


def problem_with(words: list[str]) -> str | None:
    """Say what the command line would not understand of a command; None where it would."""
    command, rest = TREE, list(words)
    while rest and rest[0] in getattr(command, "commands", {}):
        command = command.commands[rest.pop(0)]
    if getattr(command, "commands", {}) and (rest or command is not TREE):
        return f"there is no command {' '.join(words)!r}" if rest and rest[0] != "--help" else None
    return _problem_with_options(command, rest)


def _problem_with_options(command: Any, rest: list[str]) -> str | None:
    known = {name: one for one in command.params for name in (*one.opts, *one.secondary_opts) if name.startswith("-")}
    given = 0
    while rest:
        word = rest.pop(0)
        name, equals, _ = word.partition("=")
        if not word.startswith("-") or word == "-":
            given += 1
        elif name in ("--help", "-h"):
            return None
        elif name not in known:
            return f"{command.name} has no option {name}"
        elif not equals and not known[name].is_flag:
            if not rest:
                return f"{name} of {command.name} needs a value"
            rest.pop(0)
    return _problem_with_arguments(command, given)


def _problem_with_arguments(command: Any, given: int) -> str | None:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    most = None if any(one.nargs == -1 for one in arguments) else len(arguments)
    if most is not None and given > most:
        return f"{command.name} takes {most} arguments, not {given}"
    least = sum(1 for one in arguments if one.required)
    return f"{command.name} needs {least} arguments, not {given}" if given < least else None
