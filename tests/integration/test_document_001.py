"""The code blocks of document 001, run exactly as written with only their import lines mapped."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from tests.integration.documents import python_blocks, run
from tests.unit.tools.scene import asked

import toolgate
from toolgate.tools import (
    Action,
    AdvancedToolExecutor,
    ToolApprovalDeniedError,
    ToolDeniedError,
    ToolInput,
    ToolOutput,
    ToolRegistry,
    UndoMetadata,
    get_approval_service,
    get_tool_registry,
    get_undo_store,
)

BLOCKS = python_blocks(1)
Names = dict[str, Any]
Play = Callable[..., Awaitable[Names]]


@pytest.fixture
def play() -> Play:
    """Run blocks in order in one namespace and return it."""
    names: Names = {"__name__": "document"}

    async def _play(*numbers: int, **given: Any) -> Names:
        names.update(given)
        for number in numbers:
            names["__value__"] = await run(BLOCKS[number], names)
        return names

    return _play


class Sink:
    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []

    async def emit(self, *, type: str, data: dict[str, Any]) -> None:
        self.told.append((type, data))


def test_there_are_twenty_seven_blocks() -> None:
    assert len(BLOCKS) == 27


async def test_a_plain_class_and_a_base_tool_run(play: Play) -> None:
    names = await play(0, 1)
    registry = ToolRegistry([names["GreetTool"](), names["CalculatorTool"]()])
    greeting = await registry.execute(Action(type="GREET", payload={"name": "Ann"}), {})
    assert "Ann" in greeting.data["message"]
    divided = await registry.execute(Action(type="CALCULATE", payload={"operation": "divide", "a": 1, "b": 0}), {})
    assert (divided.success, divided.error) == (False, "Division by zero")


async def test_tools_are_registered_and_found(play: Play) -> None:
    names = await play(0, 1, 2, 3)
    registry = names["registry"]
    assert registry is get_tool_registry()
    assert {tool.name for tool in names["all_tools"]} == {"greet", "calculator", "search"}
    assert registry.get("search") is not None
    assert names["tool"] is registry.get("calculator")
    assert names["SearchTool"].name == "search"


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_a_models_calls_are_resolved_and_run(play: Play, provider: str) -> None:
    arguments = {"operation": "multiply", "a": 6, "b": 7}
    if provider == "openai":
        calls: list[Any] = [
            {"id": "c1", "type": "function", "function": {"name": "calculator", "arguments": json.dumps(arguments)}},
            {"id": "c2", "type": "function", "function": {"name": "nothing", "arguments": "{}"}},
        ]
    else:
        calls = [
            {"type": "tool_use", "id": "c1", "name": "calculator", "input": arguments},
            {"type": "tool_use", "id": "c2", "name": "nothing", "input": {}},
        ]
    sink = SimpleNamespace(told=[])
    sink.try_emit = lambda *, type, data: sink.told.append((type, data))
    names = await play(
        0, 1, 2, 4, llm_response=SimpleNamespace(tool_calls=calls), ctx=toolgate.StageContext(event_sink=sink)
    )
    assert names["result"].data == {"result": 42}
    assert [(type, data["call_id"]) for type, data in sink.told] == [("tools.unresolved", "c2")]


async def test_one_action_runs_on_registry_and_both_executors(play: Play, capsys: pytest.CaptureFixture[str]) -> None:
    await play(0, 1, 2, 5)
    assert capsys.readouterr().out.strip() == "{'result': 8}"
    names = await play(6)
    assert names["result"].data == {"result": 8}
    for ctx in ({"behavior": "x"}, SimpleNamespace(execution_mode="x")):
        sink = Sink()
        names = await play(7, my_event_sink=sink, ctx=ctx)
        assert names["result"].data == {"result": 8}
        assert [type for type, _ in sink.told] == ["tool.invoked", "tool.started", "tool.completed"]


async def test_the_edit_tool_is_gated_asked_about_and_undone(play: Play) -> None:
    undone = []

    async def undo_edit_document(metadata: UndoMetadata) -> None:
        undone.append(metadata.undo_data)

    names = await play(8, undo_edit_document=undo_edit_document)
    executor = AdvancedToolExecutor(registry=ToolRegistry([names["edit_document_tool"]]))
    action = Action(type="EDIT_DOCUMENT", payload={"document_id": "d", "changes": [1, 2]})
    with pytest.raises(ToolDeniedError):
        await executor.execute(action, {"behavior": "chat"})
    action = Action(type="EDIT_DOCUMENT", payload={"document_id": "d", "changes": [1, 2]})
    running = asyncio.ensure_future(executor.execute(action, {"behavior": "doc_edit"}))
    service = get_approval_service()
    question = await asked(service)
    assert question.message.startswith("This will modify")
    await service.record_decision(question.action_id, True, uuid4())
    assert (await running).data == {"document_id": "d", "changes_applied": 2}
    assert await executor.undo_action(action.id, {"behavior": "doc_edit"})
    assert undone == [{"original_content": "..."}]


async def test_behavior_gating_by_hand(play: Play) -> None:
    async def dangerous_handler(input: ToolInput) -> ToolOutput:
        return ToolOutput.ok({"did": input.payload})

    given = {
        "ToolDefinition": toolgate.ToolDefinition,
        "ToolDeniedError": ToolDeniedError,
        "dangerous_handler": dangerous_handler,
        "input": ToolInput(action={"a": 1}),
    }
    names = await play(9, ctx=SimpleNamespace(execution_mode="admin"), **given)
    assert names["result"].data == {"did": {"a": 1}}
    with pytest.raises(ToolDeniedError, match="not allowed in this mode"):
        await play(9, ctx=SimpleNamespace(execution_mode="chat"), **given)


async def toggled(play: Play, state: dict[str, bool]) -> Names:
    return await play(
        10,
        ToolInput=ToolInput,
        ToolOutput=ToolOutput,
        ToolDefinition=toolgate.ToolDefinition,
        UndoMetadata=UndoMetadata,
        get_current_state=lambda: state["on"],
        set_state=lambda on: state.update(on=on),
    )


async def test_a_toggle_is_undone_through_the_executor(play: Play) -> None:
    state = {"on": True}
    names = await toggled(play, state)
    executor = AdvancedToolExecutor(registry=ToolRegistry([names["toggle_tool"]]))
    action = Action(type="TOGGLE", payload={"state": False})
    assert (await executor.execute(action, {})).data == {"state": False}
    assert state == {"on": False}
    assert await executor.undo_action(action.id, {}) is True
    assert state == {"on": True}


async def test_differences(play: Play, capsys: pytest.CaptureFixture[str]) -> None:
    names = await play(11)
    told = capsys.readouterr().out
    assert "Additions: 1\nDeletions: 0\n" in told
    assert "Has changes: True\nSummary: +1\n" in told
    assert names["serialized"]["additions"] == 1
    names = await play(12)
    assert [(step["op"], step["path"]) for step in json.loads(capsys.readouterr().out)] == [
        ("replace", "/theme"),
        ("replace", "/notifications"),
        ("replace", "/timeout"),
        ("add", "/language"),
    ]
    await play(13)
    expected = [line[2:] for line in BLOCKS[13].splitlines() if line.startswith("# ")]
    assert capsys.readouterr().out.splitlines() == expected


async def test_an_edit_tells_its_difference_and_is_undone(play: Play) -> None:
    names = await play(14)
    executor = AdvancedToolExecutor(registry=ToolRegistry([names["edit_tool"]]))
    action = Action(type="EDIT_DOCUMENT", payload={"document_id": "d", "content": "one\n"})
    output = await executor.execute(action, {})
    assert output.data["changes_summary"] == "+1"
    assert "+one" in output.data["diff"]
    assert names["_document_content"] == {"d": "one\n"}
    assert await executor.undo_action(action.id, {})
    assert names["_document_content"] == {"d": ""}


async def test_the_undo_store_by_hand(play: Play) -> None:
    state = {"on": False}
    await toggled(play, state)
    names = await play(15, action=Action(type="TOGGLE"))
    assert names["undo_store"] is get_undo_store()
    assert names["stored"].undo_data == {"previous_state": True}
    assert state == {"on": True}
    assert await get_undo_store().get(names["action"].id) is None


@pytest.mark.parametrize("answer", [None, True, False])
async def test_the_approval_service_by_hand(play: Play, answer: bool | None) -> None:
    async def delete_handler(input: ToolInput) -> ToolOutput:
        return ToolOutput.ok({"deleted": input.payload["user"]})

    action = Action(type="DELETE_ACCOUNT", payload={"user": "ann"})
    given = {
        "ToolDefinition": toolgate.ToolDefinition,
        "ToolApprovalDeniedError": ToolApprovalDeniedError,
        "delete_handler": delete_handler,
        "action": action,
        "input": ToolInput.from_action(action),
    }
    names = await play(16, 17, **given)
    assert names["status"] == "pending"
    assert "result" not in names
    if answer is None:
        return
    await get_approval_service().record_decision(names["request"].id, answer, uuid4())
    if answer:
        names = await play(17)
        assert names["result"].data == {"deleted": "ann"}
    else:
        with pytest.raises(ToolApprovalDeniedError, match="User denied"):
            await play(17)


async def test_event_classes_are_there(play: Play) -> None:
    names = await play(18)
    assert names["ToolCompletedEvent"].type == "tool.completed"
    assert names["ToolFailedEvent"].type == "tool.failed"


async def test_an_agent_stage_runs_actions_and_records_failures(play: Play) -> None:
    names = await play(0, 1, 2, 19)

    made: Any = names["AgentStage"]

    class Stage(made):  # type: ignore[misc]  # made by the block
        def _parse_intent(self, text: str) -> list[Any]:
            assert text == "seven times six"
            return [
                Action(type="CALCULATE", payload={"operation": "multiply", "a": 7, "b": 6}),
                Action(type="NOTHING", payload={}),
            ]

        def _generate_response(self, results: list[Any]) -> str:
            return f"{len(results)} results"

    output = await Stage().execute(toolgate.StageContext(input_text="seven times six", pipeline_run_id=uuid4()))
    first, second = output.data["action_results"]
    assert first == {"action": "CALCULATE", "success": True, "data": {"result": 42}}
    assert (second["success"], "not registered" in second["error"]) == (False, True)
    assert (output.data["response"], output.data["actions_executed"]) == ("2 results", 2)


async def test_an_agent_with_a_model_runs_what_it_calls(play: Play) -> None:
    names = await play(0, 1, 2, 19, 20)
    asked: list[dict[str, Any]] = []

    class Model:
        async def chat(self, **request: Any) -> Any:
            asked.append(request)
            if len(asked) > 1:
                return SimpleNamespace(content="done", tool_calls=[])
            return SimpleNamespace(content="", tool_calls=[{"name": "CALCULATE", "a": 2, "b": 3}])

    made: Any = names["LLMAgentStage"]

    class Stage(made):  # type: ignore[misc]  # made by the block
        def _build_messages(self, ctx: Any) -> list[Any]:
            return [{"role": "user", "content": ctx.snapshot.input_text}]

        def _tool_call_to_action(self, call: dict[str, Any]) -> Action:
            return Action(type=call["name"], payload={"operation": "add", "a": call["a"], "b": call["b"]})

    output = await Stage(Model(), get_tool_registry()).execute(toolgate.StageContext(input_text="2 + 3"))
    assert output.data["response"] == "done"
    assert [result.data for result in output.data["tool_results"]] == [{"result": 5}]
    offered = {tool["function"]["name"]: tool["function"] for tool in asked[0]["tools"]}
    assert set(offered) == {"greet", "calculator", "search"}
    assert all(isinstance(tool["parameters"], dict) for tool in offered.values())


async def test_errors_are_told_apart(play: Play, capsys: pytest.CaptureFixture[str]) -> None:
    await play(0, 1, 2)
    await play(21, action=Action(type="NOTHING"), ctx={})
    assert capsys.readouterr().out.startswith("Tool not found: ")

    async def explode(_input: ToolInput) -> ToolOutput:
        raise RuntimeError("kaboom")

    get_tool_registry().register(toolgate.ToolDefinition("explode", {}, explode, allowed_behaviors=("x",)))
    await play(21, action=Action(type="explode"), ctx={"behavior": "x"})
    assert "Tool execution failed: " in (told := capsys.readouterr().out)
    assert "kaboom" in told
    await play(21, action=Action(type="explode"), ctx={})
    assert capsys.readouterr().out.startswith("Tool denied: ")


async def test_graceful_degradation(play: Play, caplog: pytest.LogCaptureFixture) -> None:
    async def explode(_input: ToolInput) -> ToolOutput:
        raise RuntimeError("kaboom")

    names = await play(0, 1, 2, 21, 22, logger=logging.getLogger("document"), action=Action(type="NOTHING"), ctx={})
    get_tool_registry().register(toolgate.ToolDefinition("explode", {}, explode, allowed_behaviors=("x",)))
    fall_back = names["execute_with_fallback"]
    assert (await fall_back(Action(type="NOTHING"), {})).error == "Unknown action: NOTHING"
    assert "not available" in (await fall_back(Action(type="explode"), {})).error
    assert "unexpected" in (await fall_back(Action(type="explode"), {"behavior": "x"})).error
    assert "kaboom" in caplog.text


async def test_best_practices(play: Play) -> None:
    names = await play(23)
    assert names["DocumentTool"].__name__ == "DocumentTool"
    names = await play(24, ToolInput=ToolInput, ToolOutput=ToolOutput)
    check = names["execute"]
    assert (await check(None, ToolInput(action={}), {})).error == "document_id is required"
    assert (await check(None, ToolInput(action={"document_id": 1}), {})).error == "document_id must be a string"
    names = await play(25, doc_id="d")
    assert names["__value__"].to_dict()["data"] == {"document_id": "d", "searched_locations": ["db", "cache"]}


async def test_an_undoable_deletion(play: Play) -> None:
    items = {"i": SimpleNamespace(to_dict=lambda: {"name": "item"})}

    async def get_item(id: str) -> Any:
        return items[id]

    async def delete_item(id: str) -> None:
        del items[id]

    names = await play(26, ToolInput=ToolInput, ToolOutput=ToolOutput, get_item=get_item, delete_item=delete_item)
    output = await names["delete_handler"](ToolInput(action={"id": "i"}))
    assert output.undo_metadata == {"item_data": {"name": "item"}}
    assert items == {}
