"""Comparing the rows of a PostgreSQL database with its events, as of one moment."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from toolgate.adapters import sealing
from toolgate.adapters.postgres.link import Connection
from toolgate.adapters.postgres.upkeep import do, moment_of
from toolgate.adapters.postgres.url import Address, read
from toolgate.adapters.sealing import Sealer
from toolgate.adapters.sql.comparing import compare_database, compare_directory
from toolgate.kernel.comparing import Difference

Comparison = Callable[..., Coroutine[Any, Any, list[Difference]]]


def compare_rows(url: str) -> list[Difference]:
    """Every row that says something else than its events."""
    return do(url, _compare(read(url), compare_database))


def compare_accounts(url: str) -> list[Difference]:
    """The same of accounts and tokens alone."""
    return do(url, _compare(read(url), compare_directory))


async def _compare(address: Address, how: Comparison) -> list[Difference]:
    async with moment_of(address) as connection:
        return await compare_on(connection, sealing.shared_at_hand(address.key), how)


async def compare_on(
    connection: Connection, sealer: Sealer | None, how: Comparison = compare_database
) -> list[Difference]:
    """The same, as a transaction sees it."""

    async def fetch(sql: str, *values: Any) -> list[Any]:
        rows: list[Any] = await connection.fetch(_numbered(sql), *values)
        return rows

    return await how(fetch, sealer)


def _numbered(sql: str) -> str:
    """A query with its values numbered, as PostgreSQL wants them."""
    first, *others = sql.split("?")
    return first + "".join(f"${number}{part}" for number, part in enumerate(others, 1))
