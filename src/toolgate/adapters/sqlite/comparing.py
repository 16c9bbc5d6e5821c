"""Comparing the rows of a database file with its events, as of one moment."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from toolgate.adapters import sealing
from toolgate.adapters.sql.comparing import compare_database, compare_directory
from toolgate.adapters.sqlite.upkeep import looking
from toolgate.kernel.comparing import Difference


def compare_rows(path: Path) -> list[Difference]:
    """Every row that says something else than its events."""
    return _compare(path, compare_database)


def compare_accounts(path: Path) -> list[Difference]:
    """The same of accounts and tokens alone."""
    return _compare(path, compare_directory)


def _compare(path: Path, how: Callable[..., Coroutine[Any, Any, list[Difference]]]) -> list[Difference]:
    sealer = sealing.at_hand(path.with_name(path.name + ".key"))
    with looking(path) as connection:
        connection.execute("BEGIN")  # one moment in time, however long it takes

        async def fetch(sql: str, *values: Any) -> list[Any]:
            return connection.execute(sql, values).fetchall()

        try:
            how(fetch, sealer).send(None)
        except StopIteration as done:
            return [*done.value]
    raise AssertionError("reading a file waits for nothing")
