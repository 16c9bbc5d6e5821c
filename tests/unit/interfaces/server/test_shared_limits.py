"""Limits several servers keep together: one count in Redis, and each its own when Redis is gone."""

from __future__ import annotations

import pytest
from tests.redis_server import RedisServer

from toolgate.errors import UsageError
from toolgate.interfaces.server.limits import Buckets
from toolgate.interfaces.server.services import _limits
from toolgate.interfaces.server.shared_limits import SharedBuckets, close_storage, shared_storage
from toolgate.testing.patience import PATIENCE_S

SLOW = 0.001
"""Nothing comes back while a test runs, however slow the machine is."""


async def test_two_servers_count_together(shared_redis: RedisServer) -> None:
    storage = shared_storage(shared_redis.url)
    one, other = (SharedBuckets("requests", storage, SLOW, 4, patience_s=PATIENCE_S) for _ in range(2))
    took = [await server.take("ann") for server in (one, other, one, other)]
    assert took == [0.0] * 4
    assert await one.take("ann") > 0
    assert await other.take("ann") > 0
    assert await other.take("bob") == 0.0
    await close_storage(storage)


async def test_what_this_server_refuses_costs_redis_nothing(own_redis: RedisServer) -> None:
    storage = shared_storage(own_redis.url)
    limit = SharedBuckets("requests", storage, SLOW, 1, patience_s=PATIENCE_S)
    assert await limit.take("ann") == 0.0
    own_redis.kill()
    assert await limit.take("ann") > 0
    assert limit._lost_at is None
    await close_storage(storage)


async def test_without_redis_each_server_counts_by_itself(own_redis: RedisServer) -> None:
    own_redis.kill()
    storage = shared_storage(own_redis.url)
    limit = SharedBuckets("requests", storage, SLOW, 2)
    assert [await limit.take("ann"), await limit.take("ann")] == [0.0, 0.0]
    assert await limit.take("ann") > 0
    await close_storage(storage)


def test_a_url_that_is_none_is_refused_without_repeating_it() -> None:
    with pytest.raises(UsageError, match="not a Redis URL") as caught:
        shared_storage("http://:secret@host")
    assert "secret" not in str(caught.value)


async def test_the_settings_choose_who_counts(shared_redis: RedisServer) -> None:
    storage = shared_storage(shared_redis.url)
    shared = _limits(storage)("requests", 1.0, 1)
    assert isinstance(shared, SharedBuckets)
    assert await shared.take("carol") == 0.0
    assert isinstance(_limits(None)("requests", 1.0, 1), Buckets)
    await close_storage(storage)
