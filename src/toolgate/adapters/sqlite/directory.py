"""The directory in the store's own SQLite file: read at every request, so a revoked token ends at once everywhere."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

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
    text_of,
    told_account,
    told_end,
    told_token,
)
from toolgate.adapters.sqlite.chain import append
from toolgate.adapters.sqlite.file import note_key
from toolgate.errors import ConflictError, StoreError
from toolgate.ports.directory import EVERY_PROJECT, HOST, Account, Token

T = TypeVar("T")
_PUT_ACCOUNT = (
    f"INSERT INTO accounts ({', '.join(ACCOUNT_NAMES)}) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET "
    + ", ".join(f"{name}=excluded.{name}" for name in ACCOUNT_NAMES[1:])
)
_PUT_TOKEN = f"INSERT INTO tokens ({', '.join(TOKEN_NAMES)}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


class SqliteDirectory:
    """`connect` gives connections to a file that has the tables already; the sealer has the keys of marks."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], *, sealer: Sealer) -> None:
        self._connect = connect
        self._sealer = sealer
        self._rows = Rows(sealer.marks)
        self._reading = connect()
        self._lock = threading.Lock()
        self._writing = threading.Lock()

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
                note_key(connection, self._sealer)
                result = work(connection)
                connection.execute("COMMIT")
            except sqlite3.IntegrityError as error:
                raise ConflictError("A token with this id or text exists already.") from error
            except sqlite3.Error as error:
                raise StoreError(f"The directory cannot be written: {error}.") from error
            finally:
                connection.close()
            return result

    async def put_account(self, account: Account, *, by: str = HOST) -> None:
        def put(connection: sqlite3.Connection) -> None:
            told = append(connection, datetime.now(UTC), [told_account(account, by=by)])
            connection.execute(_PUT_ACCOUNT, self._rows.account_row(account, told))
            connection.execute(COUNT_CHANGE)

        await self._write(put)

    async def accounts(self, *, project: str | None = None) -> list[Account]:
        read = [self._rows.account(row) for row in self._all(f"{ACCOUNTS} ORDER BY a.name")]
        found = [account for account in read if account is not None]
        return [one for one in found if project is None or project in one.roles or EVERY_PROJECT in one.roles]

    async def put_token(self, token: Token, *, by: str = HOST) -> None:
        cut = text_of(token.created_at - timedelta(seconds=KEPT_S))

        def put(connection: sqlite3.Connection) -> None:
            row = connection.execute(f"{ACCOUNTS} WHERE a.name=?", (token.account,)).fetchone()
            if row is None or self._rows.account(row) is None:
                raise ConflictError(f"There is no account {token.account[:64]} to make a token for.")
            is_told = token.use in RECORDED
            told = append(connection, token.created_at, [told_token(token, by=by)]) if is_told else 0
            connection.execute(_PUT_TOKEN, _texts(self._rows.token_row(token, told)))
            connection.execute(
                "DELETE FROM tokens WHERE used_as<>'bearer' AND coalesce(revoked_at, expires_at) < ?", (cut,)
            )

        await self._write(put)

    async def find(self, digest: bytes, *, now: datetime, spend: bool = False) -> tuple[Token, Account] | None:
        rows = self._all(f"{FIND}?", (digest,))
        found = self._rows.found(rows[0]) if rows else None
        if found is None or not is_valid(found, now, spend=spend):
            return None
        token, account, _ = found
        if spend and not await self._write(lambda connection: self._spend(connection, token, now)):
            return None
        return token, account

    def _spend(self, connection: sqlite3.Connection, token: Token, now: datetime) -> bool:
        spent = self._rows.token_row(replace(token, revoked_at=now), 0)
        sql = "UPDATE tokens SET revoked_at=?, mark=? WHERE id=? AND revoked_at IS NULL"
        return connection.execute(sql, (text_of(now), spent[-1], token.id)).rowcount == 1

    async def account(self, name: str) -> Account | None:
        found = self._all(f"{ACCOUNTS} WHERE a.name=?", (name,))
        return self._rows.account(found[0]) if found else None

    async def token(self, token_id: str) -> Token | None:
        found = self._all(f"{TOKENS} WHERE t.id=?", (token_id,))
        return self._rows.token(found[0]) if found else None

    async def tokens(self, *, account: str | None = None) -> list[Token]:
        sql = f"{TOKENS} WHERE t.used_as='bearer' AND (? IS NULL OR t.account=?) ORDER BY t.created_at, t.id"
        read = [self._rows.token(row) for row in self._all(sql, (account, account))]
        return [token for token in read if token is not None]

    async def revoke(self, token_id: str, *, now: datetime, by: str = HOST) -> bool:
        def end(connection: sqlite3.Connection) -> bool:
            sql = f"{TOKENS} WHERE t.id=? OR t.parent=?"
            rows = connection.execute(sql, (token_id, token_id)).fetchall()
            for row in rows:
                self._end(connection, row, now, by)
            connection.execute(COUNT_CHANGE)
            return any(row[0] == token_id for row in rows)

        return await self._write(end)

    def _end(self, connection: sqlite3.Connection, row: Any, now: datetime, by: str) -> None:
        """End one token, unless it has ended. What does not count is ended too, and counts no more than before."""
        token, told, mark = self._rows.token(row), row[-3], None
        if token is not None:
            if token.revoked_at is not None:
                return
            told = append(connection, now, [told_end(token, by=by)]) if token.use in RECORDED else 0
            mark = self._rows.token_row(replace(token, revoked_at=now), told)[-1]
        sql = "UPDATE tokens SET revoked_at=?, told=?, mark=? WHERE id=?"
        connection.execute(sql, (text_of(now), told, mark, row[0]))

    async def revision(self) -> int:
        return int(self._all(REVISION)[0][0])

    async def close(self) -> None:
        with self._lock:
            self._reading.close()


def _texts(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A token's columns with times as text."""
    return tuple(text_of(value) if isinstance(value, datetime) else value for value in row)
