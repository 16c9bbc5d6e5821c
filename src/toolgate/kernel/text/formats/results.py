"""Answer a tool call in the shape its provider takes: what the tool returned, or why it did not run.

Every call a model makes must be answered, also one that was denied, waits for a person or could not be read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import orjson

from toolgate.errors import ToolOutputError
from toolgate.kernel.call import Status
from toolgate.kernel.misuse import explained
from toolgate.kernel.output import Result, ToolOutput
from toolgate.kernel.payload import encode
from toolgate.kernel.text.formats.calls import ResolvedToolCall, UnresolvedToolCall
from toolgate.kernel.text.formats.read import Format

_DENIED: Final = frozenset({Status.DENIED, Status.REJECTED, Status.TIMEOUT, Status.CANCELLED})
_PENDING_TEXT: Final = "The call waits and has not run yet. Do not repeat it; its result follows."


class Answer(NamedTuple):
    """What a model is told: `success`, `error`, `denied` or `pending`, and the JSON value to show."""

    status: str
    value: Any

    @property
    def is_error(self) -> bool:
        return self.status in ("error", "denied")

    @property
    def text(self) -> str:
        """The value as text: as it is, or as JSON."""
        return self.value if isinstance(self.value, str) else orjson.dumps(self.value).decode()


@explained
def render_result(
    call: ResolvedToolCall | UnresolvedToolCall,
    result: ToolOutput | Result | None = None,
    *,
    format: Format | str | None = None,
) -> dict[str, Any]:
    """Return the answer to a call as the provider's JSON. An unresolved call is answered with its error.

    `result` is a ToolOutput, or a Result of any status. `format` is the call's own unless another is given.
    """
    shape = call.format if format is None else Format(format)
    return _SHAPES[shape](call, answer_of(call, result))


@explained
def render_message(results: Iterable[dict[str, Any]], format: Format | str) -> list[dict[str, Any]]:
    """Return rendered results as the messages to append to the conversation."""
    rendered = list(results)
    shape = Format(format)
    if not rendered:
        return []
    if shape in (Format.ANTHROPIC, Format.BEDROCK):
        return [{"role": "user", "content": rendered}]
    if shape is Format.GEMINI:
        return [{"role": "user", "parts": rendered}]
    return rendered


def answer_of(call: ResolvedToolCall | UnresolvedToolCall, result: ToolOutput | Result | None) -> Answer:
    """Return what the model is told."""
    if isinstance(call, UnresolvedToolCall):
        return _failure("error", call.error, call.reason)
    if isinstance(result, ToolOutput):
        return _success(result.data) if result.success else _failure("error", result.error, None, result.data)
    if result is None:
        return Answer("pending", {"status": "pending", "message": _PENDING_TEXT})
    if result.is_pending:
        waits = {"status": "pending", "message": _PENDING_TEXT, "approval_id": result.approval_id}
        return Answer("pending", {key: value for key, value in waits.items() if value is not None})
    if result.success:
        return _success(result.data)
    status = "denied" if result.status in _DENIED else "error"
    return _failure(status, result.error, result.error_code, result.data)


def _success(data: Any) -> Answer:
    try:
        return Answer("success", orjson.loads(encode(data)))
    except ToolOutputError as error:
        return _failure("error", f"The tool ran, but its result cannot be shown. {error}", error.code)


def _failure(status: str, error: str | None, code: str | None, data: Any = None) -> Answer:
    text = str(error or "The tool call did not succeed.").encode("utf-8", "backslashreplace").decode()
    told: dict[str, Any] = {"status": status, "error": text}
    if code is not None:
        told["code"] = str(code)
    if data is not None:
        shown = _success(data)
        told["data"] = shown.value if shown.status == "success" else None
    return Answer(status, told)


_Call = ResolvedToolCall | UnresolvedToolCall


def _openai(call: _Call, answer: Answer) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call.call_id, "content": answer.text}


def _openai_legacy(call: _Call, answer: Answer) -> dict[str, Any]:
    return {"role": "function", "name": call.name, "content": answer.text}


def _responses(call: _Call, answer: Answer) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call.call_id, "output": answer.text}


def _responses_custom(call: _Call, answer: Answer) -> dict[str, Any]:
    return {"type": "custom_tool_call_output", "call_id": call.call_id, "output": answer.text}


def _anthropic(call: _Call, answer: Answer) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": call.call_id, "content": answer.text}
    return {**block, "is_error": True} if answer.is_error else block


def _gemini(call: _Call, answer: Answer) -> dict[str, Any]:
    response: dict[str, Any] = {"name": call.name}
    is_theirs = isinstance(call, ResolvedToolCall) or not call.is_id_ours
    if call.call_id and is_theirs:
        response["id"] = call.call_id
    response["response"] = {"error": answer.value} if answer.is_error else {"output": answer.value}
    return {"functionResponse": response}


def _bedrock(call: _Call, answer: Answer) -> dict[str, Any]:
    content = {"json": answer.value} if isinstance(answer.value, dict) else {"text": answer.text}
    status = "error" if answer.is_error else "success"
    return {"toolResult": {"toolUseId": call.call_id, "content": [content], "status": status}}


def _mcp(call: _Call, answer: Answer) -> dict[str, Any]:
    result: dict[str, Any] = {"content": [{"type": "text", "text": answer.text}], "isError": answer.is_error}
    if isinstance(answer.value, dict):
        result["structuredContent"] = answer.value
    return result


def _plain(call: _Call, answer: Answer) -> dict[str, Any]:
    key = "error" if answer.is_error else "output"
    return {"call_id": call.call_id, "name": call.name, "status": answer.status, key: answer.value}


_SHAPES: Final = {
    Format.OPENAI: _openai,
    Format.OPENAI_CUSTOM: _openai,
    Format.OPENAI_LEGACY: _openai_legacy,
    Format.OPENAI_RESPONSES: _responses,
    Format.OPENAI_RESPONSES_CUSTOM: _responses_custom,
    Format.ANTHROPIC: _anthropic,
    Format.GEMINI: _gemini,
    Format.BEDROCK: _bedrock,
    Format.MCP: _mcp,
    Format.PLAIN: _plain,
}
