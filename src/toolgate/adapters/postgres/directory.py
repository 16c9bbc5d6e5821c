"""The directory in the store's own PostgreSQL: read at every request, so a revoked token ends at once everywhere."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from typing import Any, TypeVar

from toolgate.adapters.postgres.link import DIRECTORY, Link
from toolgate.adapters.sql.directory_rows import (
    COUNT_CHANGE,
    KEPT_S,
    REVISION,
    TOKEN_COLUMNS,
    account_of,
    roles_of,
    scope_of,
    token_of,
)
from toolgate.errors import ConflictError
from toolgate.ports.directory import EVERY_PROJECT, Account, Token, TokenUse

T = TypeVar("T")
_ACCOUNT = "SELECT name, kind, acts_for, roles FROM accounts"
_FIND = f"""
SELECT {", ".join(f"t.{name}" for name in TOKEN_COLUMNS.split(", "))}, a.name, a.kind, a.acts_for, a.roles,
  t.parent IS NOT NULL AND (p.id IS NULL OR p.revoked_at IS NOT NULL OR p.expires_at <= $2)
FROM tokens AS t JOIN accounts AS a ON a.name = t.account LEFT JOIN tokens AS p ON p.id = t.parent
WHERE t.digest = $1
"""


class PostgresDirectory:
    """Accounts and tokens; they belong to no project, so what they see of projects is nothing."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def _all(self, sql: str, *values: Any) -> list[Any]:
        return await self._link.do(self._link.fetch(sql, *values, projects=DIRECTORY))

    async def _write(self, work: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
        async def transact() -> T:
            async with self._link.transaction(DIRECTORY, writing=True) as connection:
                return await work(connection)

        return await self._link.do(transact())

    async def put_account(self, account: Account) -> None:
        async def put(connection: Any) -> None:
            await connection.execute(
                "INSERT INTO accounts (name, kind, acts_for, roles) VALUES ($1, $2, $3, $4) ON CONFLICT (name) "
                "DO UPDATE SET kind=excluded.kind, acts_for=excluded.acts_for, roles=excluded.roles",
                account.name,
                account.kind.value,
                account.acts_for,
                roles_of(account),
            )
            await connection.execute(COUNT_CHANGE)

        await self._write(put)

    async def accounts(self, *, project: str | None = None) -> list[Account]:
        found = [account_of(row) for row in await self._all(f'{_ACCOUNT} ORDER BY name COLLATE "C"')]
        return [one for one in found if project is None or project in one.roles or EVERY_PROJECT in one.roles]

    async def account(self, name: str) -> Account | None:
        found = await self._all(f"{_ACCOUNT} WHERE name=$1", name)
        return account_of(found[0]) if found else None

    async def put_token(self, token: Token) -> None:
        cut = token.created_at - timedelta(seconds=KEPT_S)

        async def put(connection: Any) -> None:
            if await connection.fetchval("SELECT 1 FROM accounts WHERE name=$1", token.account) is None:
                raise ConflictError(f"There is no account {token.account[:64]} to make a token for.")
            await connection.execute(
                f"INSERT INTO tokens ({TOKEN_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
                token.id,
                token.account,
                token.digest,
                token.use.value,
                token.label,
                scope_of(token),
                token.created_at,
                token.expires_at,
                token.revoked_at,
                token.parent,
            )
            await connection.execute(
                "DELETE FROM tokens WHERE used_as<>'bearer' AND coalesce(revoked_at, expires_at) < $1", cut
            )

        await self._write(put)

    async def find(self, digest: bytes, *, now: datetime, spend: bool = False) -> tuple[Token, Account] | None:
        found = await self._all(_FIND, digest, now)
        if not found:
            return None
        *row, has_lost_parent = found[0]
        token, account = token_of(row[:10]), account_of(row[10:])
        if has_lost_parent or not token.is_valid(now) or (spend and token.use is not TokenUse.TICKET):
            return None
        if spend and not await self._spend(token.id, now):
            return None
        return token, account

    async def _spend(self, token_id: str, now: datetime) -> bool:
        sql = "UPDATE tokens SET revoked_at=$1 WHERE id=$2 AND revoked_at IS NULL RETURNING id"
        return await self._write(lambda connection: connection.fetchval(sql, now, token_id)) is not None

    async def token(self, token_id: str) -> Token | None:
        found = await self._all(f"SELECT {TOKEN_COLUMNS} FROM tokens WHERE id=$1", token_id)
        return token_of(found[0]) if found else None

    async def tokens(self, *, account: str | None = None) -> list[Token]:
        sql = f"SELECT {TOKEN_COLUMNS} FROM tokens WHERE used_as='bearer' AND ($1::text IS NULL OR account=$1)"
        return [token_of(row) for row in await self._all(f'{sql} ORDER BY created_at, id COLLATE "C"', account)]

    async def revoke(self, token_id: str, *, now: datetime) -> bool:
        async def end(connection: Any) -> bool:
            known = await connection.fetchval("SELECT 1 FROM tokens WHERE id=$1", token_id)
            sql = "UPDATE tokens SET revoked_at=$1 WHERE (id=$2 OR parent=$2) AND revoked_at IS NULL"
            await connection.execute(sql, now, token_id)
            await connection.execute(COUNT_CHANGE)
            return known is not None

        return await self._write(end)

    async def revision(self) -> int:
        return int((await self._all(REVISION))[0][0])

    async def close(self) -> None:
        await self._link.close()
