"""Answers to tool calls, in the shape each provider takes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.kernel.provider_samples import TOOLS, WAYS

from toolgate.kernel.call import Status
from toolgate.kernel.output import Result, ToolOutput
from toolgate.kernel.text.formats import Format, Reason, ResolvedToolCall, UnresolvedToolCall, parse_calls
from toolgate.kernel.text.formats.results import render_message, render_result


def call(format: Format | str, call_id: str = "c1") -> ResolvedToolCall:
    return ResolvedToolCall(TOOLS["convert"], call_id, "convert", {"amount": 3}, None, Format(format))


def result(status: Status, **fields: Any) -> Result:
    return Result(call_id="g1", tool_name="convert", status=status, **fields)


OK = ToolOutput.ok({"euro": 2.75})
SHAPES: dict[str, Any] = {
    "openai": {"role": "tool", "tool_call_id": "c1", "content": '{"euro":2.75}'},
    "openai_custom": {"role": "tool", "tool_call_id": "c1", "content": '{"euro":2.75}'},
    "openai_legacy": {"role": "function", "name": "convert", "content": '{"euro":2.75}'},
    "openai_responses": {"type": "function_call_output", "call_id": "c1", "output": '{"euro":2.75}'},
    "openai_responses_custom": {"type": "custom_tool_call_output", "call_id": "c1", "output": '{"euro":2.75}'},
    "anthropic": {"type": "tool_result", "tool_use_id": "c1", "content": '{"euro":2.75}'},
    "gemini": {"functionResponse": {"name": "convert", "id": "c1", "response": {"output": {"euro": 2.75}}}},
    "bedrock": {"toolResult": {"toolUseId": "c1", "content": [{"json": {"euro": 2.75}}], "status": "success"}},
    "mcp": {
        "content": [{"type": "text", "text": '{"euro":2.75}'}],
        "structuredContent": {"euro": 2.75},
        "isError": False,
    },
    "plain": {"call_id": "c1", "name": "convert", "status": "success", "output": {"euro": 2.75}},
}


@pytest.mark.parametrize("format", Format)
def test_a_success_is_told_in_the_provider_s_shape(format: Format) -> None:
    assert render_result(call(format), OK) == SHAPES[format]
    assert render_result(call(format), result(Status.COMPLETED, data={"euro": 2.75})) == SHAPES[format]


@pytest.mark.parametrize("name", [name for name in WAYS if name != "plain"])
def test_a_parsed_call_is_answered_in_its_own_shape(name: str) -> None:
    parsed = parse_calls(WAYS[name][0], TOOLS.get)[0][0]
    assert render_result(parsed, OK) == SHAPES[name]


def test_text_is_told_as_it_is() -> None:
    done = ToolOutput.ok("2.75 €")
    assert render_result(call("openai"), done)["content"] == "2.75 €"
    assert render_result(call("bedrock"), done)["toolResult"]["content"] == [{"text": "2.75 €"}]
    assert render_result(call("mcp"), done) == {"content": [{"type": "text", "text": "2.75 €"}], "isError": False}
    assert render_result(call("openai"), ToolOutput.ok())["content"] == "null"


def test_a_failure_is_marked_where_the_provider_has_a_mark() -> None:
    failed = ToolOutput.fail("no such currency", data={"known": ["EUR"]})
    told = {"status": "error", "error": "no such currency", "data": {"known": ["EUR"]}}
    assert json.loads(render_result(call("openai"), failed)["content"]) == told
    assert render_result(call("anthropic"), failed)["is_error"] is True
    assert render_result(call("gemini", ""), failed) == {
        "functionResponse": {"name": "convert", "response": {"error": told}}
    }
    assert render_result(call("bedrock"), failed)["toolResult"]["status"] == "error"
    assert render_result(call("mcp"), failed)["isError"] is True
    assert render_result(call("plain"), failed)["error"] == told


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (Status.DENIED, "denied"),
        (Status.REJECTED, "denied"),
        (Status.TIMEOUT, "denied"),
        (Status.CANCELLED, "denied"),
        (Status.FAILED, "error"),
        (Status.UNKNOWN, "error"),
    ],
)
def test_every_other_end_is_told_with_its_code(status: Status, told: str) -> None:
    block = render_result(call("anthropic"), result(status, error="because", error_code="x"))
    assert block["is_error"] is True
    assert json.loads(block["content"]) == {"status": told, "error": "because", "code": "x"}


def test_a_call_that_waits_is_not_an_error() -> None:
    waiting = result(Status.AWAITING_APPROVAL, approval_id="a1")
    for one in (waiting, None):
        block = render_result(call("anthropic"), one)
        assert "is_error" not in block
        content = json.loads(block["content"])
        assert content["status"] == "pending"
        assert "Do not repeat it" in content["message"]
    assert json.loads(render_result(call("openai"), waiting)["content"])["approval_id"] == "a1"


def test_an_unresolved_call_is_answered_with_its_error() -> None:
    refused = UnresolvedToolCall("c1", "nope", {}, "No such tool.", None, Reason.UNKNOWN_TOOL, None, Format.ANTHROPIC)
    assert json.loads(render_result(refused)["content"]) == {
        "status": "error",
        "error": "No such tool.",
        "code": "unknown_tool",
    }
    assert render_result(refused, format="openai")["role"] == "tool"


def test_what_cannot_be_written_is_told_as_an_error() -> None:
    block = render_result(call("anthropic"), ToolOutput.ok({"x": object()}))
    assert block["is_error"] is True
    assert "cannot be shown" in block["content"]
    failed = render_result(call("anthropic"), ToolOutput(success=False, error="\ud800", data=object()))
    assert json.loads(failed["content"]) == {"status": "error", "error": "\\ud800", "data": None}
    assert "did not succeed" in render_result(call("openai"), ToolOutput(success=False))["content"]


def test_results_become_the_messages_to_send() -> None:
    block = render_result(call("anthropic"), OK)
    assert render_message([block], "anthropic") == [{"role": "user", "content": [block]}]
    assert render_message([block], Format.BEDROCK) == [{"role": "user", "content": [block]}]
    assert render_message([block], Format.GEMINI) == [{"role": "user", "parts": [block]}]
    assert render_message([block, block], Format.OPENAI) == [block, block]
    assert render_message([], "anthropic") == []
