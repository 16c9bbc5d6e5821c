"""Undo data in Redis: sealed, used once, gone with its time, there after a crash, and honest when Redis is not."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import redis
from tests.redis_server import RedisServer
from tests.unit.tools.scene import Shelf, act

from toolgate.adapters.redis.undo import KEY_FILE, RedisUndo
from toolgate.errors import ConflictError, StoreError, UsageError
from toolgate.kernel.change import Change
from toolgate.kernel.record import evolve
from toolgate.kernel.undo import UndoState
from toolgate.testing.conformance.rows import an_undo
from toolgate.testing.patience import until
from toolgate.tools import AdvancedToolExecutor, ToolDefinition, UndoMetadata, UndoStore

LATER = datetime.now(UTC) + timedelta(hours=1)
CANARY = "sk-canary-1f9c2a7b"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def test_one_of_many_takes_undo_data_and_may_give_it_back(shared_redis: RedisServer) -> None:
    store = UndoStore.open(shared_redis.url)
    await store.store("race", {"was": 1})
    claims = await asyncio.gather(*(store.claim("race") for _ in range(16)))
    assert sum(claims) == 1
    assert await store.get("race") is None
    await store.release("race")
    assert await store.claim("race")
    await store.delete("race")
    assert not await store.claim("race")
    assert not await store.claim("never stored")
    await store.close()


async def test_redis_frees_what_has_expired(shared_redis: RedisServer) -> None:
    store = UndoStore.open(shared_redis.url)
    await store.store("brief", {"was": 1}, ttl_seconds=0.2)
    client = redis.Redis.from_url(shared_redis.url)
    await until(lambda: not client.exists("toolgate:undo:_undo:brief"))
    client.close()
    assert await store.get("brief") is None
    assert await store.cleanup_expired() == 1
    await store.close()


async def test_nothing_readable_is_in_redis(shared_redis: RedisServer) -> None:
    store = UndoStore.open(shared_redis.url)
    await store.store(UndoMetadata("sealed", "pay_somebody", {"token": CANARY}))
    client = redis.Redis.from_url(shared_redis.url)
    kept = client.hgetall("toolgate:undo:_undo:sealed")
    client.close()
    assert kept
    assert CANARY.encode() not in repr(kept).encode()
    assert b"pay_somebody" not in repr(kept).encode()
    assert Path(KEY_FILE).stat().st_mode & 0o077 == 0
    await store.close()


async def test_undo_data_outlives_a_crash_of_redis_and_of_the_process(own_redis: RedisServer) -> None:
    store = UndoStore.open(own_redis.url)
    await store.store("kept", {"was": 1}, tool_name="toggle")
    await store.close()
    own_redis.kill()
    own_redis.start()
    again = UndoStore.open(own_redis.url)
    kept = await again.get("kept")
    assert kept is not None
    assert (kept.tool_name, kept.undo_data) == ("toggle", {"was": 1})
    await again.close()


async def test_without_redis_the_error_says_what_to_do_and_no_password(own_redis: RedisServer) -> None:
    url = own_redis.url.replace("//", "//user:p@hunter2@")
    own_redis.kill()
    store = UndoStore.open(url)
    with pytest.raises(StoreError, match="start Redis") as caught:
        await store.store("a", {"was": 1})
    assert "hunter2" not in str(caught.value)
    await store.close()


async def test_a_claim_whose_answer_was_lost_is_still_the_claimers(shared_redis: RedisServer) -> None:
    kept = RedisUndo(shared_redis.url)
    await kept.commit(Change(project="p", at=datetime.now(UTC), undo=(record := an_undo(expires_at=LATER))))
    evaluate = kept._client.eval

    def twice(*given: object) -> object:
        evaluate(*given)  # its answer is lost with the connection, and it is sent again
        return evaluate(*given)

    kept._client.eval = twice
    claimed = evolve(record, state=UndoState.CLAIMED)
    await kept.commit(Change(project="p", at=datetime.now(UTC), undo=claimed, undo_expect=record.state))
    with pytest.raises(ConflictError):
        await kept.commit(Change(project="p", at=datetime.now(UTC), undo=claimed, undo_expect=record.state))
    await kept.close()


async def test_a_change_without_undo_data_writes_nothing(shared_redis: RedisServer) -> None:
    kept = RedisUndo(shared_redis.url)
    await kept.commit(Change(project="p", at=datetime.now(UTC)))
    assert await kept.undo("p", "c") is None
    await kept.close()


def test_a_url_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="not a Redis URL"):
        RedisUndo("redis+nonsense://x")


async def test_an_action_is_done_and_undone_although_redis_died_in_between(own_redis: RedisServer) -> None:
    shelf, store = Shelf(), UndoStore.open(own_redis.url)
    tool = ToolDefinition(name="put", action_type="PUT", handler=shelf.put, undoable=True, undo_handler=shelf.put_back)
    executor = AdvancedToolExecutor([tool], undo_store=store)
    action = act("PUT", state="new")
    await executor.execute(action)
    own_redis.kill()
    assert await executor.undo_action(action.id, {}) is True
    assert shelf.state == "old"
    await store.close()
