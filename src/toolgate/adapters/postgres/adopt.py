"""Mark the accounts and tokens of a PostgreSQL database from before they carried marks, and tell the record of each."""

from __future__ import annotations

from datetime import UTC, datetime

from toolgate.adapters import sealing
from toolgate.adapters.postgres.chain import append, lock
from toolgate.adapters.postgres.link import DIRECTORY, Connection, Link
from toolgate.adapters.postgres.upkeep import linked
from toolgate.adapters.postgres.write import note_key
from toolgate.adapters.sql.adopting import IS_TOLD, Adopted
from toolgate.adapters.sql.directory_rows import (
    ACCOUNTS,
    RECORDED,
    TOKENS,
    Rows,
    read_account,
    read_token,
    told_account,
    told_token,
)


def adopt(url: str, *, by: str) -> Adopted:
    """Mark what is there, in one transaction; nothing where accounts or tokens were marked here before."""
    with linked(url) as link:
        return link.run(_adopt(link, by))


async def _adopt(link: Link, by: str) -> Adopted:
    async with link.transaction(DIRECTORY, writing=True) as connection:
        await lock(connection)
        accounts = await connection.fetch(f"{ACCOUNTS} WHERE a.mark IS NULL ORDER BY a.name")
        tokens = await connection.fetch(f"{TOKENS} WHERE t.mark IS NULL ORDER BY t.id")
        if not accounts and not tokens:
            return Adopted()  # so that a database without any needs no key
        if await connection.fetchval(IS_TOLD) is not None:
            return Adopted(refused=len(accounts) + len(tokens))
        sealer = sealing.load_shared(link.address.key)
        await note_key(connection, sealer)
        rows = Rows(sealer.marks)
        names = await _accounts(connection, rows, [tuple(row) for row in accounts], by)
        count = await _tokens(connection, rows, [tuple(row) for row in tokens], by)
    return Adopted(tuple(names), count, len(accounts) + len(tokens) - len(names) - count)


async def _accounts(connection: Connection, rows: Rows, found: list[tuple[object, ...]], by: str) -> list[str]:
    names = []
    for account in filter(None, map(read_account, found)):
        told = await append(connection, datetime.now(UTC), [told_account(account, by=by, adopted=True)])
        mark = rows.account_row(account, told)[-1]
        await connection.execute("UPDATE accounts SET told=$1, mark=$2 WHERE name=$3", told, mark, account.name)
        names.append(account.name)
    return names


async def _tokens(connection: Connection, rows: Rows, found: list[tuple[object, ...]], by: str) -> int:
    count = 0
    for token in filter(None, map(read_token, found)):
        draft = told_token(token, by=by, adopted=True, revoked_at=token.revoked_at)
        told = await append(connection, datetime.now(UTC), [draft]) if token.use in RECORDED else 0
        mark = rows.token_row(token, told)[-1]
        await connection.execute("UPDATE tokens SET told=$1, mark=$2 WHERE id=$3", told, mark, token.id)
        count += 1
    return count
