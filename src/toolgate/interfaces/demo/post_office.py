"""A web server of the demo's own: the page the agent fetches, the catcher every letter ends in, and a bank.

Nothing is sent and nobody is paid. The bank books a refund and breaks the connection before it has answered.
"""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import orjson

from toolgate.interfaces.demo.story import PAGE

MAX_LETTER = 64 * 1024


class PostOffice:
    """Serves on a free port of this machine until it is closed."""

    def __init__(self) -> None:
        self.letters: list[dict[str, Any]] = []
        self.refunds: list[dict[str, Any]] = []
        office = self

        class Counter(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(200, PAGE.encode())

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                if not 0 < length <= MAX_LETTER:
                    self._answer(413, b"")
                    return
                told = orjson.loads(self.rfile.read(length))
                if self.path == "/refunds":
                    office.refunds.append(told)
                    self.close_connection = True
                    return
                office.letters.append(told)
                self._answer(204, b"")

            def _answer(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_said: Any) -> None:
                """The demo tells the story; this does not."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Counter)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="toolgate-post-office")
        self._thread.daemon = True
        self._thread.start()

    @property
    def port(self) -> int:
        return self._server.server_port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
