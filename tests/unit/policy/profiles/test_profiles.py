"""The shipped profiles, held to lists of ordinary and hostile calls."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.unit.policy.profiles import ordinary

from toolgate.catalog import built_in_tools
from toolgate.guards.edges import Edges
from toolgate.guards.files import Workspace
from toolgate.kernel.policy import Word
from toolgate.kernel.tool import ToolDefinition
from toolgate.policy import FilePolicy, load_policy
from toolgate.policy.explain import explain, question_of
from toolgate.policy.profiles import PROFILES, Profile, render


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("profiles")
    root = top / "root"
    (root / "src").mkdir(parents=True)
    (root / "tests").mkdir()
    (root / ".git" / "hooks").mkdir(parents=True)
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    for name in (
        "README.md",
        "src/main.py",
        "tests/test_main.py",
        "a.txt",
        "b.txt",
        ".env",
        "script.py",
        "toolgate.yaml",
    ):
        (root / name).write_text("x\n")
    (top / "secret").write_text("x")
    (root / "link-in").symlink_to("README.md")
    (root / "link-out").symlink_to("../secret")
    (root / "link-out-absolute").symlink_to(top / "secret")
    (root / "link-dir").symlink_to("..")
    (root / "link-env").symlink_to(".env")
    os.link(root / ".env", root / "hard-env")
    return root


def load(profile: Profile, workspace: Path) -> FilePolicy:
    for name, text in render(profile).items():
        (workspace.parent / profile).mkdir(exist_ok=True)
        (workspace.parent / profile / name).write_text(text)
    policy = load_policy(workspace.parent / profile / "toolgate.yaml", workspace=workspace)
    # The lists must hold on machines that lack a program, too.
    anywhere = {
        name: replace(command, executable=command.executable or f"/usr/bin/{name}")
        for name, command in policy.commands.items()
    }
    object.__setattr__(policy, "commands", anywhere)
    return policy


@pytest.fixture(scope="module")
def developer(workspace: Path) -> FilePolicy:
    return load("developer", workspace)


@pytest.fixture(scope="module")
def readonly(workspace: Path) -> FilePolicy:
    return load("readonly", workspace)


@cache
def tool_named(name: str, workspace: Workspace) -> dict[str, ToolDefinition]:
    return {item.name: item for item in built_in_tools(Edges(workspace=workspace)) if item.name == name}


def verdict(policy: FilePolicy, tool: str, **arguments: Any) -> Word:
    question = question_of({"tool": tool, "arguments": arguments}, tool_named(tool, policy.workspace))
    return explain(policy, question).ruling.word


def wrong_lines(policy: FilePolicy, text: str, wanted: Word) -> dict[str, str]:
    """Return the command lines of a list that get another word, each with the word it gets."""
    found = {}
    for line in filter(None, text.splitlines()):
        argv = shlex.split(line)
        word = verdict(policy, "execute_command", command=argv[0], args=argv[1:])
        if word is not wanted:
            found[line] = word.value
    return found


def wrong(policy: FilePolicy, tool: str, argument: str, values: list[str], wanted: Word, **more: str) -> dict[str, str]:
    """Return the values of a list that get another word."""
    words = {value: verdict(policy, tool, **{argument: value}, **more) for value in values}
    return {value: word.value for value, word in words.items() if word is not wanted}


def test_what_developers_do_all_day_runs(developer: FilePolicy) -> None:
    assert wrong_lines(developer, ordinary.ALLOWED_COMMANDS, Word.ALLOW) == {}


def test_what_changes_things_asks(developer: FilePolicy) -> None:
    assert wrong_lines(developer, ordinary.ASKED_COMMANDS, Word.ASK) == {}


def test_what_could_do_harm_never_runs_unasked(developer: FilePolicy) -> None:
    assert set(wrong_lines(developer, ordinary.REFUSED_COMMANDS, Word.DENY).values()) == {"ask"}


def test_a_question_cannot_open_what_is_denied(developer: FilePolicy) -> None:
    lines = "ls2 x\ncat .env\nunzip .env\ncp --unheard-of .env x\ntar cf x.tar ../secret\nenv LD_PRELOAD=.env ls\n"
    assert wrong_lines(developer, lines, Word.DENY) == {}


def test_readonly_refuses_all_that_changes_or_harms(readonly: FilePolicy) -> None:
    assert wrong_lines(readonly, ordinary.ASKED_COMMANDS + ordinary.REFUSED_COMMANDS, Word.DENY) == {}


def test_readonly_looks(readonly: FilePolicy) -> None:
    lines = "ls -la\ngit log --oneline\ngit diff HEAD~1\nrg TODO\ncat README.md\n"
    assert wrong_lines(readonly, lines, Word.ALLOW) == {}


def test_ordinary_paths_are_read_and_written_after_a_question(developer: FilePolicy) -> None:
    assert wrong(developer, "read_file", "path", ordinary.READABLE, Word.ALLOW) == {}
    paths = [path for path in ordinary.READABLE if not path.startswith(".git/")]
    assert wrong(developer, "write_file", "path", paths, Word.ASK, content="x") == {}


def test_hostile_paths_are_neither_read_nor_written(developer: FilePolicy) -> None:
    assert wrong(developer, "read_file", "path", ordinary.UNREADABLE, Word.DENY) == {}
    assert wrong(developer, "write_file", "path", ordinary.UNREADABLE, Word.DENY, content="x") == {}
    links = [path for path in ordinary.UNREADABLE if path.startswith("link-") and "/" not in path]
    others = [path for path in ordinary.UNREADABLE if path not in links]
    assert wrong(developer, "delete_file", "path", others, Word.DENY) == {}
    assert wrong(developer, "delete_file", "path", links, Word.ASK) == {}  # the link alone would go


def test_what_steers_programs_is_not_written(developer: FilePolicy) -> None:
    assert wrong(developer, "write_file", "path", ordinary.UNWRITABLE, Word.DENY, content="x") == {}


def test_urls_are_fetched_asked_about_or_refused(developer: FilePolicy) -> None:
    assert wrong(developer, "fetch_url", "url", ordinary.FETCHABLE, Word.ALLOW) == {}
    assert wrong(developer, "fetch_url", "url", ordinary.ASKED_URLS, Word.ASK) == {}
    assert wrong(developer, "fetch_url", "url", ordinary.UNFETCHABLE, Word.DENY) == {}


def test_the_tools_that_look_run_and_the_others_ask(developer: FilePolicy) -> None:
    words = {
        "list_directory": Word.ALLOW,
        "system_metrics_snapshot": Word.ALLOW,
        "git_status": Word.ALLOW,
        "run_linter": Word.ALLOW,
        "run_tests": Word.ALLOW,
        "read_system_logs": Word.ASK,
    }
    assert {tool: verdict(developer, tool) for tool in words} == words
    assert verdict(developer, "web_search", query="x") is Word.ALLOW


@pytest.mark.parametrize("profile", PROFILES)
def test_every_profile_is_valid_and_its_examples_hold(profile: Profile, workspace: Path) -> None:
    assert load(profile, workspace).revision


@pytest.mark.parametrize("tool", ["write_file", "execute_command", "fetch_url", "run_tests", "delete_file"])
def test_locked_refuses(workspace: Path, tool: str) -> None:
    arguments = {"path": "README.md", "content": "x", "command": "ls", "url": "https://python.org/"}
    assert verdict(load("locked", workspace), tool, **arguments) is Word.DENY
