"""Server-sent events out of bytes, however they are cut. A frame that grows beyond its limit is refused."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from toolgate.errors import BadAnswerError

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEvent:
    """One event of a stream. `id` is its place in the project's history; what is told once only has none."""

    name: str
    data: dict[str, Any] = field(default_factory=dict)
    id: int | None = None


class Parser:
    """Gives the events that are complete. `retry_s` is how long the server wants us to wait before coming back."""

    def __init__(self, *, max_bytes: int) -> None:
        self._max = max_bytes
        self._rest = bytearray()
        self._fields: dict[str, bytes] = {}
        self._data: list[bytes] = []
        self._size = 0
        self._is_first = True
        self.retry_s: float | None = None

    def feed(self, part: bytes) -> Iterator[StreamEvent]:
        """Take some bytes; yield the events they complete."""
        searched = max(len(self._rest) - 1, 0)
        self._rest += part
        start = 0
        while (end := self._rest.find(b"\n", max(start, searched))) >= 0:
            line = bytes(self._rest[start:end]).removesuffix(b"\r")
            start = end + 1
            event = self._line(line)
            if event is not None:
                yield event
        del self._rest[:start]
        self._check(len(self._rest))

    def _check(self, more: int) -> None:
        if self._size + more > self._max:
            raise BadAnswerError(f"An event is larger than {self._max:,} bytes and was not read.")

    def _line(self, line: bytes) -> StreamEvent | None:
        if self._is_first:
            self._is_first = False
            line = line.removeprefix(_BOM)
        if not line:
            return self._finished()
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        self._check(len(line))
        if name == b"data":
            self._size += len(line)
            self._data.append(value)
        elif name in (b"event", b"id"):
            self._fields[name.decode()] = value
        elif name == b"retry" and value.isdigit() and len(value) < 10:
            self.retry_s = int(value) / 1000
        return None

    def _finished(self) -> StreamEvent | None:
        fields, data = self._fields, b"\n".join(self._data)
        is_event = bool(self._data)
        self._fields, self._data, self._size = {}, [], 0
        if not is_event:
            return None
        id = fields.get("id", b"")
        return StreamEvent(
            name=fields.get("event", b"message").decode(errors="replace"),
            data=_object(data),
            id=int(id) if id.isdigit() and len(id) <= 18 else None,
        )


def _object(data: bytes) -> dict[str, Any]:
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise BadAnswerError("An event of the stream is not a JSON object: what answers is not a Toolgate server.")
    return value


async def events(parser: Parser, parts: AsyncIterator[bytes]) -> AsyncIterator[StreamEvent]:
    """The events in a body as it comes."""
    async for part in parts:
        for event in parser.feed(part):
            yield event
