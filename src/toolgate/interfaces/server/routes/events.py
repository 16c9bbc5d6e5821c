"""The events of a project: a page at a time, or as they happen."""

from __future__ import annotations

from starlette.types import Receive, Send

from toolgate.interfaces.server.operations import Ask, Operation, reply, response_of
from toolgate.interfaces.server.streams import event_stream
from toolgate.wire.schemas import EventList, EventRecord, EventsQuery

_PATH = "/my/projects/{project_id}/events"


async def index(ask: Ask) -> EventList:
    query: EventsQuery = ask.query
    found = await ask.services.gate.events(
        project=ask.project, after=query.after or 0, limit=query.limit, call_id=query.tool_id
    )
    events = [
        EventRecord(seq=event.seq, type=event.type, at=event.at, tool_id=event.call_id, data=event.data)
        for event in found
    ]
    return EventList(events=events, next=found[-1].seq if len(found) == query.limit else None)


async def either(ask: Ask, receive: Receive, send: Send) -> None:
    """A stream for who accepts one, else a page."""
    if b"text/event-stream" in ask.headers.get(b"accept", b""):
        await event_stream(ask, receive, send)
    else:
        await reply(response_of(200, await index(ask)), send)


OPERATIONS = (
    Operation(
        method="GET",
        path=_PATH,
        summary="List events in order; with `Accept: text/event-stream`, follow them",
        stream=either,
        query=EventsQuery,
        returns=EventList,
        takes_ticket=True,
        tag="events",
    ),
)
