"""One call, `convert` with `{"amount": 3}`, as each provider writes it: as JSON and as SDK objects.

The classes have the attributes of the SDKs' models and nothing else of them.
"""

from __future__ import annotations

from typing import Any

from toolgate.kernel.tool import ToolDefinition


class Thing:
    """An object with attributes instead of keys, as SDKs return."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


def things(value: Any) -> Any:
    """Return JSON as nested SDK-like objects; arguments stay dicts, as they do in the SDKs."""
    if isinstance(value, dict):
        free = ("input", "args", "arguments")
        return Thing(**{key: item if key in free else things(item) for key, item in value.items()})
    return [things(item) for item in value] if isinstance(value, list) else value


TOOLS = {
    tool.name: tool
    for tool in (
        ToolDefinition(
            name="convert",
            description="Convert money.",
            input_schema={
                "type": "object",
                "properties": {"amount": {"type": "integer"}, "to": {"type": "string", "default": "EUR"}},
                "required": ["amount"],
                "additionalProperties": False,
            },
            handler=print,
        ),
        ToolDefinition(name="ping", handler=print),
        ToolDefinition(
            name="run_sql",
            input_schema={"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
            handler=print,
        ),
    )
}

OPENAI_CALL = {"id": "c1", "type": "function", "function": {"name": "convert", "arguments": '{"amount": 3}'}}
OPENAI_MESSAGE = {"role": "assistant", "content": None, "tool_calls": [OPENAI_CALL]}
OPENAI = {"choices": [{"index": 0, "finish_reason": "tool_calls", "message": OPENAI_MESSAGE}]}

RESPONSES_ITEM = {
    "type": "function_call",
    "id": "fc_9",
    "call_id": "c1",
    "name": "convert",
    "arguments": '{"amount": 3}',
    "status": "completed",
}
RESPONSES = {
    "object": "response",
    "status": "completed",
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        RESPONSES_ITEM,
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "One moment."}]},
    ],
}

ANTHROPIC_BLOCK = {"type": "tool_use", "id": "c1", "name": "convert", "input": {"amount": 3}}
ANTHROPIC = {
    "role": "assistant",
    "stop_reason": "tool_use",
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "One moment."},
        {"type": "server_tool_use", "id": "st_1", "name": "web_search", "input": {"query": "rate"}},
        ANTHROPIC_BLOCK,
    ],
}

GEMINI_CALL = {"id": "c1", "name": "convert", "args": {"amount": 3}}
GEMINI_PARTS = [{"text": "One moment."}, {"functionCall": GEMINI_CALL}]
GEMINI = {"candidates": [{"finishReason": "STOP", "content": {"role": "model", "parts": GEMINI_PARTS}}]}

BEDROCK_BLOCK = {"toolUse": {"toolUseId": "c1", "name": "convert", "input": {"amount": 3}}}
BEDROCK_MESSAGE = {"role": "assistant", "content": [{"text": "One moment."}, BEDROCK_BLOCK]}
BEDROCK = {"output": {"message": BEDROCK_MESSAGE}, "stopReason": "tool_use"}

MCP = {"jsonrpc": "2.0", "id": "c1", "method": "tools/call", "params": {"name": "convert", "arguments": {"amount": 3}}}

WAYS: dict[str, list[Any]] = {
    "openai": [
        OPENAI,
        OPENAI["choices"],
        OPENAI["choices"][0],
        OPENAI_MESSAGE,
        [OPENAI_MESSAGE],
        [OPENAI_CALL],
        (OPENAI_CALL,),
        OPENAI_CALL,
        {"message": OPENAI_MESSAGE},
        {"message": OPENAI_CALL},
        {"role": "assistant", "tool_calls": OPENAI_CALL},
    ],
    "openai_responses": [RESPONSES, RESPONSES["output"], [RESPONSES_ITEM], RESPONSES_ITEM],
    "anthropic": [ANTHROPIC, [ANTHROPIC], ANTHROPIC["content"], [ANTHROPIC_BLOCK], ANTHROPIC_BLOCK],
    "gemini": [
        GEMINI,
        GEMINI["candidates"],
        GEMINI["candidates"][0],
        GEMINI["candidates"][0]["content"],
        GEMINI_PARTS,
        GEMINI_PARTS[1],
        [GEMINI_CALL],
        GEMINI_CALL,
        {"function_calls": [GEMINI_CALL]},
        {"toolCall": {"functionCalls": [GEMINI_CALL]}},
        {"function_call": GEMINI_CALL},
    ],
    "bedrock": [BEDROCK, BEDROCK_MESSAGE, BEDROCK_MESSAGE["content"], BEDROCK_BLOCK],
    "mcp": [MCP, [MCP]],
    "plain": [
        {"id": "c1", "name": "convert", "arguments": {"amount": 3}},
        {"call_id": "c1", "name": "convert", "arguments": '{"amount": 3}'},
        {"id": "c1", "name": "convert", "input": {"amount": 3}},
        {"type": "tool_call", "id": "c1", "name": "convert", "args": {"amount": 3}},
    ],
}
