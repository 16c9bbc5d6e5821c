from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from tests.postgres import needs_postgres

from toolgate.adapters.postgres.bus import PostgresBus
from toolgate.adapters.postgres.store import PostgresStore
from toolgate.ports.bus import Bus
from toolgate.testing.conformance import BusConformance


@needs_postgres
class TestPostgresBus(BusConformance):
    @pytest.fixture
    def bus(self, postgres_url: str) -> Iterator[Bus]:
        store = PostgresStore(postgres_url, owner="conformance")
        bus = PostgresBus(store.open_news())
        yield bus
        bus.close()
        asyncio.run(store.close())
