"""A server that speaks Anthropic's Messages API from a script: what it says depends on how many tools answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any


class MessagesServer:
    """`turns` are the calls of each turn; after them it says that it is done."""

    def __init__(self, turns: Sequence[Sequence[tuple[str, str, Any]]]) -> None:
        self._turns = turns
        self.requests: list[dict[str, Any]] = []
        self.url = ""

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[MessagesServer]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = next(
                    (
                        int(line.split(":")[1])
                        for line in head.split("\r\n")
                        if line.lower().startswith("content-length")
                    ),
                    0,
                )
                body = await reader.readexactly(length)
                path = head.split(" ")[1].partition("?")[0]
                payload = json.loads(body) if body else {}
                if path.endswith("/messages"):
                    self.requests.append(payload)
                    sent, kind = self._message(payload), b"text/event-stream"
                else:
                    sent, kind = b'{"input_tokens": 1}', b"application/json"
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n%b" % (kind, len(sent), sent)
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _message(self, payload: dict[str, Any]) -> bytes:
        answered = {
            block["tool_use_id"]
            for message in payload.get("messages", [])
            if isinstance(message.get("content"), list)
            for block in message["content"]
            if block.get("type") == "tool_result"
        }
        turn = next((turn for turn in self._turns if not {id for id, _, _ in turn} <= answered), ())
        has_tools = bool(payload.get("tools"))
        blocks: list[dict[str, Any]] = [
            {"type": "tool_use", "id": id, "name": name, "input": args} for id, name, args in turn if has_tools
        ]
        blocks = blocks or [{"type": "text", "text": "done"}]
        reason = "tool_use" if blocks[0]["type"] == "tool_use" else "end_turn"
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "usage": usage}
        if not payload.get("stream"):
            return json.dumps({**message, "content": blocks, "stop_reason": reason, "stop_sequence": None}).encode()
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": {**message, "content": [], "stop_reason": None, "stop_sequence": None}}
        ]
        for at, block in enumerate(blocks):
            is_call = block["type"] == "tool_use"
            empty = {**block, "input": {}} if is_call else {**block, "text": ""}
            piece = (
                {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
                if is_call
                else {"type": "text_delta", "text": block["text"]}
            )
            events += [
                {"type": "content_block_start", "index": at, "content_block": empty},
                {"type": "content_block_delta", "index": at, "delta": piece},
                {"type": "content_block_stop", "index": at},
            ]
        events += [
            {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage},
            {"type": "message_stop"},
        ]
        return b"".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in events)
