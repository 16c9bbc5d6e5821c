from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from toolgate.adapters.sqlite.store import SqliteStore
from toolgate.ports.store import Store
from toolgate.testing.conformance import StoreConformance


class TestSqliteStore(StoreConformance):
    @pytest.fixture
    async def store(self, database: Path) -> AsyncIterator[Store]:
        store = SqliteStore(database, owner="conformance")
        yield store
        await store.close()
