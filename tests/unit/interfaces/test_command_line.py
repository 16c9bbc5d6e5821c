"""The commands that look after a database, run in this process."""

from __future__ import annotations

import asyncio
import itertools
import json
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from types import FrameType

import pytest
import typer
from typer.testing import CliRunner

import toolgate
from toolgate.errors import StoreError, UsageError
from toolgate.gate import Gate
from toolgate.interfaces.cli import main
from toolgate.interfaces.cli.app import app
from toolgate.interfaces.cli.backend_local import LocalBackend
from toolgate.interfaces.cli.duration import seconds_of
from toolgate.interfaces.cli.session import gate_on
from toolgate.interfaces.cli.signals import heeded
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change
from toolgate.kernel.context import DEFAULT_CONTEXT, Principal

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
    assert json.loads(told.stdout)["chains"][0]["problem"] is None
    assert [one["id"] for one in json.loads(told.stdout)["differences"]] == ["lost"]  # written past the gate
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
    assert "BROKEN" not in run(app, ["audit", "verify", str(database)]).stdout
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
    unsure = ["--by", "bob", "--reason", "the bank is shut"]
    assert "lost is UNKNOWN still." in run(app, ["recover", str(database), "lost", "--not-yet", *unsure]).stdout
    both = run(app, ["recover", str(database), "lost", "--not-yet", "--happened", *unsure])
    assert isinstance(both.exception, UsageError)
    assert "lost: bob did not know yet: the bank is shut" in run(app, ["recover", str(database)]).stdout
    (listed,) = json.loads(run(app, ["recover", str(database), "--json"]).stdout)["unknown"]
    assert (listed["said"][0]["by"], listed["unknown_for_s"] >= 0) == ("bob", True)
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


@pytest.fixture
def gate(database: Path) -> Iterator[Gate]:
    with gate_on(str(database)) as gate:
        yield gate


def is_interrupted(number: int, read: Callable[[], object]) -> bool:
    """Have SIGINT come at the nth moment at which Python heeds it while this reads; False where there are fewer."""
    left = number

    def count(_frame: FrameType, event: str, _given: object) -> None:
        nonlocal left
        left -= event in ("call", "c_return")  # a function begins, or one that is not written in Python has ended
        if left == 0:
            sys.setprofile(None)
            signal.raise_signal(signal.SIGINT)

    sys.setprofile(count)
    try:
        read()
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(None)
    assert left > 0, "the interrupt was lost"
    return False


def test_an_interrupt_ends_watching_wherever_it_falls_between_two_events(gate: Gate) -> None:
    for number in itertools.count(1):
        events = LocalBackend(gate, Principal.of("ann"), None).follow(0)
        with heeded(), closing(events):
            next(events)
            more = is_interrupted(number, partial(next, events))
        assert gate._news._readers == []
        if not more:
            break
    assert number > 5


def test_watching_ends_with_the_gate(gate: Gate) -> None:
    events = LocalBackend(gate, Principal.of("ann"), None).follow(0)
    assert [next(events).seq for _ in range(3)] == [1, 2, 3]
    gate.close()
    with suppress(StoreError):  # it may have been looking just then
        assert list(events) == []


def test_what_goes_wrong_while_somebody_watches_is_raised(gate: Gate, database: Path) -> None:
    events = LocalBackend(gate, Principal.of("ann"), None).follow(0)
    assert [next(events).seq for _ in range(3)] == [1, 2, 3]
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("DROP TABLE events")
    with pytest.raises(StoreError):
        next(events)


async def test_ctrl_c_ends_watching(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(line: str) -> None:
        if "tool.completed" in line:
            raise KeyboardInterrupt

    monkeypatch.setattr(typer, "echo", interrupted)
    ended = await asyncio.to_thread(run, app, ["watch", str(database), "--after", "0"])
    assert ended.exit_code == 130
