"""A wrong project says what exists, and `default` is the one default."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from tests.integration.programs import cli, here
from tests.unit.interfaces.server.house import open_house

import toolgate
from toolgate.kernel.context import Context


@toolgate.tool(risk_level="medium")
async def send(to: str) -> str:
    return to


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """One question in the project `shop`."""

    async def ask() -> None:
        async with toolgate.open(tmp_path / "a.db", tools=[send]) as gate:
            await gate.call("send", {"to": "bob"}, context=Context(principal="bot", project="shop"), wait=False)

    asyncio.run(ask())
    return tmp_path / "a.db"


@pytest.mark.parametrize(
    "words",
    [("inbox", "--json"), ("history",), ("grants", "list"), ("show", "x"), ("watch", "--count", "1"), ("recover",)],
    ids=lambda words: words[0],
)
def test_a_project_that_is_not_there_is_refused_with_those_that_are(database: Path, words: tuple[str, ...]) -> None:
    told = here(*words, "--database", database, "--project", "shpo")
    assert told.code == 1
    assert "no project 'shpo' in this database; there is 'shop'" in told.err


def test_a_command_that_needs_a_project_says_so_where_default_is_none(database: Path) -> None:
    assert "no project 'default' in this database; there is 'shop'" in here("undo", database, "some-call").err
    assert here("history", database, "--project", "shop").code == 0


@pytest.fixture
def fresh(tmp_path: Path, empty_database: Path) -> Path:
    """A database in which nothing has happened."""
    for suffix in ("", ".key"):
        shutil.copy(f"{empty_database}{suffix}", tmp_path / f"fresh.db{suffix}")
    return tmp_path / "fresh.db"


def test_in_an_empty_database_any_project_may_begin(fresh: Path) -> None:
    assert here("history", fresh, "--project", "new").code == 0


async def test_a_project_of_a_server_that_is_none_of_yours_is_told_with_those_that_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_house() as house:
        monkeypatch.setenv("TOOLGATE_SERVER", house.url)
        for words in (("inbox", "--json"), ("call", "add", "{}"), ("history", "--project", "dmeo")):
            monkeypatch.setenv("TOOLGATE_TOKEN", house.tokens["ann"])
            told = await asyncio.to_thread(here, *words)
            assert told.code == 1
            assert "The account 'ann' does not belong to a project" in told.err
            assert "it belongs to 'demo'" in told.err
        monkeypatch.setenv("TOOLGATE_TOKEN", house.tokens["ann"])
        gone = await asyncio.to_thread(here, "show", "gone", "--project", "demo")
        assert gone.code == 1
        assert "belong" not in gone.err
        monkeypatch.setenv("TOOLGATE_TOKEN", house.tokens["runner:1"])
        (tmp_path / "ws").mkdir()
        places = ("--workspace", tmp_path / "ws", "--state", tmp_path / "state")
        running = await asyncio.to_thread(cli, "runner", "--profile", "readonly", *places)
        assert "it belongs to 'demo'" in running.err


def test_a_new_account_belongs_to_the_default_project_unless_it_is_an_admins(fresh: Path) -> None:
    for name, kind in (("ann", "person"), ("root", "admin")):
        assert here("token", "create", fresh, name, "--kind", kind).code == 0
    told = here("token", "list", fresh, "--json").json["accounts"]
    assert {one["name"]: list(one["roles"]) for one in told} == {"ann": ["default"], "root": []}
