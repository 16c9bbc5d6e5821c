"""A server that speaks the wire formats of OpenAI (Chat Completions and Responses), Anthropic and Gemini, streaming.

It answers from a script: each request takes the next answer. Run as a process: `python -m tests.fake_provider SCRIPT`,
with a JSON list of answers; it prints its URL. Answers: `{"text": ...}`, `{"calls": [{"name", "arguments"}]}`,
`{"status": 429, "headers": {...}, "body": ...}`, `{"hang": true}`, `{"cut": true, "text": ...}`; `"pause": true` holds
an answer back after its first piece until `POST /go`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

Answer = dict[str, Any]
Event = tuple[str | None, Any]


class FakeProvider:
    """One server. `requests` are the bodies it was sent, with their path and key."""

    def __init__(self, answers: list[Answer]) -> None:
        self._answers = answers
        self.requests: list[dict[str, Any]] = []
        self.go = asyncio.Event()
        self.url = ""

    @asynccontextmanager
    async def serving(self, port: int = 0) -> AsyncIterator[FakeProvider]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", port)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            self.go.set()
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            first, *lines = head.split("\r\n")
            headers = {
                name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)
            }
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            await self._answer(first.split(" ")[1], headers, body, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, path: str, headers: dict[str, str], body: bytes, writer: asyncio.StreamWriter) -> None:
        if path == "/go":
            self.go.set()
            _respond(writer, 200, {}, b"{}")
        elif path == "/requests":
            _respond(writer, 200, {}, json.dumps(self.requests).encode())
        else:
            key = headers.get("authorization", "").removeprefix("Bearer ") or headers.get("x-api-key")
            key = key or headers.get("x-goog-api-key")
            self.requests.append({"path": path, "key": key, "body": json.loads(body)})
            answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
            await self._play(path, answer, writer)
        await writer.drain()

    async def _play(self, path: str, answer: Answer, writer: asyncio.StreamWriter) -> None:
        if answer.get("hang"):
            await self.go.wait()
            return
        if "status" in answer:
            _respond(writer, answer["status"], answer.get("headers", {}), json.dumps(answer.get("body", {})).encode())
            return
        events = next(make for part, make in _WIRES.items() if part in path)(answer)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        for number, (name, data) in enumerate(events):
            if answer.get("cut") and number == len(events) // 2:
                return
            text = data if isinstance(data, str) else json.dumps(data)
            writer.write(f"{f'event: {name}' + chr(10) if name else ''}data: {text}\n\n".encode())
            await writer.drain()
            if answer.get("pause") and number == 2:
                await self.go.wait()


def _respond(writer: asyncio.StreamWriter, status: int, headers: dict[str, str], body: bytes) -> None:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n{lines}"
    writer.write(f"{head}Connection: close\r\n\r\n".encode() + body)


def _words(answer: Answer) -> list[str]:
    return [f"{word} " for word in answer.get("text", "").split(" ")] if answer.get("text") else []


def _calls(answer: Answer) -> list[tuple[int, str, str]]:
    return [
        (at, one["name"], one["arguments"] if isinstance(one["arguments"], str) else json.dumps(one["arguments"]))
        for at, one in enumerate(answer.get("calls", []))
    ]


def _chat(answer: Answer) -> list[Event]:
    def chunk(delta: Any, finish: str | None = None) -> Event:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return None, {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}

    events = [chunk({"role": "assistant", "content": ""})]
    events += [chunk({"content": word}) for word in _words(answer)]
    for at, name, arguments in _calls(answer):
        function = {"index": at, "id": f"call_{at}_{id(answer)}", "type": "function"}
        events.append(chunk({"tool_calls": [{**function, "function": {"name": name, "arguments": ""}}]}))
        half = len(arguments) // 2
        for part in (arguments[:half], arguments[half:]):
            events.append(chunk({"tool_calls": [{"index": at, "function": {"arguments": part}}]}))
    events.append(chunk({}, answer.get("finish", "tool_calls" if answer.get("calls") else "stop")))
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    tail = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [], "usage": usage}
    return [*events, (None, tail), (None, "[DONE]")]


def _anthropic(answer: Answer) -> list[Event]:
    usage = {"input_tokens": 11, "output_tokens": 1}
    message: dict[str, Any] = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "usage": usage,
    }
    message |= {"stop_reason": None, "stop_sequence": None}
    events: list[Event] = [("message_start", {"type": "message_start", "message": message})]
    index = 0
    if answer.get("text"):
        block = {"type": "text", "text": ""}
        events.append(("content_block_start", {"type": "content_block_start", "index": 0, "content_block": block}))
        for word in _words(answer):
            delta = {"type": "text_delta", "text": word}
            events.append(("content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}))
        events.append(("content_block_stop", {"type": "content_block_stop", "index": 0}))
        index = 1
    for at, name, arguments in _calls(answer):
        use = {"type": "tool_use", "id": f"toolu_{at}_{id(answer)}", "name": name, "input": {}}
        place = index + at
        events.append(("content_block_start", {"type": "content_block_start", "index": place, "content_block": use}))
        delta = {"type": "input_json_delta", "partial_json": arguments}
        events.append(("content_block_delta", {"type": "content_block_delta", "index": place, "delta": delta}))
        events.append(("content_block_stop", {"type": "content_block_stop", "index": place}))
    stop = {"stop_reason": "tool_use" if answer.get("calls") else "end_turn", "stop_sequence": None}
    events.append(("message_delta", {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 7}}))
    return [*events, ("message_stop", {"type": "message_stop"})]


def _gemini(answer: Answer) -> list[Event]:
    usage = {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18}

    def chunk(part: Any, **more: Any) -> Event:
        content = {"role": "model", "parts": [part]}
        return None, {"candidates": [{"content": content, "index": 0, **more}], "modelVersion": "m"}

    events = [chunk({"text": word}) for word in _words(answer)]
    for _, name, arguments in _calls(answer):
        events.append(chunk({"functionCall": {"name": name, "args": json.loads(arguments)}}))
    last = events[-1][1]
    last["candidates"][0]["finishReason"] = "STOP"
    last["usageMetadata"] = usage
    return events


def _responses(answer: Answer) -> list[Event]:
    usage: dict[str, Any] = {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18}
    usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    base: dict[str, Any] = {
        "id": "r",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "parallel_tool_calls": True,
        "tools": [],
    }
    base |= {"tool_choice": "auto", "output": [], "usage": None, "status": "in_progress"}
    raw: list[dict[str, Any]] = [{"type": "response.created", "response": base}]
    index = 0
    if answer.get("text"):
        item = {"id": "i", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
        raw.append({"type": "response.output_item.added", "output_index": 0, "item": item})
        place = {"item_id": "i", "output_index": 0, "content_index": 0}
        empty = {"type": "output_text", "text": "", "annotations": []}
        raw.append({"type": "response.content_part.added", **place, "part": empty})
        raw += [
            {"type": "response.output_text.delta", **place, "delta": word, "logprobs": []} for word in _words(answer)
        ]
        whole = {**empty, "text": "".join(_words(answer))}
        done = {**item, "status": "completed", "content": [whole]}
        raw.append({"type": "response.output_item.done", "output_index": 0, "item": done})
        index = 1
    for at, name, arguments in _calls(answer):
        item = {"id": f"f{at}", "type": "function_call", "call_id": f"call_{at}_{id(answer)}", "name": name}
        item |= {"arguments": "", "status": "in_progress"}
        place = {"output_index": index + at}
        raw.append({"type": "response.output_item.added", **place, "item": item})
        raw.append({"type": "response.function_call_arguments.delta", "item_id": f"f{at}", **place, "delta": arguments})
        done = {**item, "arguments": arguments, "status": "completed"}
        raw.append({"type": "response.output_item.done", **place, "item": done})
    raw.append({"type": "response.completed", "response": {**base, "status": "completed", "usage": usage}})
    return [(one["type"], {**one, "sequence_number": number}) for number, one in enumerate(raw)]


_WIRES: dict[str, Callable[[Answer], list[Event]]] = {
    "/chat/completions": _chat,
    "/responses": _responses,
    "/messages": _anthropic,
    "streamGenerateContent": _gemini,
}


async def _main(script: Path, port: int) -> None:
    async with FakeProvider(json.loads(script.read_text())).serving(port) as provider:
        sys.stdout.write(provider.url + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0))
