from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.postgres import needs_postgres

from toolgate import bootstrap
from toolgate.errors import UsageError
from toolgate.ports.directory import Directory
from toolgate.testing.conformance import DirectoryConformance


class TestMemoryDirectory(DirectoryConformance):
    @pytest.fixture
    async def directory(self) -> AsyncIterator[Directory]:
        directory = bootstrap.directory("memory://")
        yield directory
        await directory.close()


class TestSqliteDirectory(DirectoryConformance):
    @pytest.fixture
    async def directory(self, tmp_path: Path, empty_database: Path) -> AsyncIterator[Directory]:
        shutil.copy(empty_database, tmp_path / "t.db")
        directory = bootstrap.directory(f"sqlite:///{tmp_path}/t.db")
        yield directory
        await directory.close()


@needs_postgres
class TestPostgresDirectory(DirectoryConformance):
    @pytest.fixture
    async def directory(self, postgres_url: str) -> AsyncIterator[Directory]:
        directory = bootstrap.directory(postgres_url)
        yield directory
        await directory.close()


def test_an_unknown_scheme_is_refused() -> None:
    with pytest.raises(UsageError, match="not known"):
        bootstrap.directory("ldap://x")
