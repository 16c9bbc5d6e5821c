"""Undo data and approvals kept by hand, in memory and in a file that outlives the process."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import pytest
from tests.redis_server import RedisServer

from toolgate.errors import DecisionConflictError, NotFoundError, ToolApprovalTimeoutError, ToolgateError, UsageError
from toolgate.tools import ApprovalRequest, ApprovalService, ApprovalStatus, UndoMetadata, UndoStore

Url = Callable[[], str]


@pytest.fixture(params=["memory", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path, empty_database: Path) -> str:
    if request.param == "memory":
        return "memory://"
    path = tmp_path / "kept.db"
    shutil.copy(empty_database, path)
    shutil.copy(f"{empty_database}.key", f"{path}.key")
    return f"sqlite:///{path}"


@pytest.fixture(params=["memory", "sqlite", "redis"])
def undo_url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "redis":
        monkeypatch.chdir(tmp_path)
        server: RedisServer = request.getfixturevalue("shared_redis")
        return server.url
    return "memory://" if request.param == "memory" else f"sqlite:///{request.getfixturevalue('database')}"


async def test_undo_data_comes_back_until_it_is_deleted(undo_url: str) -> None:
    store = UndoStore.open(undo_url)
    metadata = UndoMetadata(action_id=uuid4(), tool_name="toggle", undo_data={"was": True})
    await store.store(metadata)
    assert await store.get(metadata.action_id) == metadata
    assert await store.remove(metadata.action_id)
    assert not await store.delete(metadata.action_id)
    assert await store.get(metadata.action_id) is None
    await store.close()


async def test_undo_data_may_be_given_as_an_id_and_a_mapping_and_expires(undo_url: str) -> None:
    store = UndoStore.open(undo_url, ttl_seconds=60)
    await store.store("a-1", {"was": 1}, tool_name="toggle")
    assert (await store.get("a-1") or UndoMetadata("", "", {})).undo_data == {"was": 1}
    await store.store("a-2", {"was": 2}, ttl_seconds=-1)
    assert await store.get("a-2") is None
    assert not await store.delete("a-3")
    with pytest.raises(UsageError, match="action id and its undo data"):
        await store.store("a-4")
    await store.close()


async def test_an_undo_store_without_a_url_lives_in_the_process() -> None:
    store = UndoStore()
    await store.store("a", {"was": 1})
    assert await store.get("a") is not None
    await store.close()


async def test_undo_data_and_questions_outlive_the_process_in_a_file(tmp_path: Path, empty_database: Path) -> None:
    path = tmp_path / "kept.db"
    shutil.copy(empty_database, path)
    shutil.copy(f"{empty_database}.key", f"{path}.key")
    undo, service = UndoStore.open(f"sqlite:///{path}"), ApprovalService.open(f"sqlite:///{path}")
    await undo.store("a", {"was": 1})
    asked = await service.request(ApprovalRequest(action_id="a", tool_name="pay", message="Pay ann?"))
    await undo.close()
    await service.close()
    undo, service = UndoStore.open(f"sqlite:///{path}"), ApprovalService.open(f"sqlite:///{path}")
    assert await undo.get("a") is not None
    assert [(one.id, one.approval_message) for one in await service.list_pending()] == [(asked.id, "Pay ann?")]
    await service.record_decision(str(asked.id), True, "ann")
    assert (await service.await_decision("a", 10)).granted
    await undo.close()
    await service.close()


async def test_a_question_is_asked_answered_once_and_found_by_both_ids(url: str) -> None:
    service = ApprovalService.open(url)
    action = uuid4()
    asked = await service.request(ApprovalRequest(action_id=action, tool_name="pay", payload={"to": "ann"}))
    assert await service.get_status(action) is ApprovalStatus.PENDING
    waiting = asyncio.ensure_future(service.await_decision(str(asked.id), 10))
    await service.record_decision(str(asked.id), False, "ann", reason="too much")
    assert (await waiting).granted is False
    assert await service.get_status(str(asked.id)) is ApprovalStatus.DENIED
    with pytest.raises(DecisionConflictError):
        await service.record_decision(str(asked.id), True, "bob")
    with pytest.raises(NotFoundError):
        await service.get_status("nobody asked this")
    await service.close()


async def test_a_question_nobody_answers_expires(url: str) -> None:
    service = ApprovalService.open(url)
    tool = SimpleNamespace(name="pay", approval_message=None)
    action = SimpleNamespace(id=uuid4(), payload={"to": "ann"})
    asked = await service.request_approval(action, {"pipeline_run_id": uuid4()}, tool)
    with pytest.raises(ToolApprovalTimeoutError):
        await service.await_decision(str(asked.id), 0.01)
    assert await service.get_status(action.id) is ApprovalStatus.EXPIRED
    await service.close()


async def test_a_question_that_cannot_be_asked_is_an_error() -> None:
    service = ApprovalService()
    with pytest.raises(ToolgateError):
        await service.request(ApprovalRequest(action_id="a", tool_name="not a name!", payload={}))
    await service.close()
