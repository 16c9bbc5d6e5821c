"""The directory in the store's own SQLite file: read at every request, so a revoked token ends at once everywhere."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

from toolgate.adapters.sql.directory_rows import (
    COUNT_CHANGE,
    KEPT_S,
    REVISION,
    TOKEN_COLUMNS,
    account_of,
    roles_of,
    scope_of,
    text_of,
    token_of,
)
from toolgate.errors import ConflictError, StoreError
from toolgate.ports.directory import EVERY_PROJECT, Account, Token, TokenUse

MOST_READ = 10_000

T = TypeVar("T")
_FIND = f"""
SELECT {", ".join(f"t.{name}" for name in TOKEN_COLUMNS.split(", "))}, a.name, a.kind, a.acts_for, a.roles,
  p.id, p.revoked_at, p.expires_at
FROM tokens AS t JOIN accounts AS a ON a.name = t.account LEFT JOIN tokens AS p ON p.id = t.parent
WHERE t.digest = ?
"""


class SqliteDirectory:
    """`connect` gives connections to a file that has the tables already."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._reading = connect()
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._read: dict[bytes, tuple[Any, Token, Account]] = {}
        """What was last read of a token, so that the same row need not be taken apart again."""

    def _all(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._lock:
            try:
                return self._reading.execute(sql, values).fetchall()
            except sqlite3.Error as error:
                raise StoreError(f"The directory cannot be read: {error}.") from error

    async def _write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do `work` in one transaction on a thread: the file's other writers may make it wait."""
        return await asyncio.to_thread(self._transact, work)

    def _transact(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with self._writing:
            connection = self._connect()
            try:
                connection.execute("BEGIN IMMEDIATE")
                result = work(connection)
                connection.execute("COMMIT")
            except sqlite3.IntegrityError as error:
                raise ConflictError("A token with this id or text exists already.") from error
            except sqlite3.Error as error:
                raise StoreError(f"The directory cannot be written: {error}.") from error
            finally:
                connection.close()
            return result

    async def put_account(self, account: Account) -> None:
        values = (account.name, account.kind.value, account.acts_for, roles_of(account))

        def put(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT INTO accounts (name, kind, acts_for, roles) VALUES (?, ?, ?, ?) ON CONFLICT (name) "
                "DO UPDATE SET kind=excluded.kind, acts_for=excluded.acts_for, roles=excluded.roles",
                values,
            )
            connection.execute(COUNT_CHANGE)

        await self._write(put)

    async def accounts(self, *, project: str | None = None) -> list[Account]:
        found = [account_of(row) for row in self._all("SELECT name, kind, acts_for, roles FROM accounts ORDER BY name")]
        return [one for one in found if project is None or project in one.roles or EVERY_PROJECT in one.roles]

    async def put_token(self, token: Token) -> None:
        cut = text_of(token.created_at - timedelta(seconds=KEPT_S))

        def put(connection: sqlite3.Connection) -> None:
            if connection.execute("SELECT 1 FROM accounts WHERE name=?", (token.account,)).fetchone() is None:
                raise ConflictError(f"There is no account {token.account[:64]} to make a token for.")
            connection.execute(
                f"INSERT INTO tokens ({TOKEN_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    token.id,
                    token.account,
                    token.digest,
                    token.use.value,
                    token.label,
                    scope_of(token),
                    text_of(token.created_at),
                    text_of(token.expires_at),
                    text_of(token.revoked_at),
                    token.parent,
                ),
            )
            connection.execute(
                "DELETE FROM tokens WHERE used_as<>'bearer' AND coalesce(revoked_at, expires_at) < ?", (cut,)
            )

        await self._write(put)

    async def find(self, digest: bytes, *, now: datetime, spend: bool = False) -> tuple[Token, Account] | None:
        found = self._all(_FIND, (digest,))
        if not found:
            return None
        parent, parent_revoked, parent_expires = found[0][-3:]
        token, account = self._of(digest, found[0])
        if not token.is_valid(now) or (spend and token.use is not TokenUse.TICKET):
            return None
        if token.parent is not None and (
            parent is None or parent_revoked is not None or (parent_expires or "~") <= (text_of(now) or "")
        ):
            return None
        if spend and not await self._spend(token.id, now):
            return None
        return token, account

    def _of(self, digest: bytes, row: Any) -> tuple[Token, Account]:
        known = self._read.get(digest)
        if known is None or known[0] != row:
            if len(self._read) >= MOST_READ:
                self._read.clear()
            known = self._read[digest] = (row, token_of(row[:10]), account_of(row[10:14]))
        return known[1], known[2]

    async def _spend(self, token_id: str, now: datetime) -> bool:
        sql = "UPDATE tokens SET revoked_at=? WHERE id=? AND revoked_at IS NULL"
        return await self._write(lambda connection: connection.execute(sql, (text_of(now), token_id)).rowcount == 1)

    async def account(self, name: str) -> Account | None:
        found = self._all("SELECT name, kind, acts_for, roles FROM accounts WHERE name=?", (name,))
        return account_of(found[0]) if found else None

    async def token(self, token_id: str) -> Token | None:
        found = self._all(f"SELECT {TOKEN_COLUMNS} FROM tokens WHERE id=?", (token_id,))
        return token_of(found[0]) if found else None

    async def tokens(self, *, account: str | None = None) -> list[Token]:
        sql = f"SELECT {TOKEN_COLUMNS} FROM tokens WHERE used_as='bearer' AND (? IS NULL OR account=?)"
        return [token_of(row) for row in self._all(f"{sql} ORDER BY created_at, id", (account, account))]

    async def revoke(self, token_id: str, *, now: datetime) -> bool:
        def end(connection: sqlite3.Connection) -> bool:
            known = connection.execute("SELECT 1 FROM tokens WHERE id=?", (token_id,)).fetchone()
            connection.execute(
                "UPDATE tokens SET revoked_at=? WHERE (id=? OR parent=?) AND revoked_at IS NULL",
                (text_of(now), token_id, token_id),
            )
            connection.execute(COUNT_CHANGE)
            return known is not None

        return await self._write(end)

    async def revision(self) -> int:
        return int(self._all(REVISION)[0][0])

    async def close(self) -> None:
        with self._lock:
            self._reading.close()
