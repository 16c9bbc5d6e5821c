"""What an event sink hears, in which order, and what happens when it does not listen."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock
from uuid import UUID, uuid4

import pytest
from tests.unit.tools.scene import PERSON, Shelf, Sink, act, answer, asked, echo

import toolgate
from toolgate.errors import UsageError
from toolgate.testing.patience import until
from toolgate.tools import (
    EVENT_TYPES,
    AdvancedToolExecutor,
    ApprovalDecidedEvent,
    ApprovalRequestedEvent,
    ToolCompletedEvent,
    ToolDefinition,
    ToolDeniedEvent,
    ToolExecutionError,
    ToolExecutorConfig,
    ToolFailedEvent,
    ToolInput,
    ToolInputError,
    ToolInvokedEvent,
    ToolNotFoundError,
    ToolOutput,
    ToolStartedEvent,
    ToolUndoFailedEvent,
    ToolUndoneEvent,
    event_of,
    get_approval_service,
)
from toolgate.tools.events import render

SECRET = "sk-live-4eC39HqLyjWDarjtT1zdp7dc"


async def test_a_success_is_told_in_three_events_with_all_their_fields() -> None:
    sink, action = Sink(), act("ECHO", a=1)
    ctx = SimpleNamespace(pipeline_run_id=uuid4(), request_id=uuid4())
    tool = ToolDefinition(name="echo", action_type="ECHO", handler=echo, artifact_type="note")
    await AdvancedToolExecutor([tool], event_sink=sink).execute(action, ctx)
    assert sink.types == ["tool.invoked", "tool.started", "tool.completed"]
    for _, data in sink.told:
        assert data["tool_name"] == "echo"
        assert data["action_id"] == str(action.id)
        assert data["pipeline_run_id"] == str(ctx.pipeline_run_id)
        assert data["request_id"] == str(ctx.request_id)
        json.dumps(data)
    assert sink.of("tool.invoked")["payload_summary"] == {"a": 1}
    completed = sink.of("tool.completed")
    assert (completed["success"], completed["output_summary"], completed["artifact_type"]) == (True, {"a": 1}, "note")
    assert completed["duration_ms"] >= 0


async def test_started_is_heard_before_the_handler_runs_and_only_the_handler_is_timed() -> None:
    sink = Sink()

    async def look(_given: ToolInput) -> ToolOutput:
        return ToolOutput.ok(sink.types.copy())

    class Slow(Sink):
        async def emit(self, *, type: str, data: dict[str, Any]) -> None:
            await asyncio.sleep(0.25)
            await sink.emit(type=type, data=data)

    executor = AdvancedToolExecutor(
        [ToolDefinition("look", {}, look)], config=ToolExecutorConfig(on_sink_failure="refuse"), event_sink=Slow()
    )
    output = await executor.execute(act("look"))
    assert output.data == ["tool.invoked", "tool.started"]
    await until(lambda: "tool.completed" in sink.types)
    assert sink.of("tool.completed")["duration_ms"] < 250, "what the sink took was counted, too"


async def test_an_exception_is_told_and_raised_with_its_cause() -> None:
    sink, boom = Sink(), ValueError("kaboom")

    async def explode(_given: ToolInput) -> ToolOutput:
        raise boom

    action = act("explode")
    with pytest.raises(ToolExecutionError, match="kaboom") as raised:
        await AdvancedToolExecutor([ToolDefinition("explode", {}, explode)], event_sink=sink).execute(action)
    assert raised.value.__cause__ is boom
    assert (raised.value.tool, raised.value.action_id, raised.value.cause) == ("explode", action.id, boom)
    assert sink.types == ["tool.invoked", "tool.started", "tool.failed"]
    told = sink.of("tool.failed")
    assert (told["error_code"], told["error_message"]) == ("execution_failed", "kaboom")


async def test_a_failing_output_is_returned_and_told_as_a_failure() -> None:
    sink, output = Sink(), ToolOutput.fail("no such thing", data={"looked": 1})

    async def fail(_given: ToolInput) -> ToolOutput:
        return output

    executor = AdvancedToolExecutor([ToolDefinition("fail", {}, fail)], event_sink=sink)
    action = act("fail")
    assert await executor.execute(action) is output
    assert sink.types == ["tool.invoked", "tool.started", "tool.failed"]
    again = await executor.execute(action)
    assert (again.success, again.error, again.data) == (False, "no such thing", {"looked": 1})


async def test_arguments_are_checked_before_anything_else() -> None:
    shelf, sink = Shelf(), Sink()
    schema = {"type": "object", "required": ["state"]}
    tool = ToolDefinition("put", schema, shelf.put, requires_approval=True)
    with pytest.raises(ToolInputError, match="state"):
        await AdvancedToolExecutor([tool], event_sink=sink).execute(act("put"))
    assert (shelf.runs, sink.types) == (0, ["tool.invoked", "tool.failed"])
    assert await get_approval_service().list_pending() == []


async def test_an_unknown_tool_is_an_error() -> None:
    with pytest.raises(ToolNotFoundError, match="NOPE"):
        await AdvancedToolExecutor([]).execute(act("NOPE"))


async def test_approval_is_told_between_invoked_and_started() -> None:
    sink, action = Sink(), act("put")
    tool = ToolDefinition("put", {}, Shelf().put, requires_approval=True, approval_message="Really?")
    ctx = {"request_id": "r-1", "pipeline_run_id": "run"}
    running = asyncio.ensure_future(AdvancedToolExecutor([tool], event_sink=sink).execute(action, ctx))
    question = await asked()
    assert sink.types == ["tool.invoked", "approval.requested"]
    await answer(True)
    await running
    assert sink.types[2:] == ["approval.decided", "tool.started", "tool.completed"]
    requested, decided = sink.of("approval.requested"), sink.of("approval.decided")
    assert UUID(requested["request_id"]) == UUID(decided["request_id"]) == question.id
    assert (requested["message"], requested["approval_message"]) == ("Really?", "Really?")
    assert requested["correlation_request_id"] == decided["correlation_request_id"] == "r-1"
    assert (decided["decision"], decided["decided_by"]) == ("approved", str(PERSON))
    artifact = requested["artifact"]
    assert (artifact["options"], artifact["message"], artifact["arguments"]) == (
        ["approve", "deny"],
        "Really?",
        {},
    )


async def test_no_secret_is_told() -> None:
    sink = Sink()

    async def leak(given: ToolInput) -> ToolOutput:
        raise RuntimeError(f"cannot use {given.payload['api_key']}")

    tool = ToolDefinition("leak", {}, leak, requires_approval=True, approval_message=f"Use {SECRET}?")
    executor = AdvancedToolExecutor([tool], event_sink=sink)
    running = asyncio.ensure_future(executor.execute(act("leak", api_key=SECRET, nested=[{"password": "hunter2"}])))
    question = await answer(True)
    with pytest.raises(ToolExecutionError) as raised:
        await running
    seen = json.dumps(sink.told) + repr(question) + str(raised.value)
    assert SECRET not in seen
    assert "hunter2" not in seen


async def test_emit_events_off_silences_the_sink_and_not_the_record() -> None:
    sink = Sink()
    config = ToolExecutorConfig(emit_events=False)
    executor = AdvancedToolExecutor([ToolDefinition("echo", {}, echo)], config=config, event_sink=sink)
    await executor.execute(act("echo"))
    assert sink.told == []
    assert len(await executor.gate.events(project=executor.project)) == 3


async def test_a_sink_with_try_emit_is_told_through_it() -> None:
    told: list[str] = []

    class Quick:
        def try_emit(self, *, type: str, data: dict[str, Any]) -> None:
            told.append(type)

        async def emit(self, *, type: str, data: dict[str, Any]) -> None:
            raise AssertionError("not this one")

    await AdvancedToolExecutor([ToolDefinition("echo", {}, echo)], event_sink=Quick()).execute(act("echo"))
    assert told == ["tool.invoked", "tool.started", "tool.completed"]


class Broken(Sink):
    down = True

    async def emit(self, *, type: str, data: dict[str, Any]) -> None:
        if self.down:
            raise OSError("nobody listens")
        await super().emit(type=type, data=data)


async def test_a_failing_sink_costs_nothing_and_is_told_later(caplog: pytest.LogCaptureFixture) -> None:
    shelf, sink = Shelf(), Broken()
    executor = AdvancedToolExecutor([ToolDefinition("put", {}, shelf.put)], event_sink=sink)
    with caplog.at_level(logging.ERROR):
        await executor.execute(act("put"))
    assert "event sink failed" in caplog.text
    sink.down = False
    await executor.execute(act("put"))
    assert sink.types == ["tool.invoked", "tool.started", "tool.completed"] * 2


async def test_where_nothing_may_run_unheard_a_failing_sink_stops_it() -> None:
    shelf, sink = Shelf(), Broken()
    tool = ToolDefinition("put", {}, shelf.put, undoable=True, undo_handler=shelf.put_back)
    executor = AdvancedToolExecutor([tool], config=ToolExecutorConfig(on_sink_failure="refuse"), event_sink=sink)
    with pytest.raises(ToolExecutionError, match="unheard"):
        await executor.execute(act("put"))
    assert shelf.runs == 0
    sink.down = False
    action = act("put")
    await executor.execute(action)
    sink.down = True
    with pytest.raises(Exception, match="unheard"):
        await executor.undo_action(action.id)
    assert (shelf.runs, shelf.undos) == (1, 0)
    sink.down = False
    assert await executor.undo_action(action.id)
    assert sink.types[-3:] == ["tool.undo_failed", "tool.undo_started", "tool.undone"]


async def test_changing_what_a_sink_was_told_changes_nothing() -> None:
    class Rude(Sink):
        async def emit(self, *, type: str, data: dict[str, Any]) -> None:
            await super().emit(type=type, data={**data})
            data.clear()

    executor = AdvancedToolExecutor([ToolDefinition("echo", {}, echo)], event_sink=Rude())
    await executor.execute(act("echo", a=1))
    events = await executor.gate.events(project=executor.project)
    assert events[0].data["payload_summary"] == {"a": 1}


def test_event_classes_have_the_documented_fields_in_order() -> None:
    id = uuid4()
    assert ToolInvokedEvent("t", id, {"a": 1}).to_dict()["payload_summary"] == {"a": 1}
    assert ToolStartedEvent("t", id).action_id is id
    assert ToolCompletedEvent("t", id, 1.5, "out").duration_ms == 1.5
    assert ToolFailedEvent("t", id, "code", "text").error_message == "text"
    assert ToolDeniedEvent("t", id, "why").reason == "why"
    assert ToolUndoneEvent("t", id, 2.0).duration_ms == 2.0
    assert ToolUndoFailedEvent("t", id, "text").error == "text"
    asked_for = ApprovalRequestedEvent(id, "t", "Really?")
    assert (asked_for.message, asked_for.approval_message) == ("Really?", "Really?")
    decided = ApprovalDecidedEvent(id, "approved", id)
    assert decided.to_dict() | {"timestamp": ""} == {
        "type": "approval.decided",
        "request_id": str(id),
        "decision": "approved",
        "decided_by": str(id),
        "tool_name": "",
        "reason": None,
        "action_id": None,
        "correlation_request_id": None,
        "pipeline_run_id": None,
        "timestamp": "",
    }


async def test_what_a_sink_is_told_fits_its_class() -> None:
    sink, shelf = Sink(), Shelf()
    tool = ToolDefinition("put", {}, shelf.put, requires_approval=True, undoable=True, undo_handler=shelf.put_back)
    executor = AdvancedToolExecutor([tool], event_sink=sink)
    action = act("put")
    running = asyncio.ensure_future(executor.execute(action))
    await answer(True)
    await running
    await executor.undo_action(action.id)
    events = [event_of(type, data) for type, data in sink.told]
    assert [event.type for event in events] == sink.types
    assert set(sink.types) <= set(EVENT_TYPES)
    assert len(EVENT_TYPES) == 9


async def test_a_stand_in_for_a_sink_is_told_through_emit() -> None:
    sink = AsyncMock()
    await AdvancedToolExecutor([ToolDefinition("echo", {}, echo)], event_sink=sink).execute(act("echo"))
    assert [told.kwargs["type"] for told in sink.emit.await_args_list] == [
        "tool.invoked",
        "tool.started",
        "tool.completed",
    ]


async def test_leaving_while_the_sink_is_told_ends_the_call_before_it_runs() -> None:
    shelf, telling = Shelf(), asyncio.Event()

    class Slow(Sink):
        async def emit(self, *, type: str, data: dict[str, Any]) -> None:
            telling.set()
            await asyncio.sleep(0.05)
            await super().emit(type=type, data=data)

    sink = Slow()
    executor = AdvancedToolExecutor([ToolDefinition("put", {}, shelf.put)], event_sink=sink)
    action = act("put")
    running = asyncio.ensure_future(executor.execute(action))
    await telling.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await until(lambda: sink.types[-1:] == ["tool.failed"])
    assert shelf.runs == 0
    assert (await executor.gate.get(str(action.id), project=executor.project)).status == "CANCELLED"


@pytest.mark.parametrize(
    "wrong", [{"on_sink_failure": "ignore"}, {"approval_timeout_seconds": -1}, {"undo_ttl_seconds": 0}]
)
def test_a_configuration_that_cannot_be_meant_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        ToolExecutorConfig(**wrong)


async def test_a_named_sink_hears_what_it_missed_as_soon_as_its_executor_is_made(database: Path) -> None:
    tool, config = ToolDefinition("echo", {}, echo), ToolExecutorConfig(sink_name="audit")
    sink = Broken()
    async with toolgate.open(f"sqlite:///{database}") as gate:
        executor = AdvancedToolExecutor([tool], config=config, event_sink=sink, gate=gate, project="shop")
        await executor.execute(act("echo"))
    sink.down = False
    async with toolgate.open(f"sqlite:///{database}") as gate:
        executor = AdvancedToolExecutor([tool], config=config, event_sink=sink, gate=gate, project="shop")
        await until(lambda: len(sink.told) == 3)
        assert executor.project == "shop"
    assert sink.types == ["tool.invoked", "tool.started", "tool.completed"]


def test_a_named_sink_needs_a_project_with_a_name() -> None:
    with pytest.raises(UsageError, match="project with a name"):
        AdvancedToolExecutor([], config=ToolExecutorConfig(sink_name="audit"), event_sink=Sink())


async def test_events_whose_content_was_destroyed_are_told_without_it() -> None:
    ask = ToolDefinition(name="echo", action_type="ECHO", handler=echo, requires_approval=True)
    async with toolgate.open("memory://", tools=[ask]) as gate:
        parked = await gate.call("echo", {"a": 1}, wait=False)
        await gate.cancel(parked.call_id)
        events = await gate.events()
    told = [render(event.type, event._replace(content=None).data) for event in events]
    assert [one[0] for one in told if one is not None] == ["tool.invoked", "approval.requested", "tool.failed"]
    assert all(isinstance(event_of(*one).type, str) for one in told if one is not None)
