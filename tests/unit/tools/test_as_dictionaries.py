"""Errors, definitions, inputs, undo data and approvals as JSON values, and back where something reads them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.unit.tools.scene import act, echo

from toolgate.kernel.tool import Thresholds
from toolgate.tools import (
    ApprovalDecision,
    ApprovalRequest,
    ApprovalStatus,
    ToolApprovalDeniedError,
    ToolApprovalTimeoutError,
    ToolCancelledError,
    ToolDefinition,
    ToolDeniedError,
    ToolError,
    ToolExecutionError,
    ToolExecutor,
    ToolInput,
    ToolInputError,
    ToolNotFoundError,
    ToolOutput,
    ToolUndoError,
    UndoMetadata,
)

AN_ID = UUID(int=9)


@pytest.mark.parametrize(
    ("error", "fields"),
    [
        (ToolError("broken", tool="put"), {"code": "tool_error", "message": "broken", "tool": "put"}),
        (ToolInputError("bad", location="/a"), {"location": "/a", "tool": None}),
        (
            ToolDeniedError(tool="put", behavior="chat", allowed=("edit",)),
            {"behavior": "chat", "allowed_behaviors": ["edit"], "reason": None},
        ),
        (
            ToolApprovalDeniedError(tool="put", request_id=AN_ID, reason="no"),
            {"request_id": str(AN_ID), "reason": "no"},
        ),
        (ToolApprovalTimeoutError(tool="put", timeout_seconds=2.5), {"timeout_seconds": 2.5, "request_id": None}),
        (ToolCancelledError(tool="put", reason="stop"), {"reason": "stop"}),
        (ToolUndoError(tool="put", action_id=AN_ID, reason="gone"), {"action_id": str(AN_ID), "reason": "gone"}),
        (ToolExecutionError(tool="put", action_id=AN_ID), {"action_id": str(AN_ID), "cause": None}),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, ToolError) else "",
)
def test_an_error_tells_its_class_code_text_and_fields(error: ToolError, fields: dict[str, Any]) -> None:
    told = error.to_dict()
    assert (told["error_type"], told["code"], told["message"]) == (type(error).__name__, error.code, str(error))
    assert {name: told[name] for name in fields} == fields
    assert json.loads(json.dumps(told)) == told


def test_what_was_not_found_is_the_tool_or_the_only_text_there_is() -> None:
    assert ToolNotFoundError("Nothing here.", tool="put").to_dict()["action_type"] == "put"
    assert ToolNotFoundError("PUT").action_type == "PUT"
    assert ToolNotFoundError().action_type is None


def test_an_error_without_words_has_the_reason_its_class_stands_for() -> None:
    assert ToolApprovalDeniedError(tool="put").reason == "user_denied"
    assert ToolApprovalTimeoutError(tool="put").reason == "timeout"
    assert str(ToolApprovalTimeoutError(tool="put")) == "Tool `put`: approval timed out"
    assert ToolApprovalDeniedError("Ann said no.").reason is None


def test_an_undo_error_names_its_action() -> None:
    assert str(AN_ID) in str(ToolUndoError(tool="put", action_id=AN_ID, reason="gone"))


def test_a_cause_is_told_where_the_text_has_its_words_and_by_kind_where_it_hides_them() -> None:
    cause = ValueError("the key is sk-canary")
    assert ToolExecutionError(tool="put", cause=cause).to_dict()["cause"] == "the key is sk-canary"
    assert ToolExecutionError("the key is ***", tool="put", cause=cause).to_dict()["cause"] == "ValueError"


async def test_what_an_execution_hides_stays_hidden_in_the_dictionary_of_its_error() -> None:
    async def fail(given: ToolInput) -> ToolOutput:
        raise ValueError(f"refused with {given.payload['password']}")

    executor = ToolExecutor([ToolDefinition("put", {}, fail)])
    with pytest.raises(ToolExecutionError) as raised:
        await executor.execute(act("put", password="canary-hunter22"))
    told = raised.value.to_dict()
    assert "canary-hunter22" not in json.dumps(told)
    assert told["cause"] == "ValueError"


def test_a_definition_tells_what_it_declares_and_no_code() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    tool = ToolDefinition(
        "put", schema, echo, ("edit",), undoable=True, undo_handler=print, risk_level="high", thresholds=Thresholds()
    )
    told = tool.to_dict()
    assert (told["name"], told["action_type"], told["allowed_behaviors"]) == ("put", "put", ["edit"])
    assert (told["undoable"], told["risk_level"], told["thresholds"]) == (True, "high", {"auto": 85, "quick": 60})
    assert {"handler", "undo_handler", "function", "bind", "schema", "hash"}.isdisjoint(told)
    assert json.loads(json.dumps(told)) == told


def test_changing_the_dictionary_changes_no_definition() -> None:
    tool = ToolDefinition("put", {"type": "object", "properties": {}}, echo)
    tool.to_dict()["input_schema"]["properties"]["a"] = {}
    assert tool.input_schema["properties"] == {}


def test_an_input_takes_and_tells_behavior_run_and_request() -> None:
    run, request = uuid4(), uuid4()
    given = ToolInput(AN_ID, "put", {"a": 1}, behavior="edit", pipeline_run_id=run, request_id=request)
    assert (given.behavior, given.pipeline_run_id, given.request_id) == ("edit", run, request)
    assert given.to_dict() == {
        "action_id": str(AN_ID),
        "tool_name": "put",
        "payload": {"a": 1},
        "behavior": "edit",
        "pipeline_run_id": str(run),
        "request_id": str(request),
    }
    assert ToolInput().to_dict()["action_id"] is None


async def test_a_handler_reads_the_behavior_and_run_it_is_called_in() -> None:
    run = uuid4()
    seen: list[Any] = []

    async def look(given: ToolInput) -> ToolOutput:
        seen.extend((given.behavior, given.pipeline_run_id, given.request_id))
        return ToolOutput.ok()

    ctx = {"execution_mode": "edit", "pipeline_run_id": str(run), "request_id": "r-1"}
    await ToolExecutor([ToolDefinition("look", {}, look)]).execute(act("look"), ctx)
    assert seen == ["edit", run, "r-1"]


def test_undo_data_comes_back_from_its_dictionary() -> None:
    metadata = UndoMetadata(AN_ID, "put", {"before": 1})
    told = json.loads(json.dumps(metadata.to_dict()))
    assert UndoMetadata.from_dict(told) == metadata
    assert UndoMetadata.from_dict(UndoMetadata("a-1", "put", {}).to_dict()).action_id == "a-1"


def test_the_time_of_undo_data_may_be_text_or_left_out() -> None:
    given = UndoMetadata("a", "put", {}, "2024-05-01T10:00:00+02:00")  # type: ignore[arg-type]  # as stageflow has it
    assert given.created_at == datetime(2024, 5, 1, 10, tzinfo=timezone(timedelta(hours=2)))
    bare = {"action_id": "a", "tool_name": "put", "undo_data": {}}
    assert UndoMetadata.from_dict({**bare, "created_at": "2024-05-01"}).created_at == datetime(2024, 5, 1, tzinfo=UTC)
    assert datetime.now(UTC) - UndoMetadata.from_dict(bare).created_at < timedelta(minutes=1)


def test_a_request_takes_the_other_names_of_message_and_payload() -> None:
    asked = ApprovalRequest(id="r", action_id=AN_ID, tool_name="put", approval_message="Put?", payload_summary={"a": 1})
    assert (asked.message, asked.payload) == (asked.approval_message, asked.payload_summary) == ("Put?", {"a": 1})
    assert asked == ApprovalRequest(AN_ID, "put", "Put?", {"a": 1}, "r")


def test_a_request_and_a_decision_are_told_as_json() -> None:
    at = datetime(2024, 5, 1, tzinfo=UTC)
    told = ApprovalRequest(AN_ID, "put", "Put?", {"a": 1}, id=AN_ID, created_at=at).to_dict()
    assert (told["id"], told["action_id"], told["status"]) == (str(AN_ID), str(AN_ID), ApprovalStatus.PENDING.value)
    assert (told["approval_message"], told["payload_summary"], told["created_at"]) == ("Put?", {"a": 1}, at.isoformat())
    assert json.loads(json.dumps(told)) == told
    assert ApprovalDecision(True, AN_ID, "ann").to_dict() == {
        "granted": True,
        "request_id": str(AN_ID),
        "decided_by": "ann",
        "reason": None,
    }
