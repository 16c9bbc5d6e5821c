"""The Google ADK adapter, given what a runner was seen to give its plugins."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import pytest_asyncio
from tests.unit.integrations.fakes import standing_in

import toolgate
from toolgate import Gate
from toolgate.errors import DefinitionError, UsageError

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}


class BasePlugin:
    def __init__(self, name: str) -> None:
        self.name = name


class Parameters:
    """A schema in Gemini's form."""

    @staticmethod
    def model_dump(**_options: Any) -> Any:
        properties = {"n": {"type": "INTEGER", "title": "N", "nullable": True}, "of": {"any_of": [{"type": "STRING"}]}}
        return {"type": "OBJECT", "properties": properties}


class Tool:
    description = None

    def __init__(
        self, name: str = "send", schema: Any = SCHEMA, parameters: Any = None, *, declared: bool = True
    ) -> None:
        self.name, self.given = name, list[Any]()
        told = SimpleNamespace(parameters_json_schema=schema, parameters=parameters)
        self._told = told if declared else None

    def _get_declaration(self) -> Any:
        return self._told

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        self.given.append(args)
        if args.get("n") == 0:
            raise LookupError(tool_context.function_call_id)
        return f"sent {args.get('n')}"


class ToolContext:
    def __init__(self, *, is_known: bool = True) -> None:
        call = SimpleNamespace(id="c1")
        event = SimpleNamespace(id="e1", get_function_calls=lambda: [call] if is_known else [])
        self.session = SimpleNamespace(id="s1", events=[event])
        self.function_call_id, self.actions, self.asked = "c1", SimpleNamespace(), list[Any]()

    def request_confirmation(self, **question: Any) -> None:
        self.asked.append(question)


@pytest.fixture
def adapter() -> Iterator[ModuleType]:
    with standing_in("google_adk", "2.13.0", google__adk__plugins__base_plugin={"BasePlugin": BasePlugin}) as module:
        yield module


@pytest_asyncio.fixture
async def gate() -> AsyncIterator[Gate]:
    async with toolgate.open("memory://") as opened:
        yield opened


async def called(gated: Any, tool: Tool, context: Any = None, **args: Any) -> Any:
    return await gated.before_tool_callback(tool=tool, tool_args=args, tool_context=context or ToolContext())


async def test_a_question_is_a_confirmation_and_the_next_try_runs_once(adapter: ModuleType, gate: Gate) -> None:
    gated, tool, context = adapter.Toolgate(gate, effects={"send": "irreversible"}), Tool(), ToolContext()
    assert (await called(gated, tool, context, n=1))["status"] == "waits"
    [question] = context.asked
    assert not tool.given
    await gate.approvals.edit(question["payload"]["toolgate"]["approval_id"], {"n": 2}, by="ann")
    for _ in range(2):
        said = await called(gated, tool, n=1)
        assert (said["result"], "changed the arguments" in said["note"]) == ("sent 2", True)
    assert tool.given == [{"n": 2}]


async def test_a_no_is_told_and_what_the_tool_raises_is_the_frameworks(adapter: ModuleType, gate: Gate) -> None:
    gated, tool = adapter.Toolgate(gate, effects={"send": "irreversible"}), Tool()
    await called(gated, tool, n=1)
    await gate.decide((await gate.pending())[0].id, "deny", by="ann", reason="not today")
    assert "not today" in (await called(gated, tool, n=1))["error"]
    async with toolgate.open("memory://") as other:
        with pytest.raises(LookupError):
            await called(adapter.Toolgate(other), tool, n=0)


async def test_schemas_are_read_in_either_form(adapter: ModuleType, gate: Gate) -> None:
    gated = adapter.Toolgate(gate)
    await called(gated, Tool("a", None, Parameters()), n=1)
    assert gate.registry.resolve("a").input_schema["properties"]["n"] == {"type": "integer"}
    await called(gated, Tool("b", None), ToolContext(is_known=False))
    assert gate.registry.resolve("b").input_schema["properties"] == {}
    with pytest.raises(DefinitionError, match="Google ADK: tool `c` has no schema"):
        await called(gated, Tool("c", declared=False))


async def test_transfers_pass_and_versions_are_checked(
    adapter: ModuleType, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await called(adapter.Toolgate(gate), Tool("transfer_to_agent")) is None
    monkeypatch.setattr("importlib.metadata.version", lambda _name: "1.0")
    with pytest.raises(UsageError, match="Google ADK adapter was tested with google-adk"):
        adapter.Toolgate(gate)
    adapter.Toolgate(gate, any_version=True)
