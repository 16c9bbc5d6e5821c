"""`toolgate init` leaves nothing but the policy in a folder; what is kept outside is found there, by no command."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.programs import here
from tests.sandboxes import needs_sandbox

import toolgate
from toolgate.adapters.sqlite.place import make_place
from toolgate.guards.state import state_folder
from toolgate.interfaces.cli.serve import settings_of
from toolgate.kernel.context import Context


@toolgate.tool(risk_level="medium")
async def send(to: str) -> str:
    return to


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("TOOLGATE_DATABASE", raising=False)
    monkeypatch.delenv("TOOLGATE_SERVER", raising=False)
    return folder


def names(folder: Path) -> set[str]:
    return {one.name for one in folder.iterdir()}


def test_everything_works_from_a_folder_with_nothing_but_its_policy(shop: Path, tmp_path: Path) -> None:
    told = here("init", "--json").json
    assert names(shop) == {"toolgate.yaml", "toolgate.commands.yaml"}
    assert told["made"] == ["toolgate.yaml", "toolgate.commands.yaml", "toolgate.db"]
    assert Path(told["database"]) == toolgate.workspace_database(".")
    (shop / "toolgate.db").write_text("planted")

    async def ask() -> None:
        async with toolgate.open(toolgate.workspace_database("."), tools=[send]) as gate:
            await gate.call("send", {"to": "ann"}, context=Context(principal="bot"), wait=False)

    asyncio.run(ask())
    assert len(here("inbox", "--json").json["pending"]) == 1
    assert settings_of().database == told["database"]
    server = [sys.executable, "-m", "toolgate", "serve", "--port", "0"]
    with subprocess.Popen(server, stdout=subprocess.PIPE, text=True) as serving:
        assert serving.stdout is not None
        assert "Serving on" in serving.stdout.readline()
        assert "is in use" in here("db", "move", told["database"], "--to", tmp_path / "moved.db").err
        serving.terminate()
    for words in (["audit", "verify"], ["db", "status"], ["programs", "list"], ["policy", "accept"]):
        assert here(*words).code == 0
    assert "is not used" in here("doctor").out
    assert "was there already" in here("init").out
    assert (shop / "toolgate.db").read_text() == "planted"


def test_a_database_of_before_is_used_until_it_is_moved(shop: Path, database: Path) -> None:
    for end in ("", ".key"):
        Path(f"{database}{end}").rename(shop / f"toolgate.db{end}")
    assert here("db", "status").code == 0
    assert "toolgate db move" in here("init", "--profile", "locked").out
    assert "toolgate db move" in here("doctor").out
    moved = here("db", "move", "--json").json
    assert Path(moved["to"]).exists()
    assert names(shop) == {"toolgate.yaml"}
    assert here("db", "status").code == 0
    assert "no database at" in here("db", "move").err


def test_a_renamed_folder_takes_its_database_over(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = here("init", "--json").json["database"]
    store = shop.rename(shop.with_name("store"))
    monkeypatch.chdir(store)
    [kept] = [one for one in here("db", "list", "--json").json["databases"] if one["database"] == file]
    assert kept == {"folder": str(shop), "is_gone": True, "database": file}
    assert file in here("db", "list").out
    assert f"toolgate db move {file}" in here("doctor").out
    assert "with its key" in here("db", "move", file).out
    assert here("db", "status").code == 0


def test_a_database_can_be_named(shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolgate.guards.state.state_folder", lambda: None)
    nowhere = here("init")
    assert nowhere.code == 1
    assert "--database FILE" in nowhere.err
    assert "--database FILE" in here("inbox", "--json").err
    told = here("init", "--database", tmp_path / "data.db")
    assert told.code == 0
    assert f"toolgate serve {tmp_path}/data.db" in told.out
    assert Path(f"{tmp_path}/data.db.key").exists()
    assert "not a database file" in here("init", "--database", "postgresql://db/toolgate").err


def test_the_policy_is_kept_outside_where_only_landlock_works(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolgate.interfaces.cli.setup._is_landlock_alone", lambda _folder: True)
    told = here("init", "--json").json
    assert names(shop) == set()
    assert Path(told["policy"]).parent == make_place(shop)
    (shop / "toolgate.yaml").write_text("version: 1\ndefault: allow\n")
    assert "counts for nothing" in here("init").out
    said = here("doctor").out
    assert f"kept in {make_place(shop)}" in said
    assert "counts for nothing" in said
    assert here("policy", "check", ".").code == 0


@needs_sandbox
def test_no_command_sees_what_is_kept(shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where the workspace is the home folder that it is kept in."""
    for above in (tmp_path, *tmp_path.parents[:3]):
        above.chmod(0o755)
    monkeypatch.setenv("XDG_STATE_HOME", str(shop / ".state"))
    policy = tmp_path / "policy.yaml"
    policy.write_text("{version: 1, tools: {execute_command: {commands: {unknown: ask}}}}")
    other = make_place(tmp_path) / "toolgate.db.key"
    other.write_text("canary-key")
    (shop / ".state").chmod(0o755)
    given = {"command": f"bash -c 'cat {other} ; ls -R {state_folder()} ; true'"}
    with toolgate.open(
        toolgate.workspace_database(), policy=policy, built_in_tools=True, approver=lambda _approval: True
    ) as gate:
        done = gate.sync.call("execute_command", given).unwrap()
    assert "canary-key" not in str(done)
    assert str(done["stdout"]).strip() in ("", f"{state_folder()}:")  # an empty folder, or none
