"""Definitions, inputs, outputs, tools by class, and what an action may look like."""

from __future__ import annotations

import dataclasses
import inspect
import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.unit.tools.scene import act, echo

from toolgate.errors import UsageError
from toolgate.tools import (
    Action,
    BaseTool,
    Tool,
    ToolDefinition,
    ToolExecutor,
    ToolInput,
    ToolOutput,
    ToolRegistry,
)
from toolgate.tools.definitions import action_of, definition_of
from toolgate.tools.errors import DefinitionError, ToolExecutionError


def test_a_definition_has_the_documented_fields_defaults_and_order() -> None:
    tool = ToolDefinition("t", {"type": "object"}, echo)
    assert (tool.name, tool.input_schema, tool.handler) == ("t", {"type": "object"}, echo)
    assert (tool.allowed_behaviors, tool.requires_approval, tool.approval_message) == ((), False, None)
    assert (tool.undoable, tool.undo_handler, tool.artifact_type) == (False, None, None)
    assert tool.action_type == "t"
    assert ToolDefinition(name="t", action_type="T", handler=echo).input_schema == {}


def test_a_definition_is_frozen_and_explains_its_fields() -> None:
    tool = ToolDefinition("t", {}, echo)
    with pytest.raises(dataclasses.FrozenInstanceError):
        tool.name = "other"  # type: ignore[misc]  # that is the point
    told = inspect.getdoc(ToolDefinition) or ""
    given = [item.name for item in dataclasses.fields(ToolDefinition) if item.init and item.repr]
    assert [name for name in given if f"\n{name}: " not in told] == []


def test_an_input_is_made_of_fields_an_action_or_plain_arguments() -> None:
    id = uuid4()
    by_fields = ToolInput(action_id=id, tool_name="t", payload={"a": 1}, ctx={"b": 2})
    assert (by_fields.action.id, by_fields.action.payload, by_fields.ctx) == (id, {"a": 1}, {"b": 2})
    by_arguments = ToolInput(action={"a": 1})
    assert by_arguments.payload == by_arguments.action.payload == {"a": 1}
    assert isinstance(by_arguments.action_id, UUID)


def test_an_input_from_an_action_copies_its_payload_deeply() -> None:
    action = act("T", deep={"list": [1]})
    given = ToolInput.from_action(action)
    given.payload["deep"]["list"].append(2)
    assert (given.action_id, action.payload) == (action.id, {"deep": {"list": [1]}})
    named = ToolInput.from_action(action, "t", {"c": 1})
    assert (named.tool_name, named.ctx) == ("t", {"c": 1})


def test_an_output_tells_itself_as_json() -> None:
    output = ToolOutput.ok({"when": uuid4()}, undo_metadata={"x": 1}, artifacts=[{"a": 1}])
    told = json.loads(json.dumps(output.to_dict()))
    assert (told["success"], told["error"], told["undo_metadata"], told["artifacts"]) == (
        True,
        None,
        {"x": 1},
        [{"a": 1}],
    )
    assert ToolOutput.fail("no").to_dict()["error"] == "no"
    assert ToolOutput.fail(error="no", data={"d": 1}).data == {"d": 1}


class Greeter:
    """A tool without any base class."""

    @property
    def name(self) -> str:
        return "greet"

    @property
    def description(self) -> str:
        return "Greet somebody"

    @property
    def action_type(self) -> str:
        return "GREET"

    async def execute(self, input: ToolInput, ctx: dict[str, Any]) -> ToolOutput:
        return ToolOutput(success=True, data={"said": input.action.payload["to"], "ctx": ctx})


class Plain(BaseTool):
    name = "plain"
    description = "A tool whose execute is not async"
    action_type = "PLAIN"
    input_schema: Mapping[str, Any] = {"type": "object", "required": ["a"]}
    allowed_behaviors = ["x"]  # noqa: RUF012  # as people write it

    def execute(self, input: ToolInput, ctx: dict[str, Any]) -> ToolOutput:  # type: ignore[override]  # plain on purpose
        return ToolOutput.ok({"a": input.payload["a"], "ctx": ctx})


async def test_a_plain_class_is_a_tool() -> None:
    tool = Greeter()
    assert isinstance(tool, Tool)
    ctx = {"me": "here"}
    output = await ToolRegistry([tool]).execute(act("GREET", to="ann"), ctx)
    assert output.data == {"said": "ann", "ctx": ctx}
    assert output.data["ctx"] is ctx  # the caller's own object
    assert (await ToolRegistry([tool]).execute(act("greet", to="ann"))).data["ctx"] == {}


def test_a_tool_declares_any_field_of_a_definition_as_an_attribute() -> None:
    definition = definition_of(Plain())
    assert (definition.allowed_behaviors, definition.input_schema["required"]) == (("x",), ["a"])
    assert (definition.action_type, definition.description) == ("PLAIN", "A tool whose execute is not async")
    assert not definition.is_async


async def test_a_plain_execute_runs_off_the_event_loop() -> None:
    output = await ToolExecutor([Plain()]).execute(act("PLAIN", a=1), {"behavior": "x"})
    assert output.data == {"a": 1, "ctx": {"behavior": "x"}}


async def test_a_base_tool_without_execute_fails_clearly() -> None:
    class Empty(BaseTool):
        name = "empty"

    with pytest.raises(ToolExecutionError, match="Empty needs its own"):
        await ToolExecutor([Empty()]).execute(act("empty"))


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (Greeter, "is a class; register an instance"),
        (object(), "has no `name`"),
        (SimpleNamespace(name="x"), "needs an `execute` method"),
    ],
)
def test_what_is_no_tool_is_refused(wrong: object, why: str) -> None:
    with pytest.raises(DefinitionError, match=why):
        ToolRegistry([wrong])


def test_a_description_and_its_executor_make_a_tool() -> None:
    described = SimpleNamespace(
        name="sum", description="Add", category="maths", input_schema=lambda: {"type": "object"}
    )
    definition = definition_of(described, lambda a, b: a + b)
    assert (definition.category, definition.input_schema) == ("maths", {"type": "object"})
    with pytest.raises(DefinitionError, match="leave the executor out"):
        definition_of(ToolDefinition("t", {}, echo), lambda: None)


@pytest.mark.parametrize(
    "action",
    [
        Action(id="1", type="T", payload={"a": 1}),
        {"id": "1", "type": "T", "payload": {"a": 1}},
        SimpleNamespace(id="1", type="T", payload={"a": 1}),
    ],
)
def test_an_action_is_anything_with_id_type_and_payload(action: object) -> None:
    assert action_of(action) == Action(id="1", type="T", payload={"a": 1})


def test_an_action_may_lack_id_and_payload_but_not_its_type() -> None:
    made = action_of({"type": "T"})
    assert (isinstance(made.id, UUID), made.payload) == (True, {})
    with pytest.raises(UsageError, match="needs a `type`"):
        action_of({"payload": {}})
    with pytest.raises(UsageError, match="must be a mapping"):
        action_of({"type": "T", "payload": [1]})
