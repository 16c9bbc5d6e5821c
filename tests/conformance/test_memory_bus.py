from __future__ import annotations

import pytest

from toolgate.adapters.memory.bus import MemoryBus
from toolgate.ports.bus import Bus
from toolgate.testing.conformance import BusConformance


class TestMemoryBus(BusConformance):
    @pytest.fixture
    def bus(self) -> Bus:
        return MemoryBus()
