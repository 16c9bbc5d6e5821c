from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from toolgate.adapters.memory.store import MemoryStore
from toolgate.testing.clock import NOON, FakeClock
from toolgate.testing.conformance.rows import a_call, commit, insert
from toolgate.testing.patience import until, until_sync
from toolgate.testing.stores import RemoteStore


def test_a_clock_stands_still_until_it_is_moved() -> None:
    clock = FakeClock()
    assert clock.now() == clock.now() == NOON
    assert clock.advance(1.5) == clock.now() == NOON + timedelta(seconds=1.5)
    clock.advance(-1.5)
    assert clock.now() == NOON


def test_a_clock_shows_aware_utc_only() -> None:
    clock = FakeClock(datetime(2026, 1, 1, 13, tzinfo=timezone(timedelta(hours=1))))
    assert (clock.now(), clock.now().tzinfo) == (NOON, UTC)
    clock.set(datetime(2026, 1, 1, 15, tzinfo=timezone(timedelta(hours=2))))
    assert clock.now() == NOON + timedelta(hours=1)
    with pytest.raises(ValueError, match="aware"):
        FakeClock(datetime(2026, 1, 1))  # noqa: DTZ001  # the point


async def test_waiting_ends_when_the_condition_holds_or_patience_does() -> None:
    seen = iter([False, 0, "", "yes"])
    await until(lambda: next(seen))
    with pytest.raises(TimeoutError):
        await until(lambda: False, within_s=0.005)


def test_plain_waiting_ends_when_the_condition_holds_or_patience_does() -> None:
    seen = iter([False, 0, "", "yes"])
    until_sync(lambda: next(seen))
    with pytest.raises(TimeoutError):
        until_sync(lambda: False, within_s=0.005)


async def test_a_remote_store_may_stand_before_another() -> None:
    store = RemoteStore(RemoteStore(MemoryStore()))
    await commit(store, insert(a_call()))
    assert await store.call("default", "c1") == a_call()
