"""SIGINT and SIGTERM end every command that runs until it is told to, also where its parent ignores both."""

from __future__ import annotations

import signal
import termios
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.unit.interfaces.at_a_terminal import Person, Seat
from tests.unit.interfaces.server.house import House, add, open_house

import toolgate

IGNORING = ("sh", "-c", """trap '' INT TERM; exec "$@" """, "sh")
"""How a script's background jobs begin, and worse."""
TOOLS = """
import toolgate
far = toolgate.ToolDefinition("far", {}, lambda _given: toolgate.ToolOutput.ok(), placement="worker")
TOOLS = [far]
"""
ENDS = [signal.SIGINT, signal.SIGTERM]


async def ends(seat: Seat, number: signal.Signals) -> bool:
    """Whether the signal ends it: by itself, of SIGTERM, or as Ctrl-C does."""
    return await seat.stops(number) in (0, -signal.SIGTERM, 130)


@pytest.fixture
async def house() -> AsyncIterator[House]:
    async with open_house(agent="settings") as house:
        yield house


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "toolgate.yaml").write_text("version: 1\n", encoding="utf-8")
    (tmp_path / "far_tools.py").write_text(TOOLS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERM", "xterm")
    return tmp_path


@pytest.mark.parametrize("number", ENDS)
async def test_a_server_ends(folder: Path, number: signal.Signals) -> None:
    seat = Seat(["serve", "--database", f"sqlite:///{folder}/a.db", "--port", "0"], after=IGNORING)
    await seat.sees("Serving on")
    assert await ends(seat, number)


@pytest.mark.parametrize("number", ENDS)
async def test_a_worker_ends(folder: Path, number: signal.Signals) -> None:
    database = f"sqlite:///{folder}/a.db"
    seat = Seat(["worker", "--database", database, "--tools", "far_tools:TOOLS", "--json"], after=IGNORING)
    await seat.sees("ready")
    assert await ends(seat, number)


@pytest.mark.parametrize("number", ENDS)
async def test_a_runner_ends(house: House, folder: Path, number: signal.Signals) -> None:
    words = ("runner", "--profile", "developer", "--only", "read_file", "--state", folder / "state")
    (folder / "workspace").mkdir()
    seat = Person(house, "runner:1", folder).sits_down(
        *words, "--workspace", folder / "workspace", "--json", after=IGNORING
    )
    await seat.sees('"connected"')
    assert await ends(seat, number)


@pytest.mark.parametrize("number", ENDS)
async def test_somebody_who_watches_stops(folder: Path, number: signal.Signals) -> None:
    async with toolgate.open(f"sqlite:///{folder}/a.db", tools=[add]) as gate:
        assert (await gate.call("add", {"left": 1, "right": 2})).success
    seat = Seat(["watch", str(folder / "a.db"), "--after", "0"], after=IGNORING)
    await seat.sees("tool.completed")
    assert await ends(seat, number)


@pytest.mark.parametrize("number", ENDS)
async def test_somebody_who_talks_stops(house: House, folder: Path, number: signal.Signals) -> None:
    seat = Person(house, "ann", folder).sits_down("chat", after=IGNORING)
    await seat.sees("> ")
    assert await ends(seat, number)


@pytest.mark.parametrize("number", ENDS)
async def test_the_inbox_gives_the_terminal_back(house: House, folder: Path, number: signal.Signals) -> None:
    seat = Person(house, "ann", folder).sits_down("inbox", after=IGNORING)
    before = termios.tcgetattr(seat.hand)
    await seat.sees("Nothing waits")
    assert termios.tcgetattr(seat.hand) != before
    seat.process.send_signal(number)
    await seat.sees("\x1b[?1049l")
    assert termios.tcgetattr(seat.hand) == before
    assert await ends(seat, number)
