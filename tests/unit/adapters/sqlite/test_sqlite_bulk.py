"""Any number of rows is written, in few statements, and counted."""

from __future__ import annotations

import sqlite3

import pytest

from toolgate.adapters.sqlite.bulk import SIZES, inserting, updating

NUMBERS = inserting("numbers", ("id", "name"), verb="INSERT OR IGNORE")
NAMES = updating("numbers", ("name",), ("id",))


@pytest.mark.parametrize("count", [1, 2, 3, 5, max(SIZES), max(SIZES) * 2 + sum(SIZES) + 1])
def test_every_row_is_written_and_counted(count: int) -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE numbers (id INTEGER PRIMARY KEY, name TEXT)")
    assert NUMBERS.write(connection, [(number, f"n{number}") for number in range(count)]) == count
    assert NUMBERS.write(connection, [(number, "again") for number in range(-1, count)]) == 1
    assert NAMES.write(connection, [(f"m{number}", number) for number in range(count)]) == count
    assert NAMES.write(connection, [("x", count), *[("y", -9)] * count]) == 0
    found = connection.execute("SELECT * FROM numbers WHERE id>=0 ORDER BY id").fetchall()
    assert found == [(number, f"m{number}") for number in range(count)]
    connection.close()
