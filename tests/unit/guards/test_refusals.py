"""Every refusal names the word that was refused, and what would allow it or whom to ask."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolgate.guards import Refused
from toolgate.guards.argv import denied, parse
from toolgate.guards.files import PathFact, Workspace, check_text
from toolgate.guards.grammar import Command, pin
from toolgate.guards.line import read_command
from toolgate.guards.repository import repository_of
from toolgate.guards.unknown import check_variables, names_in, read_argv, shell_text
from toolgate.kernel.policy import Word

COMMANDS = {
    "cat": pin(Command(name="cat")),
    "rm": pin(Command(name="rm", word=Word.DENY, reason="it deletes")),
}


def read(*argv: Any, **environment: str) -> Callable[[Path], object]:
    return lambda place: read_argv(COMMANDS, list(argv), environment=environment, home=str(place))


def line(text: str) -> Callable[[Path], object]:
    return lambda place: read_command(COMMANDS, text, [], {}, str(place))


def linked_repository(place: Path) -> object:
    (place / "real").mkdir()
    (place / ".git").symlink_to("real")
    return repository_of(str(place), [str(place)])


def outside(place: Path) -> object:
    workspace = Workspace(str(place))
    try:
        return workspace.open_parent(
            PathFact(given="../x", path="/elsewhere/x", root="/elsewhere", kind="file", size=0)
        )
    finally:
        workspace.close()


REFUSED: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "no list": (lambda _: parse(COMMANDS, "cat x"), "cat x", "a list of"),
    "no text": (read("cat", 7), "Word 1 of the command line ('7')", "Put it in quotes"),
    "NUL": (read("cat", "a\0b"), r"'a\x00b'", "Leave it out"),
    "half a character": (read("cat", "\udc80"), r"'\udc80'", "another way"),
    "denied": (read("rm", "-x"), "'rm' is denied", "`decision: ask`"),
    "denied for a shell": (line("for x in a; do rm $x; done"), "'rm' is denied", "`decision: ask`"),
    "denied by the tool": (lambda _: _raise(), "'rm'", "`decision: ask`"),
    "a variable": (read("nl", LD_PRELOAD="x"), "'LD_PRELOAD'", "Leave it out"),
    "no variable": (lambda _: check_variables({"a b": "x"}), "'a b'", "Rename it"),
    "no program": (read("./none"), "'./none'", "executable"),
    "no name": (read("-x"), "'-x'", "such as 'git'"),
    "not installed": (read("no-such-program"), "'no-such-program'", "tool_directories"),
    "too long for a shell": (lambda _: shell_text(COMMANDS, "echo " + "x" * 10**6, "why"), "'echo xxx", "to a file"),
    "too many names": (lambda _: names_in([f"./{n}" for n in range(10**5)]), "'./", "under `commands:`"),
    "an empty path": (lambda _: check_text(""), "''", "not empty"),
    "a NUL in a path": (lambda _: check_text("a\0"), r"'a\x00'", "Leave it out"),
    "half a character in a path": (lambda _: check_text("é\udc80"), r"\udc80", "UTF-8"),
    "a long path": (lambda _: check_text("x" * 300), "'xxx", "Choose a shorter one"),
    "a path outside": (outside, "'../x'", "`paths:`"),
    "a linked repository": (linked_repository, ".git' is a link", "run the command where"),
}  # fmt: skip


def _raise() -> None:
    raise denied(parse(COMMANDS, ["rm"]))


@pytest.mark.parametrize("kind", REFUSED)
def test_a_refusal_names_the_word_and_the_way_out(kind: str, tmp_path: Path) -> None:
    attempt, word, way = REFUSED[kind]
    with pytest.raises(Refused) as refusal:
        attempt(tmp_path)
    said = str(refusal.value)
    assert word in said
    assert way in said
    assert "\0" not in said
