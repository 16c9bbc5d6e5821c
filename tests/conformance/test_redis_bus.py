from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.redis_server import RedisServer

from toolgate.adapters.memory.bus import MemoryBus
from toolgate.adapters.redis.bus import RedisBus
from toolgate.ports.bus import Bus
from toolgate.testing.conformance import BusConformance


class TestRedisBus(BusConformance):
    @pytest.fixture
    def bus(self, shared_redis: RedisServer) -> Iterator[Bus]:
        bus = RedisBus(shared_redis.url, beneath=MemoryBus(), origin="conformance")
        yield bus
        bus.close()
