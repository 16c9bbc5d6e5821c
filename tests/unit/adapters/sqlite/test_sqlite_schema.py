"""A file that is created has what the migrations make, without loading them."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

from sqlalchemy import create_engine
from tools.write_schema import migrated, schema_of

from toolgate.adapters.sql import migrate
from toolgate.adapters.sql.versions import HEAD
from toolgate.adapters.sqlite.file import SCHEMA, open_file, prepare, revision_of


def shape(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Every table and index with its columns, as SQLite understood them."""
    connection = sqlite3.connect(path)
    try:
        found: dict[str, list[tuple[object, ...]]] = {}
        for kind, name in connection.execute("SELECT type, name FROM sqlite_master").fetchall():
            pragmas = ("table_xinfo", "foreign_key_list", "index_list") if kind == "table" else ("index_xinfo",)
            found[name] = [row for pragma in pragmas for row in connection.execute(f"PRAGMA {pragma}({name})")]
        return found
    finally:
        connection.close()


def test_a_created_file_has_the_schema_the_migrations_make(tmp_path: Path) -> None:
    created, upgraded = tmp_path / "created.db", migrated(tmp_path / "migrated.db")
    prepare(created)
    assert shape(created) == shape(upgraded)
    assert schema_of(created) == schema_of(upgraded) == SCHEMA.read_text(encoding="ascii"), "run tools/write_schema.py"
    assert revision_of(created) == HEAD == migrate.revisions()[-1]


def test_a_created_file_can_be_downgraded_and_upgraded_again(tmp_path: Path) -> None:
    path = tmp_path / "toolgate.db"
    prepare(path)
    before = shape(path)
    engine = create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        migrate.downgrade(connection, "base")
        migrate.upgrade(connection)
        connection.commit()
    engine.dispose()
    assert shape(path) == before


def test_neither_creating_nor_opening_a_file_loads_the_migrations(tmp_path: Path) -> None:
    program = (
        "import sys, toolgate\n"
        "for _ in range(2): toolgate.open(f'sqlite:///{sys.argv[1]}').close()\n"
        "sys.exit(any(name in sys.modules for name in ('alembic', 'sqlalchemy')))"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "toolgate.db")], check=True)


def test_a_second_creator_finds_the_file_made(tmp_path: Path) -> None:
    path = tmp_path / "toolgate.db"
    open_file(path, busy_s=1.0).close()
    made = path.stat().st_ino
    prepare(path)
    assert path.stat().st_ino == made
