"""Which file a name stands for: the project's own where it may be, the system's where it must."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from toolgate.guards.grammar import Command, Flag, Positional, Value
from toolgate.guards.programs import CommandTable, find_program
from toolgate.guards.unknown import read_argv
from toolgate.guards.words import ArgvRefused
from toolgate.kernel.policy import Word

ANY = (Positional(name="word", value=Value(), maximum=None),)


def program(directory: Path, name: str) -> str:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_text("#!/bin/sh\nexit 0\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    found = tmp_path / "work"
    found.mkdir()
    return found


def table(work: Path, *commands: Command) -> CommandTable:
    directories = (str(work / ".venv" / "bin"), str(work.parent / "tools" / "bin"), str(work.parent / "node" / "*"))
    return CommandTable({each.name: each for each in commands}, directories, (str(work),))


def test_the_projects_own_comes_first_only_where_the_grammar_says_so(work: Path) -> None:
    own = {name: program(work / ".venv" / "bin", name) for name in ("python3", "cat", "git", "frob")}
    found = table(
        work,
        Command(name="python3", from_workspace=True),
        Command(name="cat"),
        Command(name="git", from_workspace=True),
        Command(name="frob"),
    )
    assert found["python3"].executable == own["python3"]
    assert found["cat"].executable in ("/usr/bin/cat", "/bin/cat")
    assert found["git"].executable != own["git"]
    assert found["frob"].executable == own["frob"]  # nobody else has one
    assert table(work).find("git") != own["git"]
    assert (len(found), list(found), "cat" in found, "dog" in found) == (
        4,
        ["python3", "cat", "git", "frob"],
        True,
        False,
    )


def test_a_program_that_appears_later_is_found(work: Path) -> None:
    found = table(work, Command(name="frob", from_workspace=True))
    assert found["frob"].executable is None
    assert found["frob"].executable is None
    assert program(work / ".venv" / "bin", "frob") == found["frob"].executable


def test_a_command_with_a_network_is_not_taken_from_the_workspace_by_itself(work: Path) -> None:
    own = program(work / ".venv" / "bin", "frob")
    inner = Command(name="push", network=True)
    assert table(work, Command(name="frob", subcommands=(inner,)))["frob"].executable is None
    found = table(work, Command(name="frob", subcommands=(inner, Command(name="look")), from_workspace=True))
    asked = read_argv(found, ["frob", "push"], home=str(work))
    assert (asked.executable, asked.word) == (own, Word.ASK)
    assert "is a program of the workspace" in asked.reasons[-1]
    assert read_argv(found, ["frob", "look"], home=str(work)).word is Word.ALLOW
    assert found["frob"].asks
    assert not table(work, Command(name="frob", from_workspace=True))["frob"].asks


def test_a_persons_directory_comes_before_the_system_and_may_be_one_of_several(work: Path) -> None:
    tool = program(work.parent / "tools" / "bin", "cat")
    assert table(work, Command(name="cat"))["cat"].executable == tool
    program(work.parent / "node" / "v9", "node-x")
    newest = program(work.parent / "node" / "v20", "node-x")
    assert table(work, Command(name="node-x"))["node-x"].executable == newest


def test_a_directory_that_leads_into_the_workspace_is_the_workspaces(work: Path) -> None:
    program(work / "planted", "cat")
    (work.parent / "tools").mkdir()
    (work.parent / "tools" / "bin").symlink_to(work / "planted")
    found = table(work, Command(name="cat"))
    assert found["cat"].executable in ("/usr/bin/cat", "/bin/cat")
    assert found.places() == ([str(work.parent / "tools" / "bin")], [])


def test_the_path_of_a_projects_tool_is_read_by_the_grammar_of_its_name(work: Path) -> None:
    own = program(work / ".venv" / "bin", "frob")
    flag = Flag(names=("-x",), word=Word.DENY)
    found = table(work, Command(name="frob", flags=(flag,), positionals=ANY, from_workspace=True))
    for name in (".venv/bin/frob", "./.venv/bin/frob", own):
        parsed = read_argv(found, [name, "a"], home=str(work))
        assert (parsed.command, parsed.argv, parsed.word, parsed.unknown) == ("frob", (own, "a"), Word.ALLOW, "")
    assert read_argv(found, ["../work/.venv/bin/frob", "-x"], home=str(work)).word is Word.DENY
    other = program(work / "elsewhere", "frob")
    assert read_argv(found, ["elsewhere/frob", "a"], home=str(work)).executable == other
    assert read_argv(found, ["elsewhere/frob", "a"], home=str(work)).unknown


def test_a_name_without_grammar_is_found_in_tool_directories_too(work: Path) -> None:
    own = program(work / ".venv" / "bin", "frob")
    asked = read_argv(table(work), ["frob", "a"], home=str(work))
    assert (asked.executable, asked.word) == (own, Word.ASK)
    with pytest.raises(ArgvRefused, match="tool_directories"):
        read_argv(table(work), ["frobnicate"], home=str(work))
    beside = os.path.join(os.path.dirname(sys.executable), "python")
    assert find_program({}, "ls") in ("/usr/bin/ls", "/bin/ls")
    assert find_program({}, os.path.basename(beside)) is not None
