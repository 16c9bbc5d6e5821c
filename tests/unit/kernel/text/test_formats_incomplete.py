"""Calls that lack something, and pieces of a stream: each comes back with a sentence, none vanishes, none runs."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.kernel.provider_samples import TOOLS, things

from toolgate.kernel.text.formats import Format, Reason, UnresolvedToolCall, fresh_id, parse_calls
from toolgate.kernel.text.formats.results import render_message, render_result

TEXT = '{"amount": 3}'
GIVEN = {"amount": 3}


def parse(payload: Any) -> tuple[list[Any], list[UnresolvedToolCall]]:
    numbers = iter(range(100))
    return parse_calls(payload, TOOLS.get, new_id=lambda: f"tg_{next(numbers)}")


def chat(call: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {"choices": [{"finish_reason": "tool_calls", "message": message}]}


def chunk(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


def said(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks), "stop_reason": "tool_use"}


def gemini(call: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": [{"functionCall": call}]}}]}


def bedrock(use: Any) -> dict[str, Any]:
    return {"output": {"message": {"role": "assistant", "content": [{"toolUse": use}]}}, "stopReason": "tool_use"}


NAMELESS: dict[str, tuple[Any, str]] = {
    "openai": (chat({"id": "c", "type": "function", "function": {"arguments": TEXT}}), "c"),
    "openai, empty": (chat({"type": "function", "function": {}}), "tg_0"),
    "openai, the older kind": ({"role": "assistant", "function_call": {"arguments": TEXT}}, "tg_0"),
    "responses": ({"output": [{"type": "function_call", "call_id": "c", "arguments": TEXT}]}, "c"),
    "responses, custom": ({"output": [{"type": "custom_tool_call", "call_id": "c", "input": "x"}]}, "c"),
    "anthropic": (said({"type": "tool_use", "id": "c", "input": GIVEN}), "c"),
    "anthropic, no id either": (said({"type": "text", "text": "so"}, {"type": "tool_use", "input": {}}), "tg_0"),
    "one block": ({"type": "tool_use", "input": {}}, "tg_0"),
    "gemini": (gemini({"args": GIVEN}), "tg_0"),
    "bedrock": (bedrock({"toolUseId": "c", "input": GIVEN}), "c"),
    "mcp": ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"arguments": GIVEN}}, "1"),
    "mcp, no params": ({"jsonrpc": "2.0", "id": 1, "method": "tools/call"}, "1"),
    "plain": ({"id": "c", "arguments": GIVEN}, "c"),
    "content that has arguments": (said({"id": "c", "arguments": GIVEN}), "c"),
}


@pytest.mark.parametrize("make", [lambda value: value, things], ids=["json", "objects"])
@pytest.mark.parametrize("name", NAMELESS)
def test_a_call_without_a_name_comes_back(name: str, make: Any) -> None:
    payload, call_id = NAMELESS[name]
    resolved, (call,) = parse(make(payload))
    assert (resolved, call.call_id, call.reason) == ([], call_id, Reason.MALFORMED)
    assert "names no tool" in call.error


@pytest.mark.parametrize("missing", [None, ""])
@pytest.mark.parametrize("format", ["openai", "openai_responses", "anthropic", "bedrock", "mcp"])
def test_a_call_without_an_id_comes_back_with_one_of_ours(format: str, missing: str | None) -> None:
    payload: Any = {
        "openai": chat({"id": missing, "type": "function", "function": {"name": "convert", "arguments": TEXT}}),
        "openai_responses": {"output": [{"type": "function_call", "id": "fc", "name": "convert", "arguments": TEXT}]},
        "anthropic": said({"type": "tool_use", "id": missing, "name": "convert", "input": GIVEN}),
        "bedrock": bedrock({"toolUseId": missing, "name": "convert", "input": GIVEN}),
        "mcp": {"id": missing, "method": "tools/call", "params": {"name": "convert", "arguments": GIVEN}},
    }[format]
    resolved, (call,) = parse(payload)
    assert (resolved, call.call_id, call.name, call.reason) == ([], "tg_0", "convert", Reason.MALFORMED)
    assert call.format == format
    assert f"every call of the format `{format}` has one" in call.error


def test_formats_that_know_no_ids_do_without() -> None:
    for payload in (
        gemini({"name": "convert", "args": GIVEN}),
        {"role": "assistant", "function_call": {"name": "convert", "arguments": TEXT}},
        {"name": "convert", "arguments": GIVEN},
    ):
        (call,), unresolved = parse(payload)
        assert (call.call_id, unresolved) == ("", [])


def test_an_id_of_ours_is_not_told_to_a_provider_that_gave_none() -> None:
    _, (call,) = parse(gemini({"args": GIVEN}))
    assert "id" not in render_result(call)["functionResponse"]
    assert fresh_id() != fresh_id()
    assert fresh_id().startswith("tg_")


def test_whose_an_id_is_does_not_depend_on_how_it_begins() -> None:
    _, (nameless,) = parse_calls(gemini({"args": GIVEN}), TOOLS.get, new_id=lambda: "mine-1")
    assert (nameless.call_id, nameless.is_id_ours) == ("mine-1", True)
    assert "id" not in render_result(nameless)["functionResponse"]
    (call,), (unknown,) = parse(
        [
            {"functionCall": {"id": "tg_sent", "name": "convert", "args": GIVEN}},
            {"functionCall": {"id": "tg_also", "name": "no_such", "args": {}}},
        ]
    )
    assert render_result(call)["functionResponse"]["id"] == "tg_sent"
    assert render_result(unknown)["functionResponse"]["id"] == "tg_also"
    assert not unknown.is_id_ours


def test_answers_can_be_put_in_the_order_of_the_calls() -> None:
    """Gemini tells answers without ids apart by their order alone."""
    names = ["convert", "no_such", "convert", "no_such"]
    parts = [{"functionCall": {"name": name, "args": GIVEN}} for name in names]
    resolved, unresolved = parse([parts[0], {"text": "so"}, *parts[1:]])
    assert ([call.position for call in resolved], [call.position for call in unresolved]) == ([0, 2], [1, 3])
    told = {call.position: render_result(call) for call in (*unresolved, *resolved)}
    assert [one["functionResponse"]["name"] for _, one in sorted(told.items())] == names


@pytest.mark.parametrize(
    ("payload", "format", "key"),
    [
        (chat({"id": "c", "type": "function", "function": None}), "openai", "tool_call_id"),
        (said({"type": "tool_use", "id": "c", "name": "convert", "namespace": "x"}), "anthropic", "tool_use_id"),
        ({"output": [{"type": "function_call", "call_id": "c", "namespace": "x"}]}, "openai_responses", "call_id"),
        ([{"functionCall": {"name": "convert"}, "name": "other"}], "gemini", "functionResponse"),
        ([{"functionCall": {}, "toolUse": {}}], "plain", "call_id"),
        ([{"nothing": 1}], "plain", "call_id"),
    ],
)
def test_what_cannot_be_read_is_answered_in_the_shape_it_came_in(payload: Any, format: str, key: str) -> None:
    _, (call,) = parse(payload)
    assert (call.format, key in render_result(call)) == (format, True)


@pytest.mark.parametrize("id", [None, "fc-1"])
@pytest.mark.parametrize("name", ["convert", "no_such"])
def test_an_answer_is_one_that_google_s_library_takes(id: str | None, name: str) -> None:
    types = pytest.importorskip("google.genai.types")
    call = types.FunctionCall(id=id, name=name, args=GIVEN)
    content = types.Content(role="model", parts=[types.Part(text="so"), types.Part(function_call=call)])
    answer = types.GenerateContentResponse(candidates=[types.Candidate(content=content)])
    resolved, unresolved = parse(answer)
    (message,) = render_message([render_result(one) for one in (*resolved, *unresolved)], Format.GEMINI)
    (part,) = types.Content.model_validate(message).parts
    told = part.function_response
    assert (told.id, told.name, set(told.response)) == (id, name, {"error" if resolved == [] else "output"})
    assert types.Content.model_validate(message).model_dump(by_alias=True, exclude_none=True, mode="json") == message


@pytest.mark.parametrize("call_id", ["c\n1", "c\x1b[31m", "\x00", "c\u202e1", "c\x7f", "\ud800"])
def test_an_id_with_control_characters_is_refused(call_id: str) -> None:
    _, (call,) = parse(said({"type": "tool_use", "id": call_id, "name": "convert", "input": GIVEN}))
    assert (call.call_id, call.reason) == ("tg_0", Reason.MALFORMED)
    assert "control characters" in call.error


def test_a_name_with_control_characters_is_shown_escaped() -> None:
    _, (call,) = parse(said({"type": "tool_use", "id": "c", "name": "con\x1b[31mvert", "input": GIVEN}))
    assert (call.name, call.error) == ("con\\x1b[31mvert", "No tool named 'con\\x1b[31mvert' is registered.")


def test_what_cannot_be_read_keeps_the_id_it_came_with() -> None:
    _, (call,) = parse(chat({"id": "c", "type": "function", "function": None}))
    assert (call.call_id, "holds no `function`" in call.error) == ("c", True)
    _, (call,) = parse(chat({"id": "c\n", "type": "function", "function": None}))
    assert call.call_id == "tg_0"
    _, (call,) = parse(chat({"id": 7, "type": "function"}))
    assert call.call_id == "tg_0"


@pytest.mark.parametrize(
    "payload",
    [
        {"tool_calls": None},
        {"tool_calls": None, "content": "hello"},
        {"tool_calls": []},
        [{"tool_calls": None}],
        {"choices": [{"message": {"tool_calls": None}}]},
        {"choices": None},
        {"candidates": None},
        {"function_calls": None},
    ],
)
@pytest.mark.parametrize("make", [lambda value: value, things], ids=["json", "objects"])
def test_no_calls_are_no_call(payload: Any, make: Any) -> None:
    assert parse(make(payload)) == ([], [])


FIRST = {"index": 0, "id": "c", "type": "function", "function": {"name": "convert", "arguments": ""}}
LATER = {"index": 0, "function": {"arguments": TEXT}}
PIECES: dict[str, tuple[Any, list[str]]] = {
    "the first piece": (chunk(role="assistant", tool_calls=[FIRST]), ["c"]),
    "a later piece": (chunk(tool_calls=[LATER]), ["tg_0"]),
    "several pieces": (chunk(tool_calls=[FIRST, LATER]), ["c", "tg_0"]),
    "no list": (chunk(tool_calls=LATER), ["tg_0"]),
    "the older kind": (chunk(function_call={"arguments": TEXT}), ["tg_0"]),
    "a choice": (chunk(tool_calls=[LATER])["choices"][0], ["tg_0"]),
    "chunks": ([chunk(tool_calls=[FIRST]), chunk(tool_calls=[LATER])], ["c", "tg_0"]),
    "anthropic, the beginning": (
        {"type": "content_block_start", "content_block": {"type": "tool_use", "id": "c", "name": "convert"}},
        ["c"],
    ),
    "anthropic, a part": (
        {"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": TEXT}},
        ["tg_0"],
    ),
    "anthropic, a list": (
        [{"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": "{"}}],
        ["tg_0"],
    ),
    "responses, the beginning": (
        {
            "type": "response.output_item.added",
            "item": {"type": "function_call", "call_id": "c", "name": "convert", "arguments": ""},
        },
        ["c"],
    ),
    "responses, a part": ({"type": "response.function_call_arguments.delta", "delta": TEXT}, ["tg_0"]),
    "responses, all arguments": (
        {"type": "response.function_call_arguments.done", "name": "convert", "arguments": TEXT},
        ["tg_0"],
    ),
    "bedrock, the beginning": (
        {"contentBlockStart": {"start": {"toolUse": {"toolUseId": "c", "name": "convert"}}}},
        ["c"],
    ),
    "bedrock, a part": ({"contentBlockDelta": {"delta": {"toolUse": {"input": TEXT}}}}, ["tg_0"]),
}


@pytest.mark.parametrize("make", [lambda value: value, things], ids=["json", "objects"])
@pytest.mark.parametrize("name", PIECES)
def test_a_piece_of_a_stream_comes_back_as_a_piece(name: str, make: Any) -> None:
    payload, ids = PIECES[name]
    resolved, unresolved = parse(make(payload))
    assert (resolved, [call.call_id for call in unresolved]) == ([], ids)
    assert {call.reason for call in unresolved} == {Reason.TRUNCATED}
    assert all("Put the pieces together" in call.error for call in unresolved)


@pytest.mark.parametrize(
    "payload",
    [
        chunk(content="hello"),
        chunk(),
        {"type": "content_block_start", "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "hello"}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_start", "message": {"role": "assistant", "content": []}},
        {"type": "message_stop"},
        {"type": "response.output_text.delta", "delta": "hello"},
        {"type": "response.mcp_call_arguments.delta", "delta": "{"},
        {"type": "response.output_item.added", "item": {"type": "message", "content": []}},
        {"type": "response.created", "response": {"status": "in_progress", "output": []}},
        {"contentBlockDelta": {"delta": {"text": "hello"}}},
        {"messageStop": {"stopReason": "tool_use"}},
    ],
)
def test_a_piece_without_a_call_holds_none(payload: Any) -> None:
    assert parse(payload) == ([], [])


def test_what_a_stream_says_is_whole_is_read() -> None:
    item = {"type": "function_call", "call_id": "c", "name": "convert", "arguments": TEXT}
    for payload in (
        {"type": "response.output_item.done", "item": item},
        {"type": "response.completed", "response": {"status": "completed", "output": [item]}},
    ):
        (call,), unresolved = parse(payload)
        assert (call.call_id, call.format, unresolved) == ("c", Format.OPENAI_RESPONSES, [])
    _, (cut,) = parse({"type": "response.incomplete", "response": {"status": "incomplete", "output": [item]}})
    assert cut.reason is Reason.TRUNCATED
