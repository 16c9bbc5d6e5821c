"""The commands that look after a database, run in this process."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import toolgate
from toolgate.errors import StoreError, UsageError
from toolgate.interfaces.cli import main
from toolgate.interfaces.cli.app import app
from toolgate.interfaces.cli.duration import seconds_of
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change
from toolgate.kernel.context import DEFAULT_CONTEXT

run = CliRunner().invoke


@toolgate.tool(effects="read")
async def look(at: str) -> str:
    return f"saw {at}"


@pytest.fixture
async def database(tmp_path: Path, empty_database: Path) -> Path:
    path = tmp_path / "toolgate.db"
    shutil.copy(empty_database, path)
    shutil.copy(f"{empty_database}.key", f"{path}.key")
    async with toolgate.open(f"sqlite:///{path}", tools=[look]) as gate:
        await gate.call("look", {"at": "it"}, call_id="seen")
        driver = gate._driver
        lost = Call(
            id="lost",
            project="default",
            tool_name="pay",
            context=DEFAULT_CONTEXT,
            created_at=driver.now(),
            started_at=driver.now(),
            status=Status.UNKNOWN,
            version=1,
        )
        await driver.commit(Change(project="default", at=driver.now(), call=lost))
    return path


async def test_a_whole_chain_verifies_and_an_altered_one_does_not(database: Path) -> None:
    assert "3 events, chain verifies" in run(app, ["audit", "verify", str(database)]).stdout
    told = run(app, ["audit", "verify", str(database), "--json"])
    assert json.loads(told.stdout)["ok"] is True
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE events SET frame=replace(frame, 'look', 'lurk') WHERE seq=2")
    connection.close()
    broken = run(app, ["audit", "verify", str(database)])
    assert broken.exit_code == 1
    assert "BROKEN: Event 2" in broken.stdout


async def test_a_chain_without_its_tail_is_noticed(database: Path) -> None:
    with sqlite3.connect(database) as connection:
        connection.execute("DELETE FROM events WHERE seq=3")
    connection.close()
    assert "newest events are missing" in run(app, ["audit", "verify", str(database)]).stdout


def test_an_empty_log_is_said_to_be_empty(empty_database: Path) -> None:
    assert "No events yet." in run(app, ["audit", "verify", str(empty_database)]).stdout


async def test_status_upgrade_vacuum_and_prune_say_what_they_did(database: Path) -> None:
    assert "COMPLETED" in run(app, ["db", "status", str(database)]).stdout
    assert json.loads(run(app, ["db", "status", str(database), "--json"]).stdout)["events"] == 3
    assert "The schema is at" in run(app, ["db", "upgrade", str(database)]).stdout
    assert json.loads(run(app, ["db", "upgrade", str(database), "--json"]).stdout)["to"]
    assert "bytes" in run(app, ["db", "vacuum", str(database)]).stdout
    assert json.loads(run(app, ["db", "vacuum", str(database), "--json"]).stdout)["bytes_after"]
    assert "of 0 calls" in run(app, ["db", "prune", str(database), "--older-than", "1d"]).stdout
    pruned = run(app, ["db", "prune", str(database), "--older-than", "0s", "--json"])
    assert json.loads(pruned.stdout)["forgotten"] == 1
    assert run(app, ["audit", "verify", str(database)]).exit_code == 0
    async with toolgate.open(f"sqlite:///{database}", tools=[look]) as gate:
        assert (await gate.get("seen")).status is Status.COMPLETED


async def test_a_backup_is_made_once_and_checked(database: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    assert "checked" in run(app, ["db", "backup", str(database), str(copy)]).stdout
    assert isinstance(run(app, ["db", "backup", str(database), str(copy)]).exception, StoreError)
    other = run(app, ["db", "backup", str(database), str(tmp_path / "other.db"), "--json"])
    assert json.loads(other.stdout)["bytes"] > 0
    assert isinstance(run(app, ["db", "status", str(tmp_path / "none.db")]).exception, StoreError)


def test_a_person_lists_and_settles_what_nobody_knows(database: Path) -> None:
    assert "lost" in run(app, ["recover", str(database)]).stdout
    assert json.loads(run(app, ["recover", str(database), "--json"]).stdout)["unknown"][0]["id"] == "lost"
    assert isinstance(run(app, ["recover", str(database), "lost"]).exception, UsageError)
    options = ["--happened", "--by", "ann", "--reason", "the bank shows it"]
    assert isinstance(run(app, ["recover", str(database), "other", *options]).exception, UsageError)
    assert "lost is COMPLETED now." in run(app, ["recover", str(database), "lost", *options]).stdout
    assert "No call has an unknown outcome." in run(app, ["recover", str(database)]).stdout


def test_a_duration_is_a_number_and_a_unit() -> None:
    assert seconds_of("2h") == 7200
    with pytest.raises(typer.BadParameter, match="is not a duration"):
        seconds_of("soon")


def test_the_version_is_told_and_an_error_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(app, ["--version"]).stdout.strip() == toolgate.__version__
    monkeypatch.setattr(sys, "argv", ["toolgate", "db", "status", "nowhere.db"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert capsys.readouterr().err.startswith("toolgate: There is no database at nowhere.db")


async def test_an_interrupt_between_two_events_ends_watching(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It arrives where the wait for the next event is begun and nobody waits for it yet."""
    runs, really = [], asyncio.Runner.run

    def interrupted(runner: asyncio.Runner, coro: Coroutine[Any, Any, Any]) -> Any:
        runs.append(coro)
        if len(runs) != 4:  # the first that has to wait
            return really(runner, coro)
        runner.get_loop().create_task(coro)
        raise KeyboardInterrupt

    monkeypatch.setattr(asyncio.Runner, "run", interrupted)
    ended = await asyncio.to_thread(run, app, ["watch", str(database), "--after", "0"])
    assert ended.exit_code == 130
    assert ended.stdout.count("tool.invoked") == 1
