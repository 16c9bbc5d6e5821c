"""What is in an event of a Toolgate server's stream. `httpx2` takes the stream apart and bounds its size."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import orjson
from httpx2 import ServerSentEvent

from toolgate.errors import BadAnswerError


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEvent:
    """One event of a stream. `id` is its place in the project's history; what is told once only has none."""

    name: str
    data: dict[str, Any] = field(default_factory=dict)
    id: int | None = None


def event_of(sent: ServerSentEvent, id_before: str) -> StreamEvent | None:
    """Return what was sent; None where it has no data. `id_before` is the id of what came before on this connection.

    By the standard an event without an id has that of the one before; the server gives no two events the same.
    """
    if not sent.data:
        return None
    own = "" if sent.id == id_before else sent.id
    return StreamEvent(
        name=sent.event,
        data=_object(sent.data),
        id=int(own) if own.isascii() and own.isdigit() and len(own) <= 18 else None,
    )


def _object(data: str) -> dict[str, Any]:
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise BadAnswerError("An event of the stream is not a JSON object: what answers is not a Toolgate server.")
    return value
