"""Taking actions back: what is kept, who may, how often, and what happens when the undo store is away."""

from __future__ import annotations

import asyncio
import logging
import shutil
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.unit.tools.scene import Shelf, Sink, act, echo

from toolgate.errors import UsageError
from toolgate.testing.patience import PATIENCE_S
from toolgate.tools import (
    AdvancedToolExecutor,
    ToolDefinition,
    ToolDeniedError,
    ToolExecutorConfig,
    ToolInput,
    ToolOutput,
    ToolRegistry,
    ToolUndoError,
    UndoMetadata,
    UndoStore,
    get_undo_store,
    set_undo_store,
)


def undoable(shelf: Shelf, **more: Any) -> ToolDefinition:
    return ToolDefinition(
        name="put", action_type="PUT", handler=shelf.put, undoable=True, undo_handler=shelf.put_back, **more
    )


async def test_an_action_is_taken_back_once(caplog: pytest.LogCaptureFixture) -> None:
    shelf, sink = Shelf(), Sink()
    executor = AdvancedToolExecutor([undoable(shelf)], event_sink=sink)
    action = act("PUT", state="new")
    with caplog.at_level(logging.INFO, "toolgate"):
        await executor.execute(action)
    assert "undo data of action" in caplog.text
    kept = await get_undo_store().get(action.id)
    assert kept is not None
    assert (kept.action_id, kept.tool_name, kept.undo_data) == (action.id, "put", {"before": "old"})
    assert await executor.undo_action(action.id, {}) is True
    assert (shelf.state, shelf.undos) == ("old", 1)
    assert await get_undo_store().get(action.id) is None
    assert await executor.undo_action(action.id, {}) is False
    assert sink.types[3:] == ["tool.undone"]
    told = sink.of("tool.undone")
    assert (told["tool_name"], told["action_id"], told["duration_ms"] >= 0) == ("put", str(action.id), True)


async def test_nothing_is_kept_of_what_cannot_be_undone_or_failed_or_is_not_wanted() -> None:
    shelf, store = Shelf(), UndoStore()

    async def fail(_given: ToolInput) -> ToolOutput:
        return ToolOutput(success=False, error="no", undo_metadata={"x": 1})

    plain = ToolDefinition("plain", {}, shelf.put)
    failing = ToolDefinition("fail", {}, fail, undoable=True, undo_handler=shelf.put_back)
    executor = AdvancedToolExecutor([plain, failing, undoable(shelf)], undo_store=store)
    unkept = AdvancedToolExecutor([undoable(shelf)], undo_store=store, config=ToolExecutorConfig(store_undo_data=False))
    for one, action in ((executor, act("plain")), (executor, act("fail")), (unkept, act("PUT"))):
        await one.execute(action)
        assert await one.undo_action(action.id, {}) is False
    assert (len(store), shelf.undos) == (0, 0)


async def test_undo_data_that_prepare_leaves_is_not_kept_either_where_it_is_not_wanted() -> None:
    from toolgate.kernel.tool import Prepared

    shelf = Shelf()
    tool = undoable(shelf, prepare=lambda _given: Prepared(undo_data={"before": "old"}))
    executor = AdvancedToolExecutor([tool], config=ToolExecutorConfig(store_undo_data=False))
    action = act("PUT")
    await executor.execute(action)
    assert await executor.undo_action(action.id) is False


async def test_a_failed_undo_is_told_raised_and_can_be_tried_again() -> None:
    shelf, sink = Shelf(), Sink()
    broken = True

    async def put_back(metadata: UndoMetadata) -> None:
        if broken:
            raise OSError("stuck")
        await shelf.put_back(metadata)

    tool = ToolDefinition("put", {}, shelf.put, undoable=True, undo_handler=put_back)
    executor = AdvancedToolExecutor([tool], event_sink=sink)
    action = act("put")
    await executor.execute(action)
    with pytest.raises(ToolUndoError, match="stuck") as raised:
        await executor.undo_action(action.id, {})
    assert (raised.value.tool, raised.value.action_id) == ("put", action.id)
    assert isinstance(raised.value.__cause__, OSError)
    assert sink.of("tool.undo_failed")["error"] == "stuck"
    assert await get_undo_store().get(action.id) is not None
    broken = False
    assert await executor.undo_action(action.id, {})
    assert shelf.state == "old"


async def test_many_undos_at_once_run_one() -> None:
    shelf, store = Shelf(), UndoStore()
    registry = ToolRegistry([undoable(shelf)])
    executors = [AdvancedToolExecutor(registry, undo_store=store) for _ in range(5)]
    action = act("PUT")
    await executors[0].execute(action)
    done = await asyncio.gather(*(one.undo_action(action.id, {}) for one in executors for _ in range(10)))
    assert (sum(done), shelf.undos) == (1, 1)


async def test_another_executor_undoes_what_the_shared_store_kept() -> None:
    shelf, sink = Shelf(), Sink()
    registry = ToolRegistry([undoable(shelf)])
    action = act("PUT")
    await AdvancedToolExecutor(registry).execute(action)
    other = AdvancedToolExecutor(registry, event_sink=sink)
    assert await other.undo_action(action.id, {})
    assert (shelf.state, sink.types) == ("old", ["tool.undone"])
    assert await other.undo_action(action.id, {}) is False


async def test_undo_survives_the_process(tmp_path: Path, empty_database: Path) -> None:
    path = tmp_path / "undo.db"
    shutil.copy(empty_database, path)
    shutil.copy(f"{empty_database}.key", f"{path}.key")
    shelf, action = Shelf(), act("PUT")
    store = UndoStore.open(f"sqlite:///{path}")
    await AdvancedToolExecutor([undoable(shelf)], undo_store=store).execute(action)
    await store.close()
    store = UndoStore.open(f"sqlite:///{path}")
    after = AdvancedToolExecutor([undoable(shelf)], undo_store=store)
    assert await after.undo_action(action.id, {}) is True
    assert shelf.state == "old"
    assert await after.undo_action(action.id, {}) is False
    await store.close()


async def test_expired_data_is_not_used_and_is_freed() -> None:
    shelf, store = Shelf(), UndoStore(default_ttl_seconds=0.01)
    executor = AdvancedToolExecutor([undoable(shelf)], undo_store=store)
    action = act("PUT")
    await executor.execute(action)
    await asyncio.sleep(0.02)
    assert await executor.undo_action(action.id, {}) is False
    assert (shelf.undos, len(store)) == (0, 0)
    for number in range(100):
        await store.store(f"a-{number}", {"x": number})
    await asyncio.sleep(0.02)
    assert 0 < await store.cleanup_expired() <= 100
    kept: Any = store._store
    assert kept._undo == {}
    await store.store("kept", {}, ttl_seconds=60)
    assert len(store) == 1


async def test_the_first_entries_that_expired_go_when_the_next_is_stored() -> None:
    store = UndoStore(default_ttl_seconds=0.01)
    await store.store("a", {})
    await asyncio.sleep(0.02)
    await store.store("b", {}, ttl_seconds=60)
    assert list(store._ends) == ["b"]


async def test_the_tools_time_and_the_configurations_time_count() -> None:
    shelf = Shelf()
    brief = AdvancedToolExecutor([undoable(shelf, undo_ttl_seconds=0.01)])
    config = ToolExecutorConfig(undo_ttl_seconds=0.01)
    configured = AdvancedToolExecutor([undoable(shelf)], config=config)
    for executor in (brief, configured):
        action = act("PUT")
        await executor.execute(action)
        await asyncio.sleep(0.02)
        assert await executor.undo_action(action.id, {}) is False
    assert shelf.undos == 0


async def test_a_missing_action_is_no_error() -> None:
    assert await AdvancedToolExecutor([undoable(Shelf())]).undo_action(act("x").id, {}) is False


async def test_a_tool_that_is_gone_or_has_no_undo_handler_is_told_and_false() -> None:
    shelf, sink = Shelf(), Sink()
    registry = ToolRegistry([undoable(shelf), ToolDefinition("one_way", {}, shelf.put, undoable=True)])
    executor = AdvancedToolExecutor(registry, event_sink=sink)
    first, second = act("PUT"), act("one_way")
    await executor.execute(first)
    await executor.execute(second)
    registry.unregister("put")
    assert await executor.undo_action(first.id, {}) is False
    assert await executor.undo_action(second.id, {}) is False
    assert sink.types[-2:] == ["tool.undo_failed", "tool.undo_failed"]
    assert await get_undo_store().get(first.id) is not None


async def test_undo_is_gated_like_execution() -> None:
    shelf, sink = Shelf(), Sink()
    executor = AdvancedToolExecutor([undoable(shelf, allowed_behaviors=("edit",))], event_sink=sink)
    action = act("PUT")
    await executor.execute(action, {"behavior": "edit"})
    with pytest.raises(ToolDeniedError) as refused:
        await executor.undo_action(action.id, {"behavior": "chat"})
    assert (refused.value.behavior, shelf.undos, sink.types[-1]) == ("chat", 0, "tool.undo_failed")
    await executor.gate.set_mode("LOCKDOWN", by="ann")
    with pytest.raises(ToolDeniedError, match="LOCKDOWN"):
        await executor.undo_action(action.id, {"behavior": "edit"})
    await executor.gate.set_mode("NORMAL", by="ann")
    assert await executor.undo_action(action.id, {"behavior": "edit"})


async def test_undo_refuses_when_the_state_changed_since_unless_forced() -> None:
    shelf = Shelf()
    executor = AdvancedToolExecutor([undoable(shelf, fingerprint=lambda _undo: shelf.state)])
    action = act("PUT")
    await executor.execute(action)
    shelf.state = "somebody else's"
    with pytest.raises(ToolUndoError, match="changed since"):
        await executor.undo_action(action.id, {})
    assert await executor.undo_action(action.id, {}, force=True)
    assert shelf.state == "old"


class Custom:
    """An undo store of somebody else's, which may be away."""

    def __init__(self) -> None:
        self.kept: dict[Any, Any] = {}
        self.down = False

    def __len__(self) -> int:
        return len(self.kept)

    def _check(self) -> None:
        if self.down:
            raise ConnectionError("away")

    async def store(self, metadata: UndoMetadata) -> None:
        self._check()
        self.kept[metadata.action_id] = metadata

    async def get(self, action_id: UUID | str) -> UndoMetadata | None:
        self._check()
        found: UndoMetadata | None = self.kept.get(action_id)
        return found

    async def delete(self, action_id: UUID | str) -> bool:
        self._check()
        return self.kept.pop(action_id, None) is not None


async def test_a_custom_store_is_used_even_while_it_is_empty() -> None:
    shelf, custom = Shelf(), Custom()
    executor = AdvancedToolExecutor([undoable(shelf)], undo_store=custom)
    action = act("PUT")
    await executor.execute(action)
    assert list(custom.kept) == [action.id]
    assert await get_undo_store().get(action.id) is None
    assert await executor.undo_action(action.id, {})
    assert custom.kept == {}


async def test_a_store_that_is_away_fails_no_action_and_the_gates_own_data_stands_in(
    caplog: pytest.LogCaptureFixture,
) -> None:
    shelf, custom = Shelf(), Custom()
    executor = AdvancedToolExecutor([undoable(shelf)], undo_store=custom)
    first, second, third = act("PUT"), act("PUT"), act("PUT")
    custom.down = True
    assert (await executor.execute(first)).success
    assert "undo store failed with ConnectionError" in caplog.text
    custom.down = False
    assert await executor.undo_action(first.id, {}) is True  # back, but it never got this one
    await executor.execute(second)
    custom.down = True
    assert await executor.undo_action(second.id, {}) is True
    assert await executor.undo_action(third.id, {}) is False
    custom.down = False
    assert list(custom.kept) == [second.id]  # it could not be told; the gate knows better
    assert await executor.undo_action(second.id, {}) is False
    assert shelf.undos == 2


async def test_who_waits_for_an_undo_may_go_away() -> None:
    shelf = Shelf()
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def put_back(metadata: UndoMetadata) -> None:
        begun.set()
        await go_on.wait()
        await shelf.put_back(metadata)

    executor = AdvancedToolExecutor([ToolDefinition("put", {}, shelf.put, undoable=True, undo_handler=put_back)])
    action = act("put")
    await executor.execute(action)
    undoing = asyncio.ensure_future(executor.undo_action(action.id))
    await begun.wait()
    undoing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await undoing
    go_on.set()
    async with asyncio.timeout(PATIENCE_S):
        while shelf.state != "old":  # noqa: ASYNC110  # nobody waits for this undo any more
            await asyncio.sleep(0.001)
    assert await executor.undo_action(action.id) is False


async def test_plain_undo_handlers_work() -> None:
    seen: list[Any] = []
    tool = ToolDefinition("put", {}, Shelf().put, undoable=True, undo_handler=lambda undo: seen.append(undo.undo_data))
    executor = AdvancedToolExecutor([tool])
    action = act("put")
    await executor.execute(action)
    assert await executor.undo_action(action.id)
    assert seen == [{"before": "old"}]


async def test_the_process_wide_store_can_be_replaced() -> None:
    store = UndoStore()
    set_undo_store(store)
    executor = AdvancedToolExecutor([undoable(Shelf())])
    action = act("PUT")
    await executor.execute(action)
    assert len(store) == 1
    assert get_undo_store() is store


async def test_a_claim_is_taken_once_and_can_be_given_back() -> None:
    store = UndoStore()
    await store.store("a", {"x": 1})
    assert await store.claim("a")
    assert not await store.claim("a")
    assert await store.get("a") is None
    await store.release("a")
    await store.release("b")
    assert await store.get("a") is not None
    assert not await store.claim("b")
    assert all([await AdvancedToolExecutor([ToolDefinition("e", {}, echo)]).undo_action("a") is False])


class Pairs(Custom):
    """A store in document 000's shape: an id and its data, and `remove` instead of `delete`."""

    async def store(self, action_id: Any, undo_metadata: Any) -> None:  # type: ignore[override]  # that is the point
        self._check()
        self.kept[action_id] = undo_metadata

    async def remove(self, action_id: UUID | str) -> bool:
        return self.kept.pop(action_id, None) is not None

    delete = None  # type: ignore[assignment]  # it has the other name


async def test_a_store_may_take_an_id_and_its_data() -> None:
    shelf, pairs = Shelf(), Pairs()
    executor = AdvancedToolExecutor([undoable(shelf)], undo_store=pairs)  # type: ignore[arg-type]  # the other shape
    action = act("PUT")
    await executor.execute(action)
    assert pairs.kept == {action.id: {"before": "old"}}
    assert await executor.undo_action(action.id)
    assert (pairs.kept, shelf.state) == ({}, "old")


class Triples(Custom):
    """A store in stageflow's shape: an id, the tool's name and the data."""

    async def store(self, action_id: Any, tool_name: str, undo_data: Any) -> None:  # type: ignore[override]  # as above
        self.kept[action_id] = UndoMetadata(action_id, tool_name, undo_data)


async def test_a_store_may_take_an_id_a_name_and_the_data() -> None:
    shelf, triples = Shelf(), Triples()
    executor = AdvancedToolExecutor([undoable(shelf)], undo_store=triples)  # type: ignore[arg-type]  # the other shape
    action = act("PUT")
    await executor.execute(action)
    assert triples.kept[action.id].undo_data == {"before": "old"}
    assert await executor.undo_action(action.id)
    assert (triples.kept, shelf.state) == ({}, "old")


async def test_undo_data_is_stored_by_keywords_and_by_place_with_the_tools_name() -> None:
    store, first = UndoStore(), uuid4()
    kept = await store.store(action_id=first, tool_name="put", undo_data={"n": 1}, ttl_seconds=60)
    assert await store.get(first) == kept == UndoMetadata(first, "put", {"n": 1}, kept.created_at)
    await store.store("b", "put", {"n": 2})
    await store.store("c", {"n": 3}, tool_name="put")
    await store.store(metadata=UndoMetadata("d", "put", {"n": 4}))
    assert {(one.action_id, one.tool_name, one.undo_data["n"]) for one in await store.get_all()} == {
        (first, "put", 1),
        ("b", "put", 2),
        ("c", "put", 3),
        ("d", "put", 4),
    }
    await store.delete("b")
    await store.store("c", {"n": 3}, ttl_seconds=-1)
    assert [one.action_id for one in await store.get_all()] == [first, "d"]
    with pytest.raises(UsageError, match="action id and its undo data"):
        await store.store(tool_name="put", undo_data={})


async def test_the_store_keeps_data_as_long_as_the_configuration_says() -> None:
    store = UndoStore()
    config = ToolExecutorConfig(undo_ttl_seconds=0.01)
    executor = AdvancedToolExecutor([undoable(Shelf())], undo_store=store, config=config)
    action = act("PUT")
    await executor.execute(action)
    await asyncio.sleep(0.02)
    assert await store.get(action.id) is None
