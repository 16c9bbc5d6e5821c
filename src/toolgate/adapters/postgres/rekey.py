"""Seal everything in a PostgreSQL database anew with the newest key, so that older keys can be thrown away.

Works while servers use it, in small transactions, and may be stopped and run again: what is sealed with the newest
key already is left alone. A server that still seals with an older key notes it again.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from toolgate.adapters import sealing
from toolgate.adapters.postgres.chain import append
from toolgate.adapters.postgres.link import EVERYTHING, Link
from toolgate.adapters.postgres.upkeep import linked
from toolgate.adapters.postgres.write import MODE_LOCK, PUT_SETTING, locks_on
from toolgate.adapters.sealing import ID_BYTES, Sealer, check_keys
from toolgate.adapters.sql import brakes
from toolgate.adapters.sql.directory_rows import ACCOUNTS, TOKENS, Rows
from toolgate.adapters.sql.rows import row_name
from toolgate.adapters.sql.upkeep import (
    BATCH,
    MARKED,
    ROUNDS,
    SEALED,
    Rekeyed,
    told_keys,
)
from toolgate.kernel.context import SYSTEM_PROJECT
from toolgate.ports.directory import HOST


def rekey(url: str, *, by: str = HOST) -> Rekeyed:
    """Seal every value with the first key given, and forget those keys that seal nothing any more."""
    with linked(url) as link:
        sealer = sealing.load_shared(link.address.key)
        return link.run(_rekey(link, sealer, by))


async def _rekey(link: Link, sealer: Sealer, by: str) -> Rekeyed:
    async with link.transaction(EVERYTHING, writing=True) as connection:
        noted = await _keys(connection)
        check_keys(noted, sealer)
        if sealer.current not in noted:
            await connection.execute(PUT_SETTING, "keys", " ".join([*noted, sealer.current]))
    resealed = 0
    for _ in range(ROUNDS):
        for column in SEALED:
            resealed += await _reseal(link, sealer, *column)
        retired = await _retire(link, sealer, by)
        if retired is not None:
            return Rekeyed(sealer.current, resealed, retired, ())
    async with link.transaction(EVERYTHING) as connection:
        others = tuple(id for id in await _keys(connection) if id != sealer.current)
    return Rekeyed(sealer.current, resealed, (), others)


async def _keys(connection: Any) -> list[str]:
    found = await connection.fetchval("SELECT value FROM settings WHERE name='keys'")
    return (found or "").split()


async def _reseal(link: Link, sealer: Sealer, table: str, id_column: str, column: str, what: str) -> int:
    """Go over one column, a few rows at a time; return how many values had another key."""
    done = 0
    head = bytes.fromhex(sealer.current)
    other = f"{column} IS NOT NULL AND substr({column}, 1, {ID_BYTES})<>$1"
    while True:
        async with link.transaction(EVERYTHING, writing=True) as connection:
            columns = f"ctid::text, project_id, {id_column}, {column}"
            sql = f"SELECT {columns} FROM {table} WHERE {other} LIMIT {BATCH} FOR UPDATE"
            rows = await connection.fetch(sql, head)
            for place, project, id, box in rows:
                name = row_name(project, id, what)
                sealed = sealer.seal(sealer.open(box, name), name)
                await connection.execute(f"UPDATE {table} SET {column}=$1 WHERE ctid=$2::text::tid", sealed, place)
        done += len(rows)
        if len(rows) < BATCH:
            return done


async def _mark_people(connection: Any, sealer: Sealer) -> None:
    rows = Rows(sealer.marks)
    for select, table, id in ((ACCOUNTS, "accounts", "name"), (TOKENS, "tokens", "id")):
        for row in await connection.fetch(select):
            if rows.is_old(row, sealer.current):
                mark = rows.marked_anew(row)
                await connection.execute(f"UPDATE {table} SET mark=$1 WHERE {id}=$2", mark, row[0])


async def _retire(link: Link, sealer: Sealer, by: str) -> tuple[str, ...] | None:
    """Forget all keys but the first; None where something is sealed with another one again.

    What people said that was not used yet is marked anew in the same transaction: it must still count then.
    """
    head = bytes.fromhex(sealer.current)
    async with link.transaction(EVERYTHING, writing=True) as connection:
        # Nobody writes meanwhile, nor has looked at the keys and is about to: a value sealed with an older key just now
        # must not be missed.
        locks = [f"pg_advisory_xact_lock({MODE_LOCK}, 0)", *locks_on([SYSTEM_PROJECT])]
        await connection.execute(f"SELECT {', '.join(locks)}")
        tables = ", ".join(sorted({table for table, *_ in SEALED}))
        await connection.execute(f"LOCK TABLE {tables} IN SHARE MODE")
        for table, _, column, _ in SEALED:
            sql = f"SELECT 1 FROM {table} WHERE substr({column}, 1, {ID_BYTES})<>$1 LIMIT 1"
            if await connection.fetchval(sql, head) is not None:
                return None
        for table, rows, marked_anew in MARKED:
            for row in await connection.fetch(rows):
                detail = marked_anew(row, sealer)
                if detail is not None:
                    await connection.execute(f"UPDATE {table} SET detail=$1::json WHERE id=$2", detail, row[0])
        await _mark_people(connection, sealer)
        mode = await connection.fetchval("SELECT value FROM settings WHERE name='mode'")
        if (anew := brakes.marked_anew(mode, sealer.marks)) is not None:
            await connection.execute(PUT_SETTING, "mode", anew)
        retired = tuple(id for id in await _keys(connection) if id != sealer.current)
        await connection.execute(PUT_SETTING, "keys", sealer.current)
        if retired:
            await append(connection, datetime.now(UTC), [told_keys(sealer.current, retired, by=by)])
    return retired
