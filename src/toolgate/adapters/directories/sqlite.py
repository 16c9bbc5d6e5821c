"""The directory in the store's own SQLite file: read at every request, so a revoked token ends at once everywhere."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import orjson

from toolgate.errors import ConflictError, StoreError
from toolgate.kernel.context import PrincipalKind
from toolgate.ports.directory import EVERY_PROJECT, Ability, Account, Token, TokenUse

KEPT_S = 60.0
"""How long after its end a ticket or session is remembered."""

MOST_READ = 10_000

T = TypeVar("T")
_TOKEN = "id, account, digest, used_as, label, scope, created_at, expires_at, revoked_at, parent"
_FIND = f"""
SELECT {", ".join(f"t.{name}" for name in _TOKEN.split(", "))}, a.name, a.kind, a.acts_for, a.roles,
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
                raise ConflictError("A token of this id or text is there already.") from error
            except sqlite3.Error as error:
                raise StoreError(f"The directory cannot be written: {error}.") from error
            finally:
                connection.close()
            return result

    async def put_account(self, account: Account) -> None:
        roles = orjson.dumps({project: sorted(names) for project, names in account.roles.items()}).decode()
        values = (account.name, account.kind.value, account.acts_for, roles)
        await self._write(
            lambda connection: connection.execute(
                "INSERT INTO accounts (name, kind, acts_for, roles) VALUES (?, ?, ?, ?) ON CONFLICT (name) "
                "DO UPDATE SET kind=excluded.kind, acts_for=excluded.acts_for, roles=excluded.roles",
                values,
            )
        )

    async def accounts(self, *, project: str | None = None) -> list[Account]:
        found = [_account(row) for row in self._all("SELECT name, kind, acts_for, roles FROM accounts ORDER BY name")]
        return [one for one in found if project is None or project in one.roles or EVERY_PROJECT in one.roles]

    async def put_token(self, token: Token) -> None:
        cut = _text(token.created_at - timedelta(seconds=KEPT_S))

        def put(connection: sqlite3.Connection) -> None:
            if connection.execute("SELECT 1 FROM accounts WHERE name=?", (token.account,)).fetchone() is None:
                raise ConflictError(f"There is no account {token.account[:64]} to make a token for.")
            connection.execute(
                f"INSERT INTO tokens ({_TOKEN}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    token.id,
                    token.account,
                    token.digest,
                    token.use.value,
                    token.label,
                    _scope(token),
                    _text(token.created_at),
                    _text(token.expires_at),
                    _text(token.revoked_at),
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
            parent is None or parent_revoked is not None or (parent_expires or "~") <= (_text(now) or "")
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
            known = self._read[digest] = (row, _token(row[:10]), _account(row[10:14]))
        return known[1], known[2]

    async def _spend(self, token_id: str, now: datetime) -> bool:
        sql = "UPDATE tokens SET revoked_at=? WHERE id=? AND revoked_at IS NULL"
        return await self._write(lambda connection: connection.execute(sql, (_text(now), token_id)).rowcount == 1)

    async def account(self, name: str) -> Account | None:
        found = self._all("SELECT name, kind, acts_for, roles FROM accounts WHERE name=?", (name,))
        return _account(found[0]) if found else None

    async def tokens(self, *, account: str | None = None) -> list[Token]:
        sql = f"SELECT {_TOKEN} FROM tokens WHERE used_as='bearer' AND (? IS NULL OR account=?) ORDER BY created_at, id"
        return [_token(row) for row in self._all(sql, (account, account))]

    async def revoke(self, token_id: str, *, now: datetime) -> bool:
        def end(connection: sqlite3.Connection) -> bool:
            known = connection.execute("SELECT 1 FROM tokens WHERE id=?", (token_id,)).fetchone()
            connection.execute(
                "UPDATE tokens SET revoked_at=? WHERE (id=? OR parent=?) AND revoked_at IS NULL",
                (_text(now), token_id, token_id),
            )
            return known is not None

        return await self._write(end)

    async def close(self) -> None:
        with self._lock:
            self._reading.close()


def _text(at: datetime | None) -> str | None:
    return None if at is None else at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text + "+00:00")


def _scope(token: Token) -> str:
    projects = None if token.projects is None else sorted(token.projects)
    abilities = None if token.abilities is None else sorted(token.abilities)
    return orjson.dumps({"projects": projects, "abilities": abilities}).decode()


def _token(row: Sequence[Any]) -> Token:
    id, account, digest, used_as, label, scope, created_at, expires_at, revoked_at, parent = row
    limits = orjson.loads(scope)
    made = _time(created_at)
    assert made is not None
    return Token(
        id=id,
        account=account,
        digest=digest,
        use=TokenUse(used_as),
        label=label,
        projects=None if limits["projects"] is None else frozenset(limits["projects"]),
        abilities=None if limits["abilities"] is None else frozenset(map(Ability, limits["abilities"])),
        created_at=made,
        expires_at=_time(expires_at),
        revoked_at=_time(revoked_at),
        parent=parent,
    )


def _account(row: Sequence[Any]) -> Account:
    name, kind, acts_for, roles = row
    by_project = {project: frozenset(names) for project, names in orjson.loads(roles).items()}
    return Account(name=name, kind=PrincipalKind(kind), acts_for=acts_for, roles=by_project)
