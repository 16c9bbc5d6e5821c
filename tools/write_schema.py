"""Write down what the migrations make of an empty SQLite file, so that new files need not run them.

Run it after adding a migration: `python tools/write_schema.py`. A test fails until that is done.
"""

import sqlite3
import tempfile
from pathlib import Path

from sqlalchemy import create_engine

from toolgate.adapters.sql import migrate
from toolgate.adapters.sqlite.file import SCHEMA


def schema_of(path: Path) -> str:
    """Return the statements that make a file like this one, in the order in which they were first given."""
    connection = sqlite3.connect(path)
    try:
        rows = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid").fetchall()
    finally:
        connection.close()
    lines = (line.rstrip().replace("\t", "  ") for (sql,) in rows for line in f"{sql};".splitlines())
    return "\n".join(lines) + "\n"


def migrated(path: Path) -> Path:
    """Run all migrations on a new file and return it."""
    engine = create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        migrate.upgrade(connection)
        connection.commit()
    engine.dispose()
    return path


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        SCHEMA.write_text(schema_of(migrated(Path(folder) / "migrated.db")), encoding="ascii")
