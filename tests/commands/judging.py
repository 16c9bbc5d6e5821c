"""Judge calls by a shipped profile, the same on every machine: no outcome depends on which programs are installed."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from toolgate.catalog import built_in_tools
from toolgate.guards import grammar, programs
from toolgate.guards.edges import Edges
from toolgate.guards.files import Workspace
from toolgate.kernel.policy import Word
from toolgate.kernel.tool import ToolDefinition
from toolgate.policy import FilePolicy, load_policy
from toolgate.policy.explain import explain, question_of
from toolgate.policy.profiles import Profile, render

_FILES = ("README.md", "src/main.py", "tests/test_main.py", "a.txt", "b.txt", ".env", "script.py", "toolgate.yaml")
_PROGRAMS = ("script.sh", "main")
_JOINED = re.compile(r"&&|\|\||[|;&\n]")
_SHELL = re.compile(r"[|&;<>$`*?]")
_BARE = re.compile(r"[A-Za-z0-9_.+-]+\Z")
_SHELLS = ("bash", "sh")


def make_workspace(top: Path) -> Path:
    """Return a workspace with files, secrets and links; what lies beside it is not the agent's."""
    root = top / "root"
    (root / "src").mkdir(parents=True)
    (root / "tests").mkdir()
    (root / ".git" / "hooks").mkdir(parents=True)
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    for name in (*_FILES, *_PROGRAMS):
        (root / name).write_text("x\n")
    for name in _PROGRAMS:
        (root / name).chmod(0o755)
    (top / "secret").write_text("x")
    (root / "link-in").symlink_to("README.md")
    (root / "link-out").symlink_to("../secret")
    (root / "link-out-absolute").symlink_to(top / "secret")
    (root / "link-dir").symlink_to("..")
    (root / "link-env").symlink_to(".env")
    os.link(root / ".env", root / "hard-env")
    return root


def load(profile: Profile, workspace: Path) -> FilePolicy:
    """Return a shipped profile for the workspace; every program it has a grammar for counts as installed."""
    for name, text in render(profile).items():
        (workspace.parent / profile).mkdir(exist_ok=True)
        (workspace.parent / profile / name).write_text(text)
    policy = load_policy(workspace.parent / profile / "toolgate.yaml", workspace=workspace)
    anywhere = {
        name: replace(command, executable=command.executable or f"/usr/bin/{name}")
        for name, command in policy.commands.items()
    }
    object.__setattr__(policy, "commands", anywhere)
    return policy


@cache
def _tool_named(name: str, workspace: Workspace) -> dict[str, ToolDefinition]:
    return {item.name: item for item in built_in_tools(Edges(workspace=workspace)) if item.name == name}


def verdict(policy: FilePolicy, tool: str, **arguments: Any) -> Word:
    """Return the word a call gets."""
    question = question_of({"tool": tool, "arguments": arguments}, _tool_named(tool, policy.workspace))
    return explain(policy, question).ruling.word


def line_word(policy: FilePolicy, line: str) -> Word:
    """Return the word of a line as it is written."""
    return verdict(policy, "execute_command", command=line)


def words_of(policy: FilePolicy, line: str) -> set[Word]:
    """Return the word of a line as it is written and, where a shell adds nothing, of its words given one by one."""
    found = {line_word(policy, line)}
    if not _SHELL.search(line):
        argv = shlex.split(line)
        found.add(verdict(policy, "execute_command", command=argv[0], args=argv[1:]))
    return found


@contextmanager
def installed(directory: Path, lines: Iterable[str]) -> Iterator[None]:
    """Have every program that the lines start, in a directory that counts as trusted."""
    directory.mkdir()
    pieces = (piece.split() for line in lines for piece in _JOINED.split(line))
    for name in {*_SHELLS, *(words[0] for words in pieces if words and _BARE.match(words[0]))}:
        if not (directory / name).exists():  # `..` is a directory
            (directory / name).write_text("")
            (directory / name).chmod(0o755)
    trusted = (str(directory),)
    with patch.object(grammar, "TRUSTED_DIRECTORIES", trusted), patch.object(programs, "TRUSTED_DIRECTORIES", trusted):
        yield
