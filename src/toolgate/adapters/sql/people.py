"""Comparing accounts and tokens with their events, and with their marks where the key is at hand."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

from toolgate.adapters.sealing import Sealer
from toolgate.adapters.sql.directory_rows import (
    ACCOUNTS,
    TOKENS,
    Rows,
    read_account,
    read_token,
    told_account,
    told_token,
)
from toolgate.adapters.sql.rows import EVENT_COLUMNS, event_of
from toolgate.kernel.comparing import Difference
from toolgate.kernel.context import SYSTEM_PROJECT
from toolgate.kernel.event import Event
from toolgate.ports.directory import Account, Token

PAGE = 500
Fetch = Callable[..., Awaitable[Sequence[Sequence[Any]]]]
"""Returns the rows of a query in which each `?` stands for one of the values."""
_ACCOUNT_PAGE = f"{ACCOUNTS} WHERE a.name>? ORDER BY a.name LIMIT ?"
_TOKEN_PAGE = f"{TOKENS} WHERE t.id>? ORDER BY t.id LIMIT ?"
_EVENT = f"SELECT {', '.join(EVENT_COLUMNS)} FROM events WHERE project_id=? AND seq=?"
_TOLD = (
    "SELECT seq, call_id FROM events WHERE project_id=? AND seq>? AND type IN ('account.changed', 'token.created') "
    "ORDER BY seq LIMIT ?"
)


async def compare_people(fetch: Fetch, sealer: Sealer | None) -> AsyncIterator[Difference]:
    """Every account and token whose row says something else than its last event, or whose mark does not hold."""
    rows = None if sealer is None else Rows(sealer.marks)
    for kind, sql in (("account", _ACCOUNT_PAGE), ("token", _TOKEN_PAGE)):
        last = ""
        while page := await fetch(sql, last, PAGE):
            for row in page:
                for what in await _compare(fetch, rows, kind, tuple(row)):
                    yield Difference(SYSTEM_PROJECT, kind, str(row[0]), what)
            last = page[-1][0]
    async for found in _missing(fetch):
        yield found


async def _compare(fetch: Fetch, rows: Rows | None, kind: str, row: Sequence[Any]) -> list[str]:
    record = read_account(row) if kind == "account" else read_token(row)
    if record is None:
        return ["its row cannot be read"]
    told, mark, last = row[-3:]
    if mark is None:
        return ["it carries no mark, so it counts as absent"]
    if told != (last or 0):
        after = "no event tells of it" if last is None else f"event {last} came after it"
        return [f"it is an older row put back: it is of event {told}, and {after}"]
    found = [] if last is None else await fetch(_EVENT, SYSTEM_PROJECT, last)
    said = [] if not found else list(_differences(record, event_of(found[0])))
    if rows is not None and not rows.holds(row, record):
        said.append("its mark does not hold, so it counts as absent")
    return said


def _differences(record: Account | Token, event: Event) -> Iterator[str]:
    told = event.data
    if isinstance(record, Account):
        now = told_account(record, by="")[2]
        names: tuple[str, ...] = ("kind", "acts_for", "roles")
    else:
        is_over = event.type in ("token.revoked", "session.ended") or told.get("revoked_at") is not None
        if is_over is not (record.revoked_at is not None):
            yield f"it is {'revoked' if record.revoked_at else 'not revoked'}, its events say the contrary"
        now = told_token(record, by="")[2]
        names = ("account", "projects", "abilities", "parent", "expires_at")
    for name in names:
        if name in told and _plain(now[name]) != _plain(told[name]):
            yield f"{name} is {now[name]}, its events say {told[name]}"


def _plain(value: Any) -> Any:
    """A time as a time, whichever way it is written."""
    if isinstance(value, str) and value[:4].isdigit() and "T" in value:
        return datetime.fromisoformat(value)
    return value


async def _missing(fetch: Fetch) -> AsyncIterator[Difference]:
    """Accounts and tokens that events tell of and that have no row; those of sessions are freed after their end."""
    last = 0
    while page := await fetch(_TOLD, SYSTEM_PROJECT, last, PAGE):
        last = page[-1][0]
        for kind, table, id in (("account", "accounts", "name"), ("token", "tokens", "id")):
            told = sorted({row[1].partition(":")[2] for row in page if row[1].startswith(f"{kind}:")})
            if not told:
                continue
            found = await fetch(f"SELECT {id} FROM {table} WHERE {id} IN ({', '.join('?' * len(told))})", *told)
            for name in sorted(set(told) - {row[0] for row in found}):
                yield Difference(SYSTEM_PROJECT, kind, name, "its row is missing")
