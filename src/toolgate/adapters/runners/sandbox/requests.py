"""Read what a command asks of the proxy: the head of one HTTP request, strictly, and its body piece by piece."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass

MAX_HEAD_BYTES = 65_536
CHUNK = 65_536
_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?\Z")
_DROPPED = frozenset(
    b"connection expect host keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer "
    b"transfer-encoding upgrade".split()
)
"""What is between the command and the proxy alone, or is said anew."""


class BadRequest(Exception):
    """The request cannot be read in one way only."""


class Incoming:
    """What a connection brings, read ahead as little as can be."""

    def __init__(self, source: socket.socket) -> None:
        self._source = source
        self.rest = b""

    def line(self, room: int) -> bytes:
        """Return one line without its end."""
        while (end := self.rest.find(b"\r\n")) < 0:
            if len(self.rest) > room:
                raise BadRequest("a line of the request is too long")
            self._more()
        if end > room:
            raise BadRequest("the head of the request is too long")
        line, self.rest = self.rest[:end], self.rest[end + 2 :]
        return line

    def exactly(self, size: int) -> Iterator[bytes]:
        """Yield the next bytes as they come."""
        while size:
            if not self.rest:
                self._more()
            piece, self.rest = self.rest[:size], self.rest[size:]
            size -= len(piece)
            yield piece

    def _more(self) -> None:
        data = self._source.recv(CHUNK)
        if not data:
            raise EOFError
        self.rest += data


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request. length: of its body; None where that comes in chunks. waits: the body follows our word only."""

    method: str
    target: str
    headers: tuple[tuple[bytes, bytes], ...]
    length: int | None
    waits: bool

    @classmethod
    def read(cls, incoming: Incoming) -> Request:
        """Return the next request; BadRequest for one that two readers could read differently."""
        room = MAX_HEAD_BYTES
        first = incoming.line(room)
        words = first.split(b" ")
        if len(words) != 3 or not _TOKEN.match(words[0]) or words[2] not in (b"HTTP/1.1", b"HTTP/1.0"):
            raise BadRequest("the first line is no HTTP/1 request")
        if not words[1].isascii():
            raise BadRequest("the address holds characters that are not ASCII")
        headers: list[tuple[bytes, bytes]] = []
        room -= len(first)
        while line := incoming.line(room):
            room -= len(line) + 2
            headers.append(_header(line))
        return cls(
            method=words[0].decode(),
            target=words[1].decode(),
            headers=_forwarded(headers),
            length=_length(headers),
            waits=any(name.lower() == b"expect" for name, _ in headers),
        )

    def head(self, path: str, authority: str) -> bytes:
        """Return the head as the server gets it: for one exchange, and of the host that was vetted."""
        lines = [f"{self.method} {path} HTTP/1.1".encode(), b"Host: " + authority.encode()]
        lines += [name + b": " + value for name, value in self.headers]
        lines += [b"Transfer-Encoding: chunked"] if self.length is None else []
        return b"\r\n".join((*lines, b"Connection: close", b"", b""))

    def body(self, incoming: Incoming) -> Iterator[bytes]:
        """Yield the body as it goes on to the server, and nothing that follows it."""
        if self.length is not None:
            yield from incoming.exactly(self.length)
            return
        while True:
            size = _SIZE.match(incoming.line(1024))
            if size is None:
                raise BadRequest("a chunk of the body has no size")
            count = int(size[1], 16)
            yield b"%x\r\n" % count
            if count == 0:
                break
            yield from incoming.exactly(count)
            if incoming.line(0):  # pragma: no cover  # longer than the room: refused there
                raise BadRequest("a chunk of the body is longer than it says")
            yield b"\r\n"
        while incoming.line(MAX_HEAD_BYTES):
            continue  # trailers are nobody's
        yield b"\r\n"


def _header(line: bytes) -> tuple[bytes, bytes]:
    name, colon, value = line.partition(b":")
    if not colon or not _TOKEN.match(name) or any(byte < 32 and byte != 9 for byte in value):
        raise BadRequest("a header is malformed")
    return name, value.strip(b" \t")


def _forwarded(headers: list[tuple[bytes, bytes]]) -> tuple[tuple[bytes, bytes], ...]:
    named = [value for name, value in headers if name.lower() == b"connection"]
    dropped = _DROPPED.union(word.strip().lower() for value in named for word in value.split(b","))
    return tuple(header for header in headers if header[0].lower() not in dropped)


def _length(headers: list[tuple[bytes, bytes]]) -> int | None:
    lengths = [value for name, value in headers if name.lower() == b"content-length"]
    codings = [value.lower() for name, value in headers if name.lower() == b"transfer-encoding"]
    if codings:
        if codings != [b"chunked"] or lengths:
            raise BadRequest("it is unclear how long the body is")
        return None
    if len(lengths) > 1 or not all(re.fullmatch(rb"[0-9]{1,15}", value) for value in lengths):
        raise BadRequest("it is unclear how long the body is")
    return int(lengths[0]) if lengths else 0
