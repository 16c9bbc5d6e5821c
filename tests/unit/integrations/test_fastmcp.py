"""The FastMCP adapter, given what a server was seen to give its middleware."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field, replace
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import pytest_asyncio
from tests.unit.integrations.fakes import standing_in

import toolgate
from toolgate import Gate
from toolgate.errors import UsageError
from toolgate.testing.patience import until


class ToolError(Exception):
    """What a client reads as an error."""


@dataclass
class Text:
    text: str
    type: str = "text"

    def model_dump(self, *, mode: str) -> dict[str, str]:
        return {"text": self.text, "type": f"{self.type}" if mode == "json" else ""}


@dataclass
class ToolResult:
    content: list[Any]
    structured_content: Any = None
    meta: Any = None
    is_error: bool = False


@dataclass
class Message:
    name: str
    arguments: Any

    def model_copy(self, *, update: dict[str, Any]) -> Message:
        return replace(self, **update)


@dataclass
class Request:
    message: Message
    fastmcp_context: Any = field(default=None)

    def copy(self, **changed: Any) -> Request:
        return replace(self, **changed)


@pytest.fixture
def adapter() -> Iterator[ModuleType]:
    with standing_in(
        "fastmcp",
        "4.1.2",
        fastmcp__exceptions={"ToolError": ToolError},
        fastmcp__server__middleware={"Middleware": object},
        fastmcp__tools__base={"ToolResult": ToolResult},
        mcp__types={"TextContent": Text},
    ) as module:
        yield module


@pytest_asyncio.fixture
async def gate() -> AsyncIterator[Gate]:
    async with toolgate.open("memory://") as opened:
        yield opened


def request(name: str = "send", arguments: Any = None) -> Request:
    async def get_tool(asked: str) -> Any:
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
        return SimpleNamespace(parameters=schema, description=None) if asked == "send" else None

    server = SimpleNamespace(get_tool=get_tool)
    return Request(Message(name, arguments), SimpleNamespace(fastmcp=server))


async def sent(asked: Request) -> ToolResult:
    if asked.message.arguments.get("n") == 0:
        raise LookupError("nothing to send")
    return ToolResult([Text(f"sent {asked.message.arguments.get('n')}")])


async def answered(gate: Gate) -> Any:
    await until(gate.pending)
    return (await gate.pending())[0].id


async def test_a_call_runs_and_is_recorded(adapter: ModuleType, gate: Gate) -> None:
    said = await adapter.Toolgate(gate).on_call_tool(request(), sent)
    assert said.content == [Text("sent None")]
    [call] = await gate.calls.list(toolgate.CallQuery())
    assert (await gate.get(call.id)).data["content"] == [{"text": "sent None", "type": "text"}]


async def test_an_edit_runs_and_is_told_and_a_retry_reads_the_record(adapter: ModuleType, gate: Gate) -> None:
    gated = adapter.Toolgate(gate, effects={"send": "irreversible"}, context=toolgate.Context(run_id="r1"))
    calling = [asyncio.create_task(gated.on_call_tool(request(arguments={"n": 9}), sent)) for _ in range(2)]
    await gate.approvals.edit(await answered(gate), {"n": 2}, by="ann")
    for said in await asyncio.gather(*calling):
        assert "changed the arguments" in said.content[0].text
        assert "sent 2" in str(said.content[1])


async def test_a_no_and_what_the_tool_raises_are_errors(adapter: ModuleType, gate: Gate) -> None:
    gated = adapter.Toolgate(gate, effects={"send": "irreversible"})
    calling = asyncio.create_task(gated.on_call_tool(request(arguments={"n": 1}), sent))
    await gate.decide(await answered(gate), "deny", by="ann", reason="not today")
    with pytest.raises(ToolError, match="not today"):
        await calling
    async with toolgate.open("memory://") as other:
        with pytest.raises(LookupError):
            await adapter.Toolgate(other).on_call_tool(request(arguments={"n": 0}), sent)


async def test_a_tool_that_is_not_there_is_left_to_the_server(adapter: ModuleType, gate: Gate) -> None:
    await adapter.Toolgate(gate).on_call_tool(request("gone", {"n": 1}), sent)
    assert await gate.calls.list(toolgate.CallQuery()) == []


async def test_a_version_outside_the_tested_range_is_refused(
    adapter: ModuleType, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda _name: "3.9")
    with pytest.raises(UsageError, match="FastMCP adapter was tested with fastmcp"):
        adapter.Toolgate(gate)
    adapter.Toolgate(gate, any_version=True)
