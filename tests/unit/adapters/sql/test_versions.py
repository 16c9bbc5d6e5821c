"""Two versions on one database: an addition is accepted, anything else is refused and said."""

from __future__ import annotations

import asyncpg
import pytest

import toolgate
from toolgate.adapters.sql.versions import FLOOR, HEAD, SETTING, check
from toolgate.errors import StoreError

NEWER = f"{int(HEAD) + 1:04}"


@pytest.mark.parametrize(
    ("found", "floor", "says"),
    [
        (HEAD, None, None),
        (NEWER, HEAD, None),
        (NEWER, "0001", None),
        (NEWER, NEWER, "Upgrade Toolgate"),
        (NEWER, None, "db upgrade"),
        ("0001", FLOOR, "db upgrade"),
        ("4f2a", "0001", "of its own"),
        (None, None, "empty"),
    ],
)
def test_a_schema_is_used_where_it_only_added(found: str | None, floor: str | None, says: str | None) -> None:
    if says is None:
        check(found, floor)
        return
    with pytest.raises(StoreError, match=says):
        check(found, floor)


async def test_an_older_version_works_on_beside_a_newer_one(postgres_url: str) -> None:
    connection = await asyncpg.connect(postgres_url)
    try:
        await connection.execute("SELECT set_config('toolgate.projects', '*', false)")
        await connection.execute("UPDATE alembic_version SET version_num=$1", NEWER)
        await connection.execute(
            "INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value=excluded.value",
            SETTING,
            HEAD,
        )
        gate = toolgate.open(postgres_url)
        assert gate.mode.value == "NORMAL"
        await gate.aclose()
        await connection.execute("UPDATE settings SET value=$2 WHERE name=$1", SETTING, NEWER)
        with pytest.raises(StoreError, match="made by a newer Toolgate"):
            toolgate.open(postgres_url)
    finally:
        await connection.execute("UPDATE alembic_version SET version_num=$1", HEAD)
        await connection.close()
