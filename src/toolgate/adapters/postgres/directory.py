"""The directory in the store's own PostgreSQL: read at every request, so a revoked token ends at once everywhere."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from toolgate.adapters.postgres.chain import append, lock
from toolgate.adapters.postgres.link import DIRECTORY, Link
from toolgate.adapters.postgres.write import note_key
from toolgate.adapters.sealing import Sealer
from toolgate.adapters.sql.directory_rows import (
    ACCOUNT_NAMES,
    ACCOUNTS,
    COUNT_CHANGE,
    FIND,
    KEPT_S,
    RECORDED,
    REVISION,
    TOKEN_NAMES,
    TOKENS,
    Rows,
    is_valid,
    told_account,
    told_end,
    told_token,
)
from toolgate.errors import ConflictError
from toolgate.ports.directory import EVERY_PROJECT, HOST, Account, Token

T = TypeVar("T")
_PUT_ACCOUNT = (
    f"INSERT INTO accounts ({', '.join(ACCOUNT_NAMES)}) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (name) DO UPDATE "
    "SET " + ", ".join(f"{name}=excluded.{name}" for name in ACCOUNT_NAMES[1:])
)
_PUT_TOKEN = f"INSERT INTO tokens ({', '.join(TOKEN_NAMES)}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)"


class PostgresDirectory:
    """Accounts and tokens; they belong to no project, so what they see of projects is the events of `_system`."""

    def __init__(self, link: Link, *, sealer: Sealer) -> None:
        self._link = link
        self._sealer = sealer
        self._rows = Rows(sealer.marks)

    async def _all(self, sql: str, *values: Any) -> list[Any]:
        return await self._link.do(self._link.fetch(sql, *values, projects=DIRECTORY))

    async def _write(self, work: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
        async def transact() -> T:
            async with self._link.transaction(DIRECTORY, writing=True) as connection:
                await lock(connection)
                await note_key(connection, self._sealer)
                return await work(connection)

        return await self._link.do(transact())

    async def put_account(self, account: Account, *, by: str = HOST) -> None:
        async def put(connection: Any) -> None:
            told = await append(connection, datetime.now(UTC), [told_account(account, by=by)])
            await connection.execute(_PUT_ACCOUNT, *self._rows.account_row(account, told))
            await connection.execute(COUNT_CHANGE)

        await self._write(put)

    async def accounts(self, *, project: str | None = None) -> list[Account]:
        read = [self._rows.account(row) for row in await self._all(f'{ACCOUNTS} ORDER BY a.name COLLATE "C"')]
        found = [account for account in read if account is not None]
        return [one for one in found if project is None or project in one.roles or EVERY_PROJECT in one.roles]

    async def account(self, name: str) -> Account | None:
        found = await self._all(f"{ACCOUNTS} WHERE a.name=$1", name)
        return self._rows.account(found[0]) if found else None

    async def put_token(self, token: Token, *, by: str = HOST) -> None:
        cut = token.created_at - timedelta(seconds=KEPT_S)

        async def put(connection: Any) -> None:
            row = await connection.fetchrow(f"{ACCOUNTS} WHERE a.name=$1", token.account)
            if row is None or self._rows.account(tuple(row)) is None:
                raise ConflictError(f"There is no account {token.account[:64]} to make a token for.")
            is_told = token.use in RECORDED
            told = await append(connection, token.created_at, [told_token(token, by=by)]) if is_told else 0
            await connection.execute(_PUT_TOKEN, *self._rows.token_row(token, told))
            await connection.execute(
                "DELETE FROM tokens WHERE used_as<>'bearer' AND coalesce(revoked_at, expires_at) < $1", cut
            )

        await self._write(put)

    async def find(self, digest: bytes, *, now: datetime, spend: bool = False) -> tuple[Token, Account] | None:
        rows = await self._all(f"{FIND}$1", digest)
        found = self._rows.found(rows[0]) if rows else None
        if found is None or not is_valid(found, now, spend=spend):
            return None
        token, account, _ = found
        if spend and not await self._write(lambda connection: self._spend(connection, token, now)):
            return None
        return token, account

    async def _spend(self, connection: Any, token: Token, now: datetime) -> bool:
        spent = self._rows.token_row(replace(token, revoked_at=now), 0)
        sql = "UPDATE tokens SET revoked_at=$1, mark=$2 WHERE id=$3 AND revoked_at IS NULL RETURNING id"
        return await connection.fetchval(sql, now, spent[-1], token.id) is not None

    async def token(self, token_id: str) -> Token | None:
        found = await self._all(f"{TOKENS} WHERE t.id=$1", token_id)
        return self._rows.token(found[0]) if found else None

    async def tokens(self, *, account: str | None = None) -> list[Token]:
        sql = f"{TOKENS} WHERE t.used_as='bearer' AND ($1::text IS NULL OR t.account=$1)"
        rows = await self._all(f'{sql} ORDER BY t.created_at, t.id COLLATE "C"', account)
        read = [self._rows.token(row) for row in rows]
        return [token for token in read if token is not None]

    async def revoke(self, token_id: str, *, now: datetime, by: str = HOST) -> bool:
        async def end(connection: Any) -> bool:
            rows = await connection.fetch(f"{TOKENS} WHERE t.id=$1 OR t.parent=$1", token_id)
            for row in rows:
                await self._end(connection, tuple(row), now, by)
            await connection.execute(COUNT_CHANGE)
            return any(row[0] == token_id for row in rows)

        return await self._write(end)

    async def _end(self, connection: Any, row: Any, now: datetime, by: str) -> None:
        """End one token, unless it has ended. What does not count is ended too, and counts no more than before."""
        token, told, mark = self._rows.token(row), row[-3], None
        if token is not None:
            if token.revoked_at is not None:
                return
            told = await append(connection, now, [told_end(token, by=by)]) if token.use in RECORDED else 0
            mark = self._rows.token_row(replace(token, revoked_at=now), told)[-1]
        sql = "UPDATE tokens SET revoked_at=$1, told=$2, mark=$3 WHERE id=$4"
        await connection.execute(sql, now, told, mark, row[0])

    async def revision(self) -> int:
        return int((await self._all(REVISION))[0][0])

    async def close(self) -> None:
        await self._link.close()
