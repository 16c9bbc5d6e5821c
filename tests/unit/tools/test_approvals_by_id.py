"""Approvals asked, decided and listed with ids and keywords, and services that are asked in that shape."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.unit.tools.scene import PERSON, Shelf, act, answer

from toolgate.errors import NotFoundError, ToolApprovalTimeoutError, UsageError
from toolgate.kernel.transient import is_transient
from toolgate.tools import (
    AdvancedToolExecutor,
    ApprovalDecision,
    ApprovalService,
    ApprovalStatus,
    ApprovalWaitTimeoutError,
    ToolApprovalDeniedError,
    ToolDefinition,
    ToolExecutorConfig,
)


async def test_a_question_may_be_asked_with_keywords() -> None:
    service, action, run = ApprovalService(), uuid4(), uuid4()
    asked = await service.request_approval(
        action_id=action,
        tool_name="pay",
        pipeline_run_id=run,
        approval_message="Pay ann?",
        payload_summary={"to": "ann", "password": "canary-hunter22"},
    )
    assert (asked.action_id, asked.tool_name, asked.message) == (action, "pay", "Pay ann?")
    assert (asked.pipeline_run_id, asked.status) == (run, ApprovalStatus.PENDING)
    assert asked.payload["to"] == "ann"
    assert "canary-hunter22" not in str(asked)
    assert await service.get_status(action) is ApprovalStatus.PENDING
    await service.close()


async def test_a_question_may_be_asked_by_place_and_words_may_be_left_out() -> None:
    service, run = ApprovalService(), uuid4()
    asked = await service.request_approval("a-1", "pay", run, "Pay?", {"n": 1})
    assert (asked.action_id, asked.pipeline_run_id, asked.message, asked.payload) == ("a-1", run, "Pay?", {"n": 1})
    assert (await service.request_approval("a-2", "pay")).message == "Run pay?"
    await service.close()


async def test_words_of_the_caller_come_before_those_of_the_tool() -> None:
    service = ApprovalService()
    tool = SimpleNamespace(name="pay", approval_message="Pay?")
    asked = await service.request_approval(act("PAY", n=1), None, tool, "Really pay?", {"n": "one"})
    assert (asked.message, asked.payload) == ("Really pay?", {"n": "one"})
    await service.close()


async def test_a_question_needs_a_tool() -> None:
    service = ApprovalService()
    with pytest.raises(UsageError, match="`action_id` and `tool_name`"):
        await service.request_approval(act("PAY"))
    with pytest.raises(UsageError, match="tool_name"):
        await service.request_approval(action_id=uuid4())
    assert await service.list_pending() == []
    await service.close()


async def test_who_decides_has_two_names_and_must_be_said() -> None:
    service = ApprovalService()
    asked = await service.request_approval("a-1", "pay")
    with pytest.raises(UsageError, match="say who"):
        await service.record_decision(asked.id or "", True)
    assert await service.get_status("a-1") is ApprovalStatus.PENDING
    said = await service.record_decision(request_id=asked.id or "", granted=False, decided_by=PERSON, reason="no")
    assert (said.granted, said.decided_by, said.reason) == (False, PERSON, "no")
    assert (await service.get_request("a-1")).decided_by == PERSON
    await service.close()


async def test_what_waits_can_be_listed_by_run() -> None:
    service, run = ApprovalService(), uuid4()
    mine = await service.request_approval("a-1", "pay", run)
    await service.request_approval("a-2", "pay", uuid4())
    assert [one.id for one in await service.get_pending_requests(run)] == [mine.id]
    assert [one.id for one in await service.get_pending_requests(str(run))] == [mine.id]
    assert len(await service.get_pending_requests()) == 2
    await service.close()


async def test_cleaning_up_closes_what_is_open_and_keeps_the_record() -> None:
    service = ApprovalService()
    asked = await service.request_approval("a-1", "pay")
    await service.cleanup(asked.id or "")
    await service.cleanup("nothing")
    assert await service.get_pending_requests() == []
    assert (await service.get_request("a-1")).status is ApprovalStatus.EXPIRED
    with pytest.raises(NotFoundError):
        await service.get_request("nothing")
    await service.close()


async def test_waiting_too_long_is_a_timeout_in_both_trees() -> None:
    service = ApprovalService()
    asked = await service.request_approval("a-1", "pay")
    with pytest.raises(TimeoutError) as raised:
        await service.await_decision(asked.id or "", timeout_seconds=0.01)
    assert isinstance(raised.value, ToolApprovalTimeoutError)
    assert isinstance(raised.value, ApprovalWaitTimeoutError)
    assert raised.value.to_dict()["request_id"] == str(asked.id)
    assert not is_transient(raised.value)
    assert await service.get_status("a-1") is ApprovalStatus.EXPIRED
    await service.close()


async def test_a_denial_of_an_execution_names_its_request() -> None:
    executor = AdvancedToolExecutor([ToolDefinition("put", {}, Shelf().put, requires_approval=True)])
    running = asyncio.ensure_future(executor.execute(act("put")))
    question = await answer(False)
    with pytest.raises(ToolApprovalDeniedError) as raised:
        await running
    assert raised.value.request_id == question.id


class ByIds:
    """A service of somebody else's in stageflow's shape."""

    def __init__(self, granted: bool | None) -> None:
        self.granted = granted
        self.asked: dict[str, Any] = {}

    async def request_approval(
        self,
        action_id: UUID,
        tool_name: str,
        pipeline_run_id: UUID | None = None,
        approval_message: str = "",
        payload_summary: dict[str, Any] | None = None,
    ) -> SimpleNamespace:
        self.asked = {"id": action_id, "tool": tool_name, "run": pipeline_run_id, "message": approval_message}
        self.asked["payload"] = payload_summary
        return SimpleNamespace(id="r-1")

    async def await_decision(self, request_id: str, timeout_seconds: float) -> ApprovalDecision:
        if self.granted is None:
            raise TimeoutError
        return ApprovalDecision(self.granted, request_id, "ann")


async def test_somebody_elses_service_is_asked_with_ids_where_it_takes_them() -> None:
    service, shelf, action, run = ByIds(True), Shelf(), act("put", state="x"), uuid4()
    tool = ToolDefinition("put", {}, shelf.put, requires_approval=True, approval_message="Put?")
    await AdvancedToolExecutor([tool], approval_service=service).execute(action, {"pipeline_run_id": run})
    assert service.asked == {
        "id": action.id,
        "tool": "put",
        "run": run,
        "message": "Put?",
        "payload": {"state": "x"},
    }
    assert shelf.state == "x"


async def test_a_service_that_gives_up_waiting_leaves_the_question_to_its_time() -> None:
    service, shelf = ByIds(None), Shelf()
    tool = ToolDefinition("put", {}, shelf.put, requires_approval=True)
    config = ToolExecutorConfig(approval_timeout_seconds=0.05)
    with pytest.raises(ToolApprovalTimeoutError):
        await AdvancedToolExecutor([tool], approval_service=service, config=config).execute(act("put"))
    assert (service.asked["run"], shelf.runs) == (None, 0)
