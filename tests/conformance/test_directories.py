from __future__ import annotations

import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import asyncpg
import pytest
from tests.postgres import needs_postgres

from toolgate import bootstrap
from toolgate.errors import UsageError
from toolgate.ports.directory import Directory
from toolgate.testing.conformance import DirectoryConformance
from toolgate.testing.conformance.directory import a_digest
from toolgate.testing.conformance.directory_rows import DirectoryRowsConformance, Write

MINE = a_digest("mine").hex()


class TestMemoryDirectory(DirectoryConformance):
    @pytest.fixture
    async def directory(self) -> AsyncIterator[Directory]:
        directory = bootstrap.directory("memory://")
        yield directory
        await directory.close()


class TestSqliteDirectory(DirectoryConformance, DirectoryRowsConformance):
    @pytest.fixture
    def write(self, tmp_path: Path) -> Write:
        async def write(sql: str) -> None:
            with closing(sqlite3.connect(tmp_path / "t.db")) as connection:
                connection.execute(sql.replace("DIGEST", f"x'{MINE}'"))
                connection.commit()

        return write

    @pytest.fixture
    async def directory(self, tmp_path: Path, empty_database: Path) -> AsyncIterator[Directory]:
        shutil.copy(empty_database, tmp_path / "t.db")
        directory = bootstrap.directory(f"sqlite:///{tmp_path}/t.db")
        yield directory
        await directory.close()


@needs_postgres
class TestPostgresDirectory(DirectoryConformance, DirectoryRowsConformance):
    @pytest.fixture
    def write(self, postgres_url: str) -> Write:
        async def write(sql: str) -> None:
            connection = await asyncpg.connect(postgres_url)
            try:
                await connection.execute("SELECT set_config('toolgate.projects', '*', false)")
                await connection.execute(sql.replace("DIGEST", f"'\\x{MINE}'"))
            finally:
                await connection.close()

        return write

    @pytest.fixture
    async def directory(self, postgres_url: str) -> AsyncIterator[Directory]:
        directory = bootstrap.directory(postgres_url)
        yield directory
        await directory.close()


def test_an_unknown_scheme_is_refused() -> None:
    with pytest.raises(UsageError, match="not known"):
        bootstrap.directory("ldap://x")
