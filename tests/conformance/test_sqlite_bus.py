from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolgate.adapters.sqlite.bus import SqliteBus
from toolgate.adapters.sqlite.store import SqliteStore
from toolgate.ports.bus import Bus
from toolgate.testing.conformance import BusConformance


class TestSqliteBus(BusConformance):
    @pytest.fixture
    def bus(self, database: Path) -> Iterator[Bus]:
        store = SqliteStore(database, owner="conformance")
        bus = SqliteBus(store.open_news)
        yield bus
        bus.close()
        asyncio.run(store.close())
