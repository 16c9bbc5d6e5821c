"""Every command a page shows can be typed: the shell reads it, and the command line knows its words."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from tests.docs.commands import commands_in, problem_with
from tests.docs.pages import SHELLS, blocks, followed, name_of, pages, prose, quoted

WITH_SHELL = [page for page in pages() if any(block.language in SHELLS for block in blocks(page))]


@pytest.mark.parametrize("page", WITH_SHELL, ids=name_of)
def test_the_shell_can_read_every_block(page: Path) -> None:
    for block in blocks(page):
        if block.language in SHELLS:
            read = subprocess.run(["bash", "-n"], input=block.code, capture_output=True, text=True, check=False)
            assert read.returncode == 0, f"{name_of(page)}:{block.line}: {read.stderr}"


@pytest.mark.parametrize("page", WITH_SHELL, ids=name_of)
def test_every_command_of_a_block_exists_with_its_options(page: Path) -> None:
    wrong = [
        f"{name_of(page)}:{block.line}: {problem}"
        for block in blocks(page)
        if block.language in SHELLS
        for command in commands_in(block.code)
        if (problem := problem_with(command))
    ]
    assert wrong == []


@pytest.mark.parametrize("page", [page for page in pages() if page.name != "CHANGELOG.md"], ids=name_of)
def test_every_command_in_a_sentence_exists(page: Path) -> None:
    said = [re.sub(r"\s+", " ", code) for code in quoted(prose(page)) if re.match(r"toolgate [a-z]", code)]
    named = [code for code in said if not re.search(r"[\[\]{}()=]|\.\.\.", code)]
    wrong = [problem for code in named for words in commands_in(code) if (problem := problem_with(words))]
    assert [problem for problem in wrong if "needs" not in problem] == []


def test_what_is_not_run_says_why() -> None:
    marks = [block.mark for page in followed() for block in blocks(page) if not block.is_run]
    assert marks
    assert [mark for mark in marks if not re.fullmatch(r"<!-- not run: \S.+ -->", mark)] == []


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("toolgate db prune x.db --older-than 90d", None),
        ("A=1 toolgate serve --port 80 > log", None),
        ("toolgate serve --prot 80", "serve has no option --prot"),
        ("toolgate db shrink x.db", "there is no command 'db shrink x.db'"),
        ("cd x && toolgate policy diff a.yaml", "diff needs 2 arguments, not 1"),
        ("toolgate doctor one two three", "doctor takes"),
        ("toolgate serve --port", "--port of serve needs a value"),
    ],
)
def test_a_wrong_command_is_noticed(script: str, problem: str | None) -> None:
    [words] = commands_in(script)
    found = problem_with(words)
    assert (found is None) if problem is None else (found is not None and found.startswith(problem))
