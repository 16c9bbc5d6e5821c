"""Streams that break off, repeat themselves, lie or flood; and one that tells everything once all the same."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.interfaces.client.listener import Asked, always, in_turn, listening, problem, reply
from tests.unit.interfaces.server.house import House

from toolgate.client import Client, EventStream, StreamEvent
from toolgate.errors import BadAnswerError, NotSignedInError, ServerError, ServerUnreachableError
from toolgate.interfaces.client.backoff import delays
from toolgate.testing.patience import PATIENCE_S, until

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nConnection: close\r\n\r\nretry: 40\n\n"


def frame(name: str, id: int | None = None, **data: Any) -> bytes:
    head = f"id: {id}\n" if id is not None else ""
    return f"{head}event: {name}\ndata: {json.dumps(data)}\n\n".encode()


def client(url: str, **options: Any) -> Client:
    return Client(url, token="tg_x", project="demo", **{"retry_s": 0.0, **options})


async def take(stream: EventStream, count: int) -> list[tuple[str, int | None]]:
    async with stream, asyncio.timeout(PATIENCE_S):
        return [(event.name, event.id) for event in [await anext(stream) for _ in range(count)]]


async def test_a_stream_comes_back_where_it_was_and_tells_nothing_twice() -> None:
    answers = in_turn(
        HEAD + frame("stream.ready", 5) + frame("tool.invoked", 6) + b"id: 7\nevent: tool.com",
        b"",
        problem(503, "draining", "The server is shutting down."),
        HEAD + frame("tool.invoked", 6) + frame("tool.completed", 7) + 2 * frame("tool.execution_signal"),
        HEAD + frame("tool.completed", 8),
    )
    lost: list[ServerError] = []
    async with listening(answers) as server, client(server.url) as ann:
        told = await take(ann.stream(session_id="s", tools=["a", "b"], undo=True, on_lost=lost.append), 6)
        assert told == [
            ("stream.ready", 5), ("tool.invoked", 6), ("tool.completed", 7), ("tool.execution_signal", None),
            ("tool.execution_signal", None), ("tool.completed", 8),
        ]  # fmt: skip
        assert [asked.headers.get("last-event-id") for asked in server.asked] == [None, "6", "6", "6", "7"]
        assert server.asked[4].query == {"session_id": "s", "tools": "a,b", "undo": "true"}
        assert len(lost) == 4


@pytest.mark.parametrize(
    ("options", "query"),
    [
        ({}, {"listen": "true"}),
        ({"session_id": "s"}, {"session_id": "s", "listen": "true"}),
        ({"listen": False}, {}),
        ({"tools": ["*"]}, {"tools": "*"}),
    ],
    ids=["nothing", "session", "own-calls", "runner"],
)
async def test_a_stream_only_listens_unless_it_is_told_to_run(options: Any, query: Any) -> None:
    async with listening(in_turn(HEAD + frame("stream.ready", 5))) as server, client(server.url) as ann:
        await take(ann.stream(**options), 1)
        assert server.asked[0].query == query


async def test_another_history_begins_anew_and_says_so() -> None:
    answers = in_turn(HEAD + frame("a", 900), HEAD + frame("stream.ready", 3), HEAD + frame("b", 4))
    async with listening(answers) as server, client(server.url) as ann:
        assert await take(ann.follow(after=899), 3) == [("a", 900), ("stream.ready", 3), ("b", 4)]
        assert [asked.headers["last-event-id"] for asked in server.asked] == ["899", "900", "3"]


async def test_a_stream_nobody_serves_gives_up_at_the_beginning_only() -> None:
    async with listening() as server:
        url = server.url
    async with client(url) as ann:
        with pytest.raises(ServerUnreachableError):
            await take(ann.stream(), 1)
    ended = in_turn(HEAD + frame("a", 1), problem(401, "not_signed_in"))
    async with listening(ended) as server, client(server.url) as ann:
        with pytest.raises(NotSignedInError):
            await take(ann.stream(), 2)


@pytest.mark.parametrize(
    "body",
    [
        HEAD + b"data: not json\n\n",
        HEAD + b"data: [1]\n\n",
        HEAD + b"data: " + b"[" * 100_000 + b"\n\n",
        HEAD + b"data: " + b"x" * 3_000_000,
        HEAD + b"data: {}\n" * 400_000,
        HEAD + b": " + b"x" * 3_000_000,
        reply(200, b"{}"),
        reply(200, b"<html>", media="text/html"),
        reply(301, b"", "Location: /elsewhere"),
        HEAD.replace(b"Connection: close", b"Content-Encoding: gzip") + b"\x1f\x8b",
    ],
    ids=["text", "array", "deep", "long", "many", "comment", "json", "page", "elsewhere", "gzip"],
)
async def test_what_is_no_stream_of_ours_ends_in_an_error(body: bytes) -> None:
    async with listening(always(body)) as server, client(server.url, max_answer_bytes=1_000_000) as ann:
        with pytest.raises(BadAnswerError):
            await take(ann.stream(), 1)


async def test_a_connection_that_falls_silent_is_replaced() -> None:
    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if "last-event-id" in asked.headers:
            writer.write(HEAD + frame("b", 2))
        else:
            writer.write(HEAD + frame("a", 1))
        await writer.drain()
        await asyncio.sleep(30)

    async with listening(answer) as server, client(server.url) as ann:
        stream = EventStream(ann._connection, "/my/projects/demo/events", {}, silence_s=0.1)
        assert await take(stream, 2) == [("a", 1), ("b", 2)]


async def test_closing_a_stream_ends_who_reads_it(house: House, ann: Client) -> None:
    stream = ann.stream()
    heard: list[StreamEvent] = []

    async def read() -> str:
        async for event in stream:
            heard.append(event)  # noqa: PERF401  # a comprehension would show nothing before the end
        return "ended"

    reading = asyncio.create_task(read())
    await until(lambda: heard)
    assert stream.is_connected
    await stream.aclose()
    assert await reading == "ended"
    assert not stream.is_connected
    reading = asyncio.create_task(read())
    assert await reading == "ended"
    another = asyncio.create_task(anext(ann.stream()))
    await asyncio.sleep(0)
    another.cancel()
    with pytest.raises(asyncio.CancelledError):
        await another
    await until(lambda: not house.services.hub.connections)


async def test_pages_and_history_have_every_event_in_order(ann: Client) -> None:
    for number in range(4):
        await ann.call("add", {"left": number, "right": 1}, call_id=f"c{number}")
    everything = [event async for event in ann.history()]
    assert [event.seq for event in everything] == list(range(1, len(everything) + 1))
    page = await ann.events(after=2, limit=2)
    assert ([event.seq for event in page.events], page.next) == ([3, 4], 4)
    assert {event.tool_id for event in [event async for event in ann.history(call_id="c1")]} == {"c1"}
    async with ann.follow(after=0) as stream:
        first = await anext(stream)
        assert (first.id, first.name, first.data["call_id"]) == (1, everything[0].type, "c0")


SENT = (
    b'retry: 1500\n: heartbeat\n\nid: 1\nevent: a\ndata: {"x": 1}\n\n'
    b"id: 2\r\nevent: b\r\ndata: {\r\ndata: }\r\n\r\ndata:{}\n\nid: x\nevent: c\ndata: {}\n\nevent: none\n\n"
)


async def read(parts: list[bytes], **options: Any) -> tuple[list[StreamEvent], float | None]:
    """What a client makes of one connection that brings these bytes, and how long it was told to stay away."""

    async def body() -> AsyncIterator[bytes]:
        for part in parts:
            yield part

    def answer(_request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=body())

    async with client("http://localhost", **options) as ann, ann.follow() as stream:
        ann._connection._http = httpx2.AsyncClient(transport=httpx2.MockTransport(answer), base_url=ann.url)
        return [event async for event in stream._connected()], stream._wanted_s


@given(st.lists(st.integers(0, len(SENT)), max_size=12))
def test_events_are_the_same_however_the_bytes_are_cut(cuts: list[int]) -> None:
    edges = sorted({0, *cuts, len(SENT)})
    told, wanted_s = asyncio.run(read([SENT[start:end] for start, end in pairwise(edges)]))
    assert told == [
        StreamEvent(name="a", data={"x": 1}, id=1),
        StreamEvent(name="b", data={}, id=2),
        StreamEvent(name="message", data={}),
        StreamEvent(name="c", data={}),
    ]
    assert wanted_s == 1.5


@given(st.binary(max_size=300))
def test_any_bytes_give_events_or_an_error(data: bytes) -> None:
    try:
        asyncio.run(read([data], max_answer_bytes=100))
    except BadAnswerError:
        return


def test_waits_grow_and_differ() -> None:
    waits = delays(first_s=1.0, longest_s=8.0)
    drawn = [next(waits) for _ in range(50)]
    assert all(0.5 <= one <= 8.0 for one in drawn)
    assert min(drawn[5:]) >= 4.0
    assert len(set(drawn)) > 40
