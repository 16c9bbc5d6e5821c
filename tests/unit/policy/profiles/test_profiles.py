"""The shipped profiles, held to lists of files and addresses; `tests/commands` has the command lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.commands import places
from tests.commands.judging import line_word, load, make_workspace, verdict

from toolgate.kernel.policy import Word
from toolgate.policy import FilePolicy
from toolgate.policy.profiles import PROFILES, Profile


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_workspace(tmp_path_factory.mktemp("profiles"))


@pytest.fixture(scope="module")
def developer(workspace: Path) -> FilePolicy:
    return load("developer", workspace)


@pytest.fixture(scope="module")
def readonly(workspace: Path) -> FilePolicy:
    return load("readonly", workspace)


def wrong_lines(policy: FilePolicy, text: str, wanted: Word) -> dict[str, str]:
    """Return the command lines of a list that get another word, each with the word it gets."""
    words = {line: line_word(policy, line) for line in text.splitlines()}
    return {line: word.value for line, word in words.items() if word is not wanted}


def wrong(policy: FilePolicy, tool: str, argument: str, values: list[str], wanted: Word, **more: str) -> dict[str, str]:
    """Return the values of a list that get another word."""
    words = {value: verdict(policy, tool, **{argument: value}, **more) for value in values}
    return {value: word.value for value, word in words.items() if word is not wanted}


def test_a_question_cannot_open_what_is_denied(developer: FilePolicy) -> None:
    lines = "ls2 x\ncat .env\nunzip .env\ncp --unheard-of .env x\ntar cf x.tar ../secret\nenv LD_PRELOAD=.env ls\n"
    assert wrong_lines(developer, lines, Word.DENY) == {}


def test_readonly_looks(readonly: FilePolicy) -> None:
    lines = "ls -la\ngit log --oneline\ngit diff HEAD~1\nrg TODO\ncat README.md\n"
    assert wrong_lines(readonly, lines, Word.ALLOW) == {}


def test_ordinary_paths_are_read_and_written_after_a_question(developer: FilePolicy) -> None:
    assert wrong(developer, "read_file", "path", places.READABLE, Word.ALLOW) == {}
    paths = [path for path in places.READABLE if not path.startswith(".git/")]
    assert wrong(developer, "write_file", "path", paths, Word.ASK, content="x") == {}


def test_hostile_paths_are_neither_read_nor_written(developer: FilePolicy) -> None:
    assert wrong(developer, "read_file", "path", places.UNREADABLE, Word.DENY) == {}
    assert wrong(developer, "write_file", "path", places.UNREADABLE, Word.DENY, content="x") == {}
    links = [path for path in places.UNREADABLE if path.startswith("link-") and "/" not in path]
    others = [path for path in places.UNREADABLE if path not in links]
    assert wrong(developer, "delete_file", "path", others, Word.DENY) == {}
    assert wrong(developer, "delete_file", "path", links, Word.ASK) == {}  # the link alone would go


def test_what_steers_programs_is_not_written(developer: FilePolicy) -> None:
    assert wrong(developer, "write_file", "path", places.UNWRITABLE, Word.DENY, content="x") == {}


def test_urls_are_fetched_asked_about_or_refused(developer: FilePolicy) -> None:
    assert wrong(developer, "fetch_url", "url", places.FETCHABLE, Word.ALLOW) == {}
    assert wrong(developer, "fetch_url", "url", places.ASKED_URLS, Word.ASK) == {}
    assert wrong(developer, "fetch_url", "url", places.UNFETCHABLE, Word.DENY) == {}


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
