"""A database and everything beside it is its owner's alone, whatever the umask."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import toolgate
from toolgate.adapters.sqlite import upkeep
from toolgate.adapters.sqlite.file import exposed
from toolgate.interfaces.cli.app import app
from toolgate.interfaces.runner.ledger import Ledger


@pytest.fixture(autouse=True)
def open_to_all() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in folder.rglob("*") if path.is_file()}


@toolgate.tool
async def note(text: str) -> str:
    return text


async def test_every_file_of_a_database_is_its_owners_alone(tmp_path: Path) -> None:
    async with toolgate.open(tmp_path / "a.db", tools=[note]) as gate:
        await gate.call("note", {"text": "hello"})
        found = modes(tmp_path)
        assert {"a.db", "a.db-wal", "a.db-shm", "a.db.key"} <= {*found}
        assert {*found.values()} == {0o600}
        assert (tmp_path / "a.db.owners").stat().st_mode & 0o777 == 0o700
    assert {*modes(tmp_path).values()} == {0o600}


async def test_so_is_a_backup(tmp_path: Path) -> None:
    async with toolgate.open(tmp_path / "a.db", tools=[note]):
        pass
    upkeep.backup_to(tmp_path / "a.db", tmp_path / "copy.db")
    assert modes(tmp_path)["copy.db"] == 0o600


def test_so_is_a_runners_list(tmp_path: Path) -> None:
    Ledger(tmp_path / "signals.db").close()
    assert {*modes(tmp_path).values()} == {0o600}


def doctor(folder: Path) -> str:
    return CliRunner().invoke(app, ["doctor", str(folder)]).output


async def test_a_database_that_others_can_read_is_told_of(tmp_path: Path) -> None:
    async with toolgate.open(tmp_path / "toolgate.db", tools=[note]):
        pass
    (tmp_path / "toolgate.yaml").write_text("default: ask\n")
    (tmp_path / "toolgate.db").chmod(0o644)
    assert [path.name for path in exposed(tmp_path / "toolgate.db")] == ["toolgate.db"]
    looked = await asyncio.to_thread(doctor, tmp_path)
    assert "warning  database: it can be read by others: run `chmod 600 " in looked
    for path in exposed(tmp_path / "toolgate.db"):
        path.chmod(0o600)
    looked = await asyncio.to_thread(doctor, tmp_path)
    assert "database" in looked
    assert "it can be read by others" not in looked


async def test_a_log_is_no_more_open_than_its_database(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with toolgate.open(path, tools=[note]) as gate:
        await gate.call("note", {"text": "hello"})
        (tmp_path / "a.db-wal").chmod(0o666)
        async with toolgate.open(path, tools=[note]) as other:
            await other.call("note", {"text": "hello"})
            assert modes(tmp_path)["a.db-wal"] == 0o600
