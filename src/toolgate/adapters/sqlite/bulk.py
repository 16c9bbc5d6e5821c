"""Many rows in one statement.

SQLite's module lets other Python threads run during each statement and must then wait for its turn; with a
statement for each row a busy event loop makes the writer wait hundreds of times in one transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from itertools import chain

from toolgate.adapters.sql.rows import Row

SIZES = (64, 16, 4, 2)
"""How many rows the statements take that are kept prepared; what is left over goes one by one."""


class Bulk:
    """One kind of row to write: the statement for any number of rows."""

    __slots__ = ("_one", "_sized")

    def __init__(self, statement: Callable[[int], str]) -> None:
        self._one = statement(1)
        self._sized = [(size, statement(size)) for size in SIZES]

    def write(self, connection: sqlite3.Connection, rows: list[Row]) -> int:
        """Write the rows and return how many were."""
        if len(rows) == 1:
            return connection.execute(self._one, rows[0]).rowcount
        done = start = 0
        for size, sql in self._sized:
            while len(rows) - start >= size:
                values = list(chain.from_iterable(rows[start : start + size]))
                done += connection.execute(sql, values).rowcount
                start += size
        if start < len(rows):
            done += connection.executemany(self._one, rows[start:]).rowcount
        return done


def inserting(table: str, columns: tuple[str, ...], *, verb: str = "INSERT", then: str = "") -> Bulk:
    """Rows that are inserted; `then` is what follows the values."""
    row = f"({', '.join('?' * len(columns))})"
    head = f"{verb} INTO {table} ({', '.join(columns)}) VALUES "
    return Bulk(lambda size: head + ", ".join([row] * size) + then)


def updating(table: str, columns: tuple[str, ...], keys: tuple[str, ...]) -> Bulk:
    """Rows of new values followed by the keys of the row they belong to."""
    row = f"({', '.join('?' * (len(columns) + len(keys)))})"
    names = [f"v.column{number}" for number in range(1, len(columns) + len(keys) + 1)]
    sets = ", ".join(f"{column}={name}" for column, name in zip(columns, names, strict=False))
    where = " AND ".join(f"{table}.{key}={name}" for key, name in zip(keys, names[len(columns) :], strict=True))

    def statement(size: int) -> str:
        if size == 1:
            plain = ", ".join(f"{column}=?" for column in columns)
            return f"UPDATE {table} SET {plain} WHERE {' AND '.join(f'{key}=?' for key in keys)}"
        return f"UPDATE {table} SET {sets} FROM (VALUES {', '.join([row] * size)}) AS v WHERE {where}"

    return Bulk(statement)


def deleting(table: str, keys: tuple[str, ...]) -> Bulk:
    """Rows that are deleted, given by their keys."""
    row = f"({', '.join('?' * len(keys))})"
    head = f"DELETE FROM {table} WHERE ({', '.join(keys)}) IN (VALUES "
    return Bulk(lambda size: head + ", ".join([row] * size) + ")")
