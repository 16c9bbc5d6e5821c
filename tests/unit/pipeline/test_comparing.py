"""What a store has of a call is compared with its events while others may change it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import toolgate
from toolgate import ToolDefinition, ToolOutput
from toolgate.kernel.call import Call
from toolgate.kernel.record import evolve
from toolgate.pipeline import comparing


async def work(given: toolgate.ToolInput) -> ToolOutput:
    await given.progress(0.5)
    return ToolOutput.ok()


def open_gate(url: str) -> toolgate.Gate:
    return toolgate.open(url, tools=[ToolDefinition("work", {}, work)])


def write(database: Path, sql: str) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.execute(sql)
        connection.commit()


async def differences(gate: toolgate.Gate) -> list[str]:
    return [one.what for one in await gate.host.differences("c1")]


async def test_a_call_that_was_made_through_the_gate_differs_in_nothing(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparing, "PAGE", 2)
    async with open_gate(f"sqlite:///{database}") as gate:
        await gate.call("work", call_id="c1")
        assert await differences(gate) == []


async def test_a_row_that_is_missing_or_cannot_be_read_is_a_difference(database: Path) -> None:
    async with open_gate(f"sqlite:///{database}") as gate:
        await gate.call("work", call_id="c1")
    write(database, "UPDATE tool_executions SET status='BEST'")
    async with open_gate(f"sqlite:///{database}") as gate:
        assert await differences(gate) == ["its row, or that of its approval, cannot be read"]
        write(database, "DELETE FROM tool_executions")
        assert await differences(gate) == ["its row is missing"]


async def test_a_call_that_changes_meanwhile_is_left_for_later(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_gate(f"sqlite:///{database}") as gate:
        await gate.call("work", call_id="c1")
        write(database, "UPDATE tool_executions SET status='FAILED', version=version + 1")
        read = gate._driver.store.call
        versions = iter((7, 8))

        async def changing(project: str, call_id: str) -> Call | None:
            found = await read(project, call_id)
            assert found is not None
            return evolve(found, version=next(versions))

        monkeypatch.setattr(gate._driver.store, "call", changing)
        assert await differences(gate) == []


async def test_nobody_else_can_write_to_memory() -> None:
    async with open_gate("memory://") as gate:
        assert await differences(gate) == []
