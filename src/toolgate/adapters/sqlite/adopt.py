"""Mark the accounts and tokens of a file from before they carried marks, and tell the record of each."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from pathlib import Path

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
from toolgate.adapters.sqlite.beside import Beside
from toolgate.adapters.sqlite.chain import append
from toolgate.adapters.sqlite.file import CREATE_S, connect
from toolgate.errors import StoreError

_UNMARKED = "SELECT 1 FROM accounts WHERE mark IS NULL UNION SELECT 1 FROM tokens WHERE mark IS NULL"


def adopt(path: Path, *, by: str) -> Adopted:
    """Mark what is there, in one transaction; nothing where accounts or tokens were marked here before."""
    connection = connect(path, busy_s=CREATE_S)
    try:
        if connection.execute(_UNMARKED).fetchone() is None:
            return Adopted()  # so that a database without any needs no key
        marks = Beside(path).sealer.marks
        connection.execute("BEGIN IMMEDIATE")
        done = _adopt(connection, Rows(marks), by)
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise StoreError(f"The accounts could not be taken over: {error}. Nothing was changed.") from error
    finally:
        connection.close()
    return done


def _adopt(connection: sqlite3.Connection, rows: Rows, by: str) -> Adopted:
    accounts = connection.execute(f"{ACCOUNTS} WHERE a.mark IS NULL ORDER BY a.name").fetchall()
    tokens = connection.execute(f"{TOKENS} WHERE t.mark IS NULL ORDER BY t.id").fetchall()
    if connection.execute(IS_TOLD).fetchone() is not None:
        return Adopted(refused=len(accounts) + len(tokens))
    now, names, count = datetime.now(UTC), [], 0
    for row in accounts:
        if (account := read_account(row)) is not None:
            told = append(connection, now, [told_account(account, by=by, adopted=True)])
            mark = rows.account_row(account, told)[-1]
            connection.execute("UPDATE accounts SET told=?, mark=? WHERE name=?", (told, mark, account.name))
            names.append(account.name)
    for row in tokens:
        if (token := read_token(row)) is not None:
            draft = told_token(token, by=by, adopted=True, revoked_at=token.revoked_at)
            told = append(connection, now, [draft]) if token.use in RECORDED else 0
            mark = rows.token_row(token, told)[-1]
            connection.execute("UPDATE tokens SET told=?, mark=? WHERE id=?", (told, mark, token.id))
            count += 1
    return Adopted(tuple(names), count, len(accounts) + len(tokens) - len(names) - count)
