"""POSTs per second: deciding and reporting through our server against a bare route that does one durable write.

Every server is a process of its own and all get the same load: connections that each send the next request when the
last is answered. Ours checks a token, reads, chains, seals and masks; the bare one only writes. Prints one JSON line.
"""

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.server_host import PROJECT, hosted

CONNECTIONS = 64


class Pump(asyncio.Protocol):
    """One connection that sends requests in turn, each when the one before is answered."""

    def __init__(self, requests: list[bytes], done: asyncio.Future[None]) -> None:
        self._requests = requests
        self._done = done
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._next()

    def _next(self) -> None:
        if self._requests:
            self._transport.write(self._requests.pop())  # type: ignore[attr-defined]  # a stream transport
        elif not self._done.done():
            self._done.set_result(None)
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, body = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        if len(body) < length:
            return
        if not head.startswith(b"HTTP/1.1 200"):
            self._done.set_exception(RuntimeError(f"{head[:60]!r} {body[:300]!r}"))
            return
        self._buffer = b""
        self._next()


async def pump(port: int, requests: list[bytes]) -> float:
    """Return how many of these requests a server answers in a second."""
    loop = asyncio.get_running_loop()
    shares = [requests[number::CONNECTIONS] for number in range(CONNECTIONS)]
    futures: list[asyncio.Future[None]] = []
    started = time.perf_counter()
    for share in shares:
        done: asyncio.Future[None] = loop.create_future()
        futures.append(done)
        await loop.create_connection(lambda share=share, done=done: Pump(share, done), "127.0.0.1", port)  # type: ignore[misc]
    await asyncio.gather(*futures)
    return len(requests) / (time.perf_counter() - started)


def post(path: str, body: str, token: str = "") -> bytes:
    """A request as it goes over the wire."""
    auth = f"Authorization: Bearer {token}\r\n" if token else ""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{auth}Content-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()


APPROVE = '{"decision": "approved"}'
REPORT = '{"status": "completed", "result": {"exit_code": 0, "stdout": "ok"}}'
NAMES = {
    "bare-posts": "bare_per_s",
    "ours-approve": "approve_per_s",
    "ours-result": "result_per_s",
    "ours-claim": "approve_and_claim_per_s",
}


def requests_of(kind: str, told: dict[str, Any]) -> list[bytes]:
    """The load of one server."""
    if kind == "bare-posts":
        return [post(f"/approvals/{id}/approve", APPROVE) for id in told["approvals"]]
    base, token = f"/my/projects/{PROJECT}", told["token"]
    if kind == "ours-result":
        return [post(f"{base}/tools/{id}/result", REPORT, token) for id in told["calls"]]
    return [post(f"{base}/approvals/{id}/approve", APPROVE, token) for id in told["approvals"]]


async def measure(count: int) -> dict[str, float]:
    """Return what each of them answers in a second."""
    found = {}
    with tempfile.TemporaryDirectory() as place:
        for kind, name in NAMES.items():
            folder = Path(place) / kind
            folder.mkdir()
            async with hosted(kind, folder, count=count) as told:
                found[name] = await pump(told["port"], requests_of(kind, told))
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)  # nobody claims them: more would be offered again meanwhile
    print(json.dumps(asyncio.run(measure(parser.parse_args().count))))
