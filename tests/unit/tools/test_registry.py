"""What is registered, how it is found, and that everything that runs passes the gate."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.tools.scene import Shelf, act, echo

from toolgate.errors import DefinitionError, ToolNotFoundError
from toolgate.tools import (
    BaseTool,
    ToolDefinition,
    ToolInput,
    ToolOutput,
    ToolRegistry,
    clear_tool_registry,
    get_tool_registry,
    register_tool,
    set_tool_registry,
)


class Adder(BaseTool):
    name = "adder"
    description = "Add two numbers"
    action_type = "ADD"

    async def execute(self, input: ToolInput, ctx: dict[str, Any]) -> ToolOutput:
        return ToolOutput.ok({"sum": input.payload["a"] + input.payload["b"], "ctx": ctx})


class Bare:
    """A tool without a schema."""

    name, description, action_type = "bare", "Nothing more", "BARE"

    async def execute(self, input: ToolInput, ctx: dict[str, Any]) -> ToolOutput:
        return ToolOutput.ok(input.action.payload)


def test_what_was_registered_is_found_by_name_and_by_action_type() -> None:
    adder, echoing = Adder(), ToolDefinition("echo", {}, echo, category="talk")
    registry = ToolRegistry([adder, echoing])
    assert registry.get("adder") is registry.get("ADD") is registry.get_by_action_type("ADD") is adder
    assert registry.get("echo") is registry.get_by_action_type("echo") is echoing
    assert (registry.get("nothing"), registry.get_by_action_type("adder")) == (None, None)
    assert registry.get_by_action_type("nothing") is None
    assert registry.has("adder")
    assert registry.has("ADD")
    assert not registry.has("nothing")
    assert registry.list() == [adder, echoing]
    assert registry.filter_by_category("talk") == [echoing]
    assert registry.get_tool("nothing") is None
    assert registry.get_tool("echo") == (echoing, echo)


def test_a_string_never_names_two_tools() -> None:
    registry = ToolRegistry([Adder()])
    with pytest.raises(DefinitionError, match="already names tool `adder`"):
        registry.register(ToolDefinition("ADD", {}, echo))
    with pytest.raises(DefinitionError, match="already names"):
        registry.register(ToolDefinition("other", {}, echo, action_type="adder"))
    second = Adder()
    registry.register(second)
    assert registry.get("adder") is second
    registry.unregister("adder")
    assert registry.list() == []
    assert registry.get("adder") is None


def test_every_listed_tool_can_be_shown_to_a_model() -> None:
    bare = Bare()
    registry = ToolRegistry([bare, Adder(), ToolDefinition("echo", {"type": "object"}, echo)])
    shown = {tool.name: (tool.description, tool.input_schema) for tool in registry.list()}
    assert shown == {"bare": ("Nothing more", {}), "adder": ("Add two numbers", {}), "echo": ("", {"type": "object"})}
    assert bare in registry.list()
    assert registry.get("bare") is bare


def test_tools_are_listed_by_mode() -> None:
    registry = ToolRegistry(
        [ToolDefinition("echo", {}, echo), ToolDefinition("drill", {}, echo, allowed_modes=("ALERT",))]
    )
    assert [tool.name for tool in registry.list_tools("ALERT")] == ["echo", "drill"]
    assert [tool.name for tool in registry.list_tools("NORMAL")] == ["echo"]


async def test_a_governed_tool_passes_the_gate_and_is_otherwise_what_it_was() -> None:
    bare = Bare()
    registry = ToolRegistry([bare])
    governed = registry.governed("BARE")
    for given in (ToolInput(action={"a": 1}), {"a": 1}, act("BARE", a=1)):
        assert (await governed.execute(given, {})).data == {"a": 1}
    executor = registry.executor
    assert len(await executor.gate.events(project=executor.project)) == 9
    assert governed == bare
    assert governed == registry.governed("bare")
    assert governed != Bare()
    assert hash(governed) == hash(registry.governed("bare"))
    assert repr(governed) == "GovernedTool('bare')"
    assert governed.__doc__ is not None
    with pytest.raises(AttributeError):
        _ = governed._nothing
    with pytest.raises(AttributeError):
        _ = governed.nothing
    with pytest.raises(ToolNotFoundError):
        registry.governed("nothing")


async def test_a_governed_tool_keeps_the_inputs_own_context() -> None:
    registry = ToolRegistry([Adder()])
    given = ToolInput(payload={"a": 1, "b": 2}, ctx={"mine": 1})
    assert (await registry.governed("adder").execute(given)).data == {"sum": 3, "ctx": {"mine": 1}}


def test_the_process_has_one_registry() -> None:
    assert get_tool_registry() is get_tool_registry()
    first = get_tool_registry()
    clear_tool_registry()
    assert get_tool_registry() is not first
    set_tool_registry(first)
    assert get_tool_registry() is first


def test_a_class_an_instance_or_a_definition_is_registered_and_returned() -> None:
    assert register_tool(Adder) is Adder
    assert isinstance(get_tool_registry().get("adder"), Adder)
    bare, definition = Bare(), ToolDefinition("echo", {}, echo)
    assert register_tool(bare) is bare
    assert register_tool(definition) is definition
    assert get_tool_registry().get("echo") is definition

    class Needy(Adder):
        def __init__(self, what: str) -> None:
            self.what = what

    with pytest.raises(DefinitionError, match="cannot be made without arguments"):
        register_tool(Needy)


async def test_a_described_tool_gets_its_arguments_by_name() -> None:
    described = SimpleNamespace(name="sum", description="Add", category="maths", input_schema={"type": "object"})
    registry = ToolRegistry()
    registry.register(described, lambda a, b: {"sum": a + b})
    assert (await registry.execute(act("sum", a=1, b=2))).data == {"sum": 3}
    assert registry.get("sum") is described


async def test_nothing_runs_that_the_schema_refuses() -> None:
    from toolgate.tools import ToolInputError

    shelf = Shelf()
    registry = ToolRegistry([ToolDefinition("put", {"type": "object", "required": ["x"]}, shelf.put)])
    with pytest.raises(ToolInputError):
        await registry.governed("put").execute({}, {})
    assert shelf.runs == 0


@pytest.mark.parametrize(
    "calls",
    [
        [{"id": "c", "type": "function", "function": {"name": "adder", "arguments": '{"a": 1, "b": 2}'}}],
        [{"type": "tool_use", "id": "c", "name": "adder", "input": {"a": 1, "b": 2}}],
        SimpleNamespace(content=[SimpleNamespace(type="tool_use", id="c", name="adder", input={"a": 1, "b": 2})]),
    ],
)
async def test_a_models_calls_run_through_the_gate(calls: Any) -> None:
    registry = ToolRegistry([Adder()])
    (call,), unresolved = registry.parse_and_resolve(calls)
    assert unresolved == []
    assert (call.call_id, call.name, call.arguments) == ("c", "adder", {"a": 1, "b": 2})
    output = await call.tool.execute(ToolInput(action=call.arguments), ctx={"call_id": call.call_id})
    assert output.data == {"sum": 3, "ctx": {"call_id": "c"}}
    executor = registry.executor
    assert len(await executor.gate.events(project=executor.project)) == 3


def test_a_models_calls_that_cannot_run_say_why() -> None:
    calls = [
        {"id": "1", "function": {"name": "nothing", "arguments": "{}"}},
        {"id": "2", "function": {"name": "adder", "arguments": "{broken"}},
        {"id": "3", "function": {"name": "adder", "arguments": "[1]"}},
    ]
    resolved, unresolved = ToolRegistry([Adder()]).parse_and_resolve(calls)
    assert resolved == []
    assert [call.call_id for call in unresolved] == ["1", "2", "3"]
    assert all(call.error for call in unresolved)


def test_calls_with_other_field_names() -> None:
    registry = ToolRegistry([Adder()])
    (call,), _ = registry.parse_and_resolve(
        [{"ref": "c", "tool": "adder", "args": {"a": 1}}],
        id_field="ref",
        name_field="tool",
        arguments_field="args",
        function_wrapper=None,
    )
    assert (call.call_id, call.arguments) == ("c", {"a": 1})


def test_tools_are_exported_for_a_provider() -> None:
    (tool,) = ToolRegistry([Adder()]).export("anthropic")
    assert (tool["name"], tool["description"]) == ("adder", "Add two numbers")
