"""The build fails where the pages about the file and the command line lack something the code has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer.main
from tests.docs.pages import ROOT, missing_words, quoted, read, rows, sections

from toolgate.adapters.sql.tables import metadata
from toolgate.adapters.sqlite.file import APPLICATION_ID
from toolgate.interfaces.cli.app import app

CLI_PAGE = "docs/reference/cli.md"
DATABASE_PAGE = "docs/reference/database.md"
SETTINGS_PAGE = "docs/reference/settings.md"


def commands(command: Any, path: str) -> Iterator[tuple[str, list[str]]]:
    """Every command of the tree with the names of its parameters, as they are typed."""
    inner: dict[str, Any] = getattr(command, "commands", {})
    if not inner or command.name == "toolgate":
        yield path, [name for parameter in command.params for name in _typed(parameter)]
    for name, child in inner.items():
        yield from commands(child, f"{path} {name}")


def _typed(parameter: Any) -> list[str]:
    if parameter.param_type_name == "argument":
        return [parameter.name]
    return [*parameter.opts, *parameter.secondary_opts]


COMMANDS = dict(commands(typer.main.get_command(app), "toolgate"))


def test_the_tree_was_found() -> None:
    assert {"toolgate", "toolgate recover", "toolgate db prune"} <= set(COMMANDS)
    assert "--did-not-happen" in COMMANDS["toolgate recover"]


def test_every_command_has_its_section_and_no_other_has() -> None:
    assert set(sections(CLI_PAGE, 2)) == set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_argument_and_option_is_in_the_table_of_its_command(command: str) -> None:
    told = [name for row in rows(sections(CLI_PAGE, 2)[command]) for name in quoted(row[0])]
    assert [name for name in COMMANDS[command] if name not in told] == []
    assert [name for name in told if name not in [*COMMANDS[command], "--help", "-h"]] == []


@pytest.mark.parametrize("command", [command for command in COMMANDS if command != "toolgate"])
def test_every_command_shows_how_it_is_typed(command: str) -> None:
    [usage] = re.findall(rf"^`({command} .+)`$", sections(CLI_PAGE, 2)[command], re.MULTILINE)
    assert [name for name in COMMANDS[command] if name.lower() not in usage.lower()] == []


def test_every_table_has_its_section_and_no_other_has() -> None:
    told = set(sections(DATABASE_PAGE, 2)) - {"What is masked, what is sealed, what is plain"}
    assert told == set(metadata.tables)


@pytest.mark.parametrize("table", metadata.tables)
def test_every_column_is_in_the_table_of_its_table(table: str) -> None:
    told = [name for row in rows(sections(DATABASE_PAGE, 2)[table]) for name in quoted(row[0])]
    assert sorted(told) == sorted(column.name for column in metadata.tables[table].columns)


@pytest.mark.parametrize("table", metadata.tables)
def test_every_indexed_column_is_told(table: str) -> None:
    section = sections(DATABASE_PAGE, 2)[table]
    indexed = {column.name for index in metadata.tables[table].indexes for column in index.columns}
    assert missing_words(indexed, section.partition("| Column")[0]) == [] or table == "runs"


def test_every_sealed_column_is_told_to_be_sealed() -> None:
    section = sections(DATABASE_PAGE, 2)["What is masked, what is sealed, what is plain"]
    [sealed] = [row[1] for row in rows(section) if row[0].startswith("**Sealed**")]
    columns = {column.name for table in metadata.tables.values() for column in table.columns}
    assert set(quoted(sealed)) == {name for name in columns if name.startswith("sealed_")}


def test_the_mark_of_our_files_is_told() -> None:
    assert f"{APPLICATION_ID:#x}" in read(DATABASE_PAGE)


def test_every_environment_variable_is_a_setting_on_its_page() -> None:
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    named = set(re.findall(r"\"(TOOLGATE_\w+)\"", sources))
    assert named
    assert named == {name for row in rows(read(SETTINGS_PAGE).partition("## The server")[0]) for name in quoted(row[0])}
