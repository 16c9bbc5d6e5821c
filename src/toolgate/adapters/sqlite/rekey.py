"""Seal everything anew with the newest key, so that older keys can be thrown away.

Works while others use the file, in small transactions, and may be stopped and run again: what is sealed
with the newest key already is left alone. A process that still seals with an older key notes it again.
"""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from pathlib import Path

from toolgate.adapters import sealing
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
from toolgate.adapters.sqlite.chain import append
from toolgate.adapters.sqlite.file import PUT_KEYS, check_current, connect, keys_of
from toolgate.errors import StoreError
from toolgate.ports.directory import HOST


def rekey(path: Path, *, by: str = HOST) -> Rekeyed:
    """Seal every value with the first key given, and forget those keys that seal nothing any more."""
    check_current(path)
    connection = connect(path, busy_s=10)
    try:
        noted = keys_of(connection)
        sealer = sealing.load(path.with_name(path.name + ".key"), create=not noted)
        check_keys(noted, sealer)
        if sealer.current not in noted:
            connection.execute(PUT_KEYS, (" ".join([*noted, sealer.current]),))
        resealed = 0
        for _ in range(ROUNDS):
            resealed += sum(_reseal(connection, sealer, *column) for column in SEALED)
            retired = _retire(connection, sealer, by)
            if retired is not None:
                return Rekeyed(sealer.current, resealed, retired, ())
        others = tuple(id for id in keys_of(connection) if id != sealer.current)
        return Rekeyed(sealer.current, resealed, (), others)
    except sqlite3.Error as error:
        raise StoreError(f"The values could not be encrypted again: {error}. Run it again to go on.") from error
    finally:
        connection.close()


def _reseal(connection: sqlite3.Connection, sealer: Sealer, table: str, id: str, column: str, what: str) -> int:
    """Go over one column in the order of its rows; return how many values had another key."""
    done, last = 0, -1
    head = bytes.fromhex(sealer.current)
    while True:
        connection.execute("BEGIN IMMEDIATE")  # so that nobody changes a row between reading and sealing it
        try:
            rows = connection.execute(
                f"SELECT rowid, project_id, {id}, {column} FROM {table} WHERE rowid>? ORDER BY rowid LIMIT ?",
                (last, BATCH),
            ).fetchall()
            for rowid, project, name_of, box in rows:
                if box is not None and box[:ID_BYTES] != head:
                    name = row_name(project, name_of, what)
                    sealed = sealer.seal(sealer.open(box, name), name)
                    connection.execute(f"UPDATE {table} SET {column}=? WHERE rowid=?", (sealed, rowid))
                    done += 1
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        if len(rows) < BATCH:
            return done
        last = rows[-1][0]


def _mark_people(connection: sqlite3.Connection, sealer: Sealer) -> None:
    rows = Rows(sealer.marks)
    for select, table, id in ((ACCOUNTS, "accounts", "name"), (TOKENS, "tokens", "id")):
        for row in connection.execute(select).fetchall():
            if rows.is_old(row, sealer.current):
                connection.execute(f"UPDATE {table} SET mark=? WHERE {id}=?", (rows.marked_anew(row), row[0]))


def _retire(connection: sqlite3.Connection, sealer: Sealer, by: str) -> tuple[str, ...] | None:
    """Forget all keys but the first; None where something is sealed with another one again.

    What people said that was not used yet is marked anew in the same transaction: it must still count then.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        head = bytes.fromhex(sealer.current)
        for table, _, column, _ in SEALED:
            found = connection.execute(
                f"SELECT 1 FROM {table} WHERE substr({column}, 1, ?)<>? LIMIT 1", (ID_BYTES, head)
            )
            if found.fetchone() is not None:
                connection.execute("ROLLBACK")
                return None
        _mark_anew(connection, sealer)
        _mark_people(connection, sealer)
        mode = connection.execute("SELECT value FROM settings WHERE name='mode'").fetchone()
        if mode is not None and (anew := brakes.marked_anew(mode[0], sealer.marks)) is not None:
            connection.execute("UPDATE settings SET value=? WHERE name='mode'", (anew,))
        retired = tuple(id for id in keys_of(connection) if id != sealer.current)
        connection.execute(PUT_KEYS, (sealer.current,))
        if retired:
            append(connection, datetime.now(UTC), [told_keys(sealer.current, retired, by=by)])
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return retired


def _mark_anew(connection: sqlite3.Connection, sealer: Sealer) -> None:
    for table, rows, marked_anew in MARKED:
        for row in connection.execute(rows).fetchall():
            detail = marked_anew(row, sealer)
            if detail is not None:
                connection.execute(f"UPDATE {table} SET detail=? WHERE id=?", (detail, row[0]))
