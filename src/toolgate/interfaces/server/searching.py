"""Finding calls among many: a page at a time, in either order, by what readers may see of them.

The store narrows by status, tool, run and time; words and people are compared here, on masked values only. One request
looks at a bounded number of calls and says how far it has come, so that a rare word never makes the server stop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from toolgate.gate import Gate
from toolgate.interfaces.server.paging import first_size, next_size
from toolgate.kernel.call import Call, Status
from toolgate.kernel.payload import LARGE
from toolgate.ports.store import CallQuery
from toolgate.wire.schemas import CallsQuery

CHUNK = 200
"""How many calls are read before others get their turn, at most."""
MOST = 2000
"""How many calls one request looks at."""

STATUSES: dict[str, frozenset[Status]] = {
    **{status.value.lower(): frozenset({status}) for status in Status},
    "failed": frozenset({Status.FAILED, Status.DENIED, Status.UNKNOWN}),
    "rejected": frozenset({Status.REJECTED, Status.CANCELLED}),
}


@dataclass(frozen=True, slots=True)
class Found:
    """A page: its calls, where the next one begins (None: there is none), and how far the search has come."""

    calls: list[Call]
    next: str | None
    reached: datetime | None


async def scan(gate: Gate, query: CallQuery, *, most: int = MOST, chunk: int = CHUNK) -> AsyncIterator[Call]:
    """Yield calls in the query's order, at most so many, letting others run in between."""
    after, left, size = query.after, most, first_size(chunk)
    while left > 0:
        size = min(size, left)
        page = await gate.calls.list(_beyond(query, after, size))
        for call in page:
            yield call
        if len(page) < size:
            return
        after, left = page[-1], left - size
        size = next_size(size, chunk, were_large=any(map(_is_large, page)))
        await asyncio.sleep(0)


def _is_large(call: Call) -> bool:
    return len(call.arguments) > LARGE or len(call.result or b"") > LARGE


def _beyond(query: CallQuery, after: Call | None, limit: int) -> CallQuery:
    return CallQuery(
        project=query.project,
        statuses=query.statuses,
        run_id=query.run_id,
        tool_name=query.tool_name,
        since=query.since,
        after=after,
        newest_first=query.newest_first,
        limit=limit,
    )


async def search(gate: Gate, project: str, asked: CallsQuery) -> Found:
    """Return the page of calls that was asked for; raise NotFoundError where its `after` is no call."""
    query = CallQuery(
        project=project,
        statuses=None if asked.status is None else STATUSES[asked.status],
        run_id=asked.run_id,
        tool_name=asked.tool_name,
        since=asked.since,
        after=None if asked.after is None else await gate.calls.get(asked.after, project=project),
        newest_first=asked.order == "newest",
        limit=asked.limit,
    )
    return await find(gate, query, _fits(asked))


async def find(gate: Gate, query: CallQuery, fits: Callable[[Call], bool] | None = None) -> Found:
    """Return a page of the calls of a query that fit."""
    limit = query.limit
    chunk, most = (min(limit, CHUNK), limit) if fits is None else (CHUNK, MOST)
    found: list[Call] = []
    last, seen = None, 0
    async for call in scan(gate, query, most=most, chunk=chunk):
        last, seen = call, seen + 1
        if fits is None or fits(call):
            found.append(call)
            if len(found) == limit:
                break
    is_open = last is not None and (len(found) == limit or seen == most)
    return Found(found, last.id if is_open and last else None, None if last is None else last.created_at)


def _fits(asked: CallsQuery) -> Callable[[Call], bool] | None:
    """What is compared here rather than by the store, or None where nothing is."""
    who, words = asked.requester, (asked.text or "").casefold().split()
    if who is None and not words:
        return None

    def fits(call: Call) -> bool:
        if who is not None and who not in (call.context.principal, call.context.user):
            return False
        if not words:
            return True
        told = "\n".join(_told(call)).casefold()
        return all(word in told for word in words)

    return fits


def _told(call: Call) -> Iterator[str]:
    """What readers may see of a call, as text."""
    context = call.context
    known = (call.id, call.tool_name, context.principal, context.user, context.run_id, context.session_id)
    yield from (one for one in (*known, call.approved_by, call.error, call.error_code, call.undo_of) if one)
    yield call.status.value
    yield from texts(call.shown)


def texts(value: Any) -> Iterator[str]:
    """Yield every key and value of JSON as text."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts(item)
    elif value is not None:
        yield str(value)
