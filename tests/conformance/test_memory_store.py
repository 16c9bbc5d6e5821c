from __future__ import annotations

import pytest

from toolgate.adapters.memory.store import MemoryStore
from toolgate.ports.store import Store
from toolgate.testing.conformance import StoreConformance
from toolgate.testing.stores import RemoteStore


class TestMemoryStore(StoreConformance):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore()


class TestStoreThatMustBeAwaited(StoreConformance):
    @pytest.fixture
    def store(self) -> Store:
        return RemoteStore(MemoryStore())
