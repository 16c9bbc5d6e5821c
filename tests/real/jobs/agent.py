"""With `agent`: each kind of model can be opened, and one answers."""

from __future__ import annotations

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from toolgate.agent.history import PersonSaid
from toolgate.agent.model import Question
from toolgate.agent.provider import ProviderModel

PIECES: tuple[dict[str, str], ...] = ({"role": "assistant", "content": "Good "}, {"content": "morning."}, {})


class Provider(BaseHTTPRequestHandler):
    """Speaks as OpenAI does, and says one thing."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for piece in PIECES:
            choice = {"index": 0, "delta": piece, "finish_reason": None if piece else "stop"}
            chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
            self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent."""


async def ask(url: str) -> str:
    for name in ("anthropic:claude-sonnet-4-5", "google:gemini-2.5-pro"):
        other = ProviderModel.open(name, base_url=None, key="no-key", timeout_s=1)
        await other.close()
    model = ProviderModel.open("openai:small", base_url=f"{url}/v1", key="no-key", timeout_s=60)
    heard: list[str] = []

    async def hear(piece: str) -> None:
        heard.append(piece)

    reply = await model.answer(Question(said=[PersonSaid(text="Good morning?")], tools=[]), hear)
    await model.close()
    assert "".join(heard) == reply.text
    return reply.text


with ThreadingHTTPServer(("127.0.0.1", 0), Provider) as provider:
    threading.Thread(target=provider.serve_forever, daemon=True).start()
    said = asyncio.run(ask(f"http://127.0.0.1:{provider.server_port}"))
    provider.shutdown()
assert said == "Good morning.", said
