"""What several servers gave to whom: remembered together in Redis, and by each alone where Redis is gone."""

from __future__ import annotations

from tests.redis_server import RedisServer

from toolgate.interfaces.server.served import ServedHere
from toolgate.interfaces.server.services import _served
from toolgate.interfaces.server.shared_limits import close_storage, shared_storage
from toolgate.interfaces.server.shared_served import SharedServed
from toolgate.testing.patience import PATIENCE_S


async def test_what_one_server_gave_the_other_knows(shared_redis: RedisServer) -> None:
    storage = shared_storage(shared_redis.url)
    one, other = (SharedServed(storage, patience_s=PATIENCE_S) for _ in range(2))
    await one.note("ann", "a1", ["change"])
    assert await other.has("ann", "a1", ["change"])
    assert not await other.has("ann", "a1", ["change", "about"])
    assert not await other.has("bob", "a1", ["change"])
    await one.note_piece("ann", "a1", "about", offset=0, next=10)
    assert not await other.has("ann", "a1", ["about"])
    await one.note_piece("ann", "a1", "about", offset=10, next=None)
    assert await other.has("ann", "a1", ["change", "about"])
    await close_storage(storage)


async def test_without_redis_each_server_knows_its_own(own_redis: RedisServer) -> None:
    storage = shared_storage(own_redis.url)
    own_redis.kill()
    one, other = (SharedServed(storage, patience_s=PATIENCE_S) for _ in range(2))
    await one.note("ann", "a1", ["change"])
    assert await one.has("ann", "a1", ["change"])
    assert not await other.has("ann", "a1", ["change"])
    await close_storage(storage)


async def test_servers_with_a_redis_remember_in_it() -> None:
    storage = shared_storage("redis://127.0.0.1:1/0")
    assert isinstance(_served(storage), SharedServed)
    assert isinstance(_served(None), ServedHere)
    await close_storage(storage)
