"""Who can write to the database, but has no key, releases no brake: neither by a new row nor by an old one."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import asyncpg
import orjson
import pytest
from tests.postgres import needs_postgres

import toolgate
from toolgate import Context, Gate
from toolgate.errors import UsageError
from toolgate.kernel.call import Status
from toolgate.testing.patience import until

HERE = Context(project="shop", principal="bot", run_id="r1")
Sql = Callable[[str], Awaitable[Any]]


@toolgate.tool
def ping() -> str:
    return "pong"


class Place:
    """A database, a way to open gates on it, and a way round them."""

    def __init__(self, url: str, sql: Sql) -> None:
        self.url, self.sql = url, sql

    def open(self) -> Gate:
        return toolgate.open(self.url, tools=[ping])

    async def row(self) -> str | None:
        found: str | None = await self.sql("SELECT value FROM settings WHERE name='mode'")
        return found

    async def put(self, text: str | None) -> None:
        """Write the row as somebody else would."""
        await self.sql("DELETE FROM settings WHERE name='mode'")
        if text is not None:
            quoted = text.replace("'", "''")
            await self.sql(f"INSERT INTO settings (name, value) VALUES ('mode', '{quoted}')")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=needs_postgres)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "postgres":
        url: str = request.getfixturevalue("postgres_url")

        async def on_server(text: str) -> Any:
            connection = await asyncpg.connect(url.partition("?")[0])
            try:
                await connection.execute("SELECT set_config('toolgate.projects', '*', false)")
                return await connection.fetchval(text)
            finally:
                await connection.close()

        return Place(url, on_server)
    path = tmp_path / "toolgate.db"

    async def in_file(text: str) -> Any:
        connection = sqlite3.connect(path, isolation_level=None, timeout=10)
        try:
            found = connection.execute(text).fetchone()
            return None if found is None else found[0]
        finally:
            connection.close()

    return Place(f"sqlite:///{path}", in_file)


async def end(gate: Gate) -> Status:
    return (await gate.call("ping", context=HERE)).status


def altered(text: str) -> str:
    row = orjson.loads(text)
    row["said"] = row["said"].replace("LOCKDOWN", "NORMAL")
    return orjson.dumps(row).decode()


FORGERIES: dict[str, Callable[[str], str | None]] = {
    "plain": lambda _: "NORMAL",
    "altered": altered,
    "unmarked": lambda text: orjson.dumps({"said": orjson.loads(altered(text))["said"]}).decode(),
    "no object": lambda _: "[]",
    "no event": lambda _: '{"said": "{\\"brakes\\": [], \\"event\\": true}", "mark": ""}',
    "deleted": lambda _: None,
}


@pytest.mark.parametrize("how", FORGERIES)
async def test_a_forged_mode_counts_as_lockdown(place: Place, how: str) -> None:
    async with place.open() as gate:
        await gate.set_mode("LOCKDOWN", by="eve", project="shop")
        text = await place.row()
        assert text is not None
        await place.put(FORGERIES[how](text))
        result = await gate.call("ping", context=HERE)
        assert result.status is Status.DENIED
    async with place.open() as fresh:
        result = await fresh.call("ping", context=Context(project="elsewhere"))
        assert (result.status, fresh.brakes.fault is not None) == (Status.DENIED, True)
        assert "The stored mode" in (result.error or "")
        with pytest.raises(UsageError, match="Set the mode of everybody first"):
            await fresh.set_mode("ALERT", by="eve", project="shop")
        await fresh.set_mode("NORMAL", by="eve")
        assert await end(fresh) is Status.COMPLETED


async def test_a_brake_is_not_released_by_putting_an_older_row_back(place: Place) -> None:
    async with place.open() as gate, place.open() as other:
        await gate.set_mode("NORMAL", by="eve")
        older = await place.row()
        assert await end(other) is Status.COMPLETED  # it knows the older row well
        await gate.set_mode("LOCKDOWN", by="eve", project="shop", run="r1")
        await place.put(older)
        assert [await end(other), await end(gate)] == [Status.DENIED] * 2
        assert "put back" in (other.brakes.fault or "")
    async with place.open() as fresh:
        assert await end(fresh) is Status.DENIED


async def test_taking_the_event_away_with_the_row_is_noticed(place: Place) -> None:
    async with place.open() as gate:
        await gate.set_mode("NORMAL", by="eve")
        older = await place.row()
        await gate.set_mode("LOCKDOWN", by="eve", project="shop")
        await gate.set_policy(toolgate.Policy(revision="another"), by="eve")
    await place.sql("DELETE FROM events WHERE project_id='_system' AND seq=2")
    await place.put(older)
    async with place.open() as fresh:
        assert await end(fresh) is Status.DENIED
        assert "missing" in (fresh.brakes.fault or "")


async def test_a_brake_pulled_in_one_process_holds_in_another_at_its_next_call(place: Place) -> None:
    async with place.open() as gate, place.open() as other:
        assert await end(other) is Status.COMPLETED
        await gate.set_mode("LOCKDOWN", by="eve", project="shop", agent="bot")
        assert await end(other) is Status.DENIED
        await gate.set_mode("NORMAL", by="eve", project="shop", agent="bot")
        await until(lambda: not other.brakes.active)
        assert await end(other) is Status.COMPLETED


async def test_what_was_set_is_there_after_opening_again(place: Place) -> None:
    async with place.open() as gate:
        await gate.set_mode("ALERT", by="eve", reason="odd")
        await gate.set_mode("LOCKDOWN", by="eve", project="shop", run="r1")
        before = gate.brakes.active
    async with place.open() as fresh:
        assert fresh.brakes.active == before
        assert await end(fresh) is Status.DENIED
