from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.postgres import needs_postgres

from toolgate.adapters.postgres.store import PostgresStore
from toolgate.ports.store import Store
from toolgate.testing.conformance import StoreConformance


@needs_postgres
class TestPostgresStore(StoreConformance):
    @pytest.fixture
    async def store(self, postgres_url: str) -> AsyncIterator[Store]:
        store = PostgresStore(postgres_url, owner="conformance")
        yield store
        await store.close()
