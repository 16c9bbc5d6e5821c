"""Hints through Redis: to other nodes, past a Redis that is gone, and again when it is back."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator

import pytest
import redis
from tests.redis_server import RedisServer

from toolgate.adapters.memory.bus import MemoryBus
from toolgate.adapters.redis.bus import CHANNEL, MOST_UNSENT, RedisBus
from toolgate.errors import UsageError
from toolgate.kernel.call import Status
from toolgate.ports.bus import LOOK_AGAIN, Hint
from toolgate.testing.patience import until_sync

HINT = Hint("default", "c1", Status.APPROVED, "write")
Node = Callable[[RedisServer, MemoryBus], RedisBus]


@pytest.fixture
def node() -> Iterator[Node]:
    opened: list[RedisBus] = []

    def make(server: RedisServer, beneath: MemoryBus) -> RedisBus:
        opened.append(RedisBus(server.url, beneath=beneath, origin=f"node-{len(opened)}"))
        return opened[-1]

    yield make
    for bus in opened:
        bus.close()


def test_another_node_hears_a_hint_and_the_publisher_hears_it_once(shared_redis: RedisServer, node: Node) -> None:
    here, there = node(shared_redis, MemoryBus()), node(shared_redis, MemoryBus())
    heard_here: list[Hint] = []
    heard_there: list[Hint] = []
    here.subscribe(heard_here.append)
    there.subscribe(heard_there.append)
    here.publish(HINT)
    until_sync(lambda: heard_there)
    there.publish(HINT._replace(call_id="c2"))
    until_sync(lambda: len(heard_here) == 2)
    assert heard_there[0] == HINT
    assert [hint.call_id for hint in heard_here] == ["c1", "c2"]


def test_without_redis_the_bus_beneath_carries_hints_and_everybody_looks_again(
    own_redis: RedisServer, node: Node
) -> None:
    beneath = MemoryBus()  # what two nodes share instead: their store's own bus
    here, there = node(own_redis, beneath), node(own_redis, beneath)
    heard: list[Hint] = []
    there.subscribe(heard.append)
    here.subscribe(lambda _hint: None)
    own_redis.kill()
    until_sync(lambda: LOOK_AGAIN in heard)
    here.publish(HINT)
    until_sync(lambda: HINT in heard)
    heard.clear()
    own_redis.start()

    def is_back() -> bool:
        beneath.close()  # nothing but Redis carries it now
        here.publish(HINT._replace(call_id="back"))
        return any(hint.call_id == "back" for hint in heard)

    until_sync(is_back)
    assert LOOK_AGAIN in heard


def test_a_redis_that_hangs_counts_as_lost(own_redis: RedisServer, node: Node) -> None:
    beneath = MemoryBus()
    here, there = node(own_redis, beneath), node(own_redis, beneath)
    heard: list[Hint] = []
    there.subscribe(heard.append)
    here.subscribe(lambda _hint: None)
    assert own_redis.process is not None
    own_redis.process.send_signal(signal.SIGSTOP)
    try:
        here.publish(HINT)
        until_sync(lambda: HINT in heard and LOOK_AGAIN in heard)
    finally:
        own_redis.process.send_signal(signal.SIGCONT)


def test_what_is_no_hint_is_passed_over(shared_redis: RedisServer, node: Node) -> None:
    bus = node(shared_redis, MemoryBus())
    heard: list[Hint] = []
    bus.subscribe(heard.append)
    client = redis.Redis.from_url(shared_redis.url)
    client.publish(CHANNEL, b"nonsense")
    client.publish(CHANNEL, b'["elsewhere", [["p", "c", "NO_STATUS", null]]]')
    client.publish(CHANNEL, b'["elsewhere", [["p", "c", "FAILED", null]]]')
    client.close()
    until_sync(lambda: heard)
    assert heard == [Hint("p", "c", Status.FAILED)]


def test_hints_beyond_what_is_kept_go_beneath(shared_redis: RedisServer, node: Node) -> None:
    beneath = MemoryBus()
    bus = node(shared_redis, beneath)
    heard: list[Hint] = []
    beneath.subscribe(heard.append)
    bus._unsent.extend([HINT] * MOST_UNSENT)
    bus.publish(HINT._replace(call_id="too many"))
    assert [hint.call_id for hint in heard] == ["too many"]
    bus._unsent.clear()


def test_a_url_that_is_none_is_refused_without_repeating_it() -> None:
    with pytest.raises(UsageError, match="not a Redis URL") as caught:
        RedisBus("http://:secret@host", beneath=MemoryBus(), origin="x")
    assert "secret" not in str(caught.value)
