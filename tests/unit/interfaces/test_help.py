"""The help screens: commands under headings, nothing cut off, and examples that the command line understands."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main
from tests.docs.pages import read
from typer.testing import CliRunner

from toolgate.interfaces.cli.app import EXIT_CODES, app
from toolgate.interfaces.cli.duration import seconds_of
from toolgate.interfaces.cli.examples import EXAMPLES
from toolgate.interfaces.cli.help import Panel

TREE: Any = typer.main.get_command(app)
WRONG_USAGE: Any = typer.BadParameter.__base__
"""What the parser raises for every mistake in a command line."""


def commands(command: Any = TREE, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every command and group, by the words after `toolgate`."""
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, f"{path} {name}".strip())


COMMANDS = dict(commands())
GROUPS = [path for path, command in COMMANDS.items() if getattr(command, "commands", {})]


@cache
def screen(path: str, columns: int = 80) -> list[str]:
    """What a terminal of so many columns shows. Not by a test runner, which makes every screen two columns wider."""
    context = TREE.make_context("toolgate", [], resilient_parsing=True, terminal_width=min(columns, 80) - 2)
    for name in path.split():
        context = context.command.commands[name].make_context(name, [], parent=context, resilient_parsing=True)
    shown: str = context.get_help()
    return shown.splitlines()


def examples_in(path: str) -> list[str]:
    """The lines of a screen that can be typed."""
    lines = screen(path)
    shown = lines[lines.index("Examples:") + 1 :]
    return [line.strip() for line in shown if line.startswith("  toolgate")]


def parse(words: list[str]) -> dict[str, Any]:
    """Read a command as the command line does, without running it; return the values it would run with."""
    context = TREE.make_context("toolgate", words)
    while context._protected_args:
        name, command, rest = context.command.resolve_command(context, [*context._protected_args, *context.args])
        context = command.make_context(name, rest, parent=context)
    return dict(context.params)


def test_every_command_stands_under_one_heading_in_the_order_of_the_headings() -> None:
    lines = screen("")
    headings = [lines.index(f"{panel}:") for panel in Panel]
    assert headings == sorted(headings)
    listed = [line.split()[0] for line in lines[headings[0] : lines.index("Examples:")] if line.startswith("  ")]
    assert sorted(listed) == sorted(TREE.commands)
    assert "Commands:" not in lines


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("path", GROUPS)
def test_every_summary_in_a_list_of_commands_is_whole_and_on_one_line(path: str, columns: int) -> None:
    lines = screen(path, columns)
    for name, command in COMMANDS[path].commands.items():
        [row] = [line for line in lines if re.match(rf"  {name}  ", line)]
        summary = row.split(None, 1)[1]
        assert command.help.replace("\n", " ").startswith(summary)
        assert summary.endswith(".")
        assert not summary.endswith("...")


@pytest.mark.parametrize("path", GROUPS)
def test_a_narrow_terminal_wraps_summaries_and_cuts_none_off(path: str) -> None:
    lines = screen(path, 56)
    for command in COMMANDS[path].commands.values():
        summary = " ".join(command.help.split()).partition(". ")[0].rstrip(".")
        assert f"{summary}. " in f"{' '.join(' '.join(lines).split())} "


def test_the_program_shows_the_same_screen() -> None:
    shown = CliRunner().invoke(app, ["db", "--help"], prog_name="toolgate")
    assert (shown.exit_code, shown.stdout.split()) == (0, " ".join(screen("db")).split())


@pytest.mark.parametrize("path", COMMANDS)
def test_a_screen_fits_eighty_columns_and_names_no_python_type(path: str) -> None:
    lines = screen(path)
    assert [line for line in lines if len(line) > 80] == []
    assert [line for line in lines if re.search(r"<(str|int|float|path|list)|list\[", line)] == []


def test_every_command_has_examples_and_every_example_a_command() -> None:
    assert set(EXAMPLES) == set(COMMANDS)
    assert [path for path in COMMANDS if not examples_in(path)] == []


@pytest.mark.parametrize("path", [path for path in COMMANDS if path not in GROUPS])
def test_the_examples_of_a_command_are_of_that_command(path: str) -> None:
    assert [line for line in examples_in(path) if not f"{line} ".startswith(f"toolgate {path} ")] == []


SHOWN = sorted({line for path in COMMANDS for line in examples_in(path)})


@pytest.mark.parametrize("line", SHOWN)
def test_an_example_is_understood(line: str) -> None:
    given = parse(shlex.split(line)[1:])
    for name in ("older_than", "since", "expires", "remember_for"):
        assert given.get(name) is None or seconds_of(given[name]) > 0
    for name in ("arguments", "call"):
        assert given.get(name) is None or given[name].startswith("@") or json.loads(given[name]) is not None


@pytest.mark.parametrize(
    "line", ["db prune", "db prune --older-than", "show 3f9a --fulll", "history --limit many", "init --profile wild"]
)
def test_a_wrong_example_would_be_noticed(line: str) -> None:
    with pytest.raises(WRONG_USAGE):
        parse(line.split())


IN_A_NEW_FOLDER = [
    "init", "init shop --profile readonly", "token create ann --kind person",
    "token create agent:bot --kind agent --project shop --expires 90d", "token list", "token list --account ann --json",
    "token link ann", "token link ann --server https://toolgate.example --expires 8h", "inbox --json", "history",
    "grants list", "recover", "audit verify", "policy check toolgate.yaml", "policy check . --json",
    """policy explain toolgate.yaml --call '{"tool": "run_tests"}'""", "policy test toolgate.yaml", "db status",
    "db upgrade", "db vacuum", "db prune --older-than 30d", "db prune --older-than 52w --events", "db rekey",
    "db backup backup.db", "audit verify backup.db --json", "db key toolgate.key",
]  # fmt: skip


def test_examples_that_need_no_more_than_a_new_folder_run_in_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("TOOLGATE_DATABASE", "TOOLGATE_SERVER", "TOOLGATE_KEY"):
        monkeypatch.delenv(name, raising=False)
    for line in IN_A_NEW_FOLDER:
        assert f"toolgate {line}" in SHOWN
        ended = CliRunner().invoke(app, shlex.split(line))
        assert ended.exit_code == 0, (line, ended.output, ended.exception)


def test_the_page_has_the_same_headings() -> None:
    page = read("docs/reference/cli.md")
    assert [panel for panel in Panel if f"| {panel} | [" not in page] == []


def test_the_first_screen_says_what_exit_codes_mean() -> None:
    assert screen("")[-1] == EXIT_CODES.strip()
