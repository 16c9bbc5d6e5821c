"""Comparing every row of a database with its events, a page at a time, for every SQL store. No key is needed.

With the key, the marks of what still gives permission are checked as well.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import Any

from toolgate.adapters.sealing import Sealer
from toolgate.adapters.sql.comparing_modes import compare_modes
from toolgate.adapters.sql.delegation_rows import DELEGATION_COLUMNS, delegation_of
from toolgate.adapters.sql.people import Fetch, compare_people
from toolgate.adapters.sql.rows import (
    APPROVAL_COLUMNS,
    CALL_COLUMNS,
    EVENT_COLUMNS,
    GRANT_COLUMNS,
    approval_of,
    call_of,
    event_of,
    grant_of,
    uuid_hex,
)
from toolgate.kernel.approval import Approval
from toolgate.kernel.comparing import NO_MARK, Difference, History, compare_all, compare_delegation, compare_grant
from toolgate.kernel.grant import Grant
from toolgate.kernel.marks import Marks

PAGE = 500
_UNREADABLE = (AttributeError, KeyError, TypeError, ValueError)
_BARE = ", ".join("NULL" if name.startswith("sealed_") else f"t.{name}" for name in CALL_COLUMNS)
_CALLS = f"SELECT {_BARE}, NULL, NULL FROM tool_executions AS t WHERE project_id=? AND id>? ORDER BY id LIMIT ?"
_APPROVAL = f"SELECT {', '.join(APPROVAL_COLUMNS)} FROM approval_requests WHERE project_id=? AND action_id IN "
_GRANTS = f"SELECT {', '.join(GRANT_COLUMNS)} FROM grants WHERE project_id=? AND id>? ORDER BY id LIMIT ?"
_LENT = f"SELECT {', '.join(DELEGATION_COLUMNS)} FROM delegations WHERE project_id=? AND id>? ORDER BY id LIMIT ?"
_GRANT = f"SELECT {', '.join(GRANT_COLUMNS)} FROM grants WHERE project_id=? AND id IN "
_TOLD = "SELECT seq, type, call_id FROM events WHERE project_id=? AND seq>? ORDER BY seq LIMIT ?"
_ROWS = "SELECT id FROM {} WHERE project_id=? AND id IN "
_KINDS = (
    ("call", "tool_executions", ("tool.", "approval.")),
    ("delegation", "delegations", ("delegation.",)),
)
"""What events tell of by an id, where its rows are, and how the names of those events begin."""
_NONE = "0" * 32


PROJECTS = (
    "SELECT project_id, base_seq FROM chain_heads UNION ALL SELECT DISTINCT project_id, 0 FROM tool_executions "
    "UNION ALL SELECT DISTINCT project_id, 0 FROM grants UNION ALL SELECT DISTINCT project_id, 0 FROM delegations"
)
"""Every project that has a chain, or a row that should have one."""


async def compare_database(fetch: Fetch, sealer: Sealer | None) -> list[Difference]:
    """Every row of a database that says something else than its events; their chains are verified elsewhere."""
    removed: dict[str, int] = {}
    for project, base_seq in await fetch(PROJECTS):
        removed[project] = max(base_seq or 0, removed.get(project, 0))
    found: list[Difference] = []
    for project, base_seq in sorted(removed.items()):
        comparing = Comparing(fetch, project, is_cut=base_seq > 0, sealer=sealer)
        found += [one async for one in comparing.differences()]
    found += [one async for one in compare_modes(fetch, sealer)]
    return found + [one async for one in compare_people(fetch, sealer)]


async def compare_directory(fetch: Fetch, sealer: Sealer | None) -> list[Difference]:
    """The same of accounts and tokens alone."""
    return [one async for one in compare_people(fetch, sealer)]


def _list(values: Sequence[Any]) -> str:
    return f"({', '.join('?' * len(values))})"


class Comparing:
    """One project's rows beside its events; `is_cut` says that its oldest events were removed."""

    def __init__(self, fetch: Fetch, project: str, *, is_cut: bool, sealer: Sealer | None) -> None:
        self._fetch = fetch
        self._project = project
        self._is_cut = is_cut
        self._marks: Marks | None = None if sealer is None else sealer.marks

    async def differences(self) -> AsyncIterator[Difference]:
        """Every difference there is; only some pages of rows and events are in memory at a time."""
        last: Any = _NONE
        while rows := await self._fetch(_CALLS, self._project, last, PAGE):
            async for found in self._calls(rows):
                yield found
            last = rows[-1][1]
        last = _NONE
        while rows := await self._fetch(_GRANTS, self._project, last, PAGE):
            async for found in self._grants(rows):
                yield found
            last = rows[-1][0]
        last = _NONE
        while rows := await self._fetch(_LENT, self._project, last, PAGE):
            async for found in self._delegations(rows):
                yield found
            last = rows[-1][0]
        async for found in self._missing():
            yield found

    def _said(self, kind: str, id: str, words: Iterable[str]) -> Iterator[Difference]:
        for word in words:
            yield Difference(self._project, kind, id, word)

    async def _histories(self, ids: Sequence[str]) -> dict[str, History]:
        """What the events tell of these calls; progress is left out, of which there may be very much."""
        found: defaultdict[str, list[Any]] = defaultdict(list)
        if ids:
            sql = f"SELECT {', '.join(EVENT_COLUMNS)} FROM events WHERE call_id IN {_list(ids)}"
            sql += " AND project_id || ''=? AND type<>'tool.progress' ORDER BY seq"
            for row in await self._fetch(sql, *ids, self._project):
                event = event_of(row)
                found[str(event.call_id)].append(event)
        return {id: History(found[id], is_cut=self._is_cut) for id in ids}

    async def _calls(self, rows: Sequence[Sequence[Any]]) -> AsyncIterator[Difference]:
        histories = await self._histories([row[2] for row in rows])
        asked: defaultdict[str, list[Approval]] = defaultdict(list)
        ids = [row[1] for row in rows]
        for row in await self._fetch(_APPROVAL + _list(ids), self._project, *ids):
            approval = _read(approval_of, row)
            if approval is None:
                yield Difference(self._project, "approval", str(row[0]), "its row cannot be read")
            else:
                asked[approval.call_id].append(approval)
        for row in rows:
            id, history = row[2], histories[row[2]]
            call = _read(lambda found: call_of(found, None), row)
            if call is None:
                yield Difference(self._project, "call", str(id), "its row cannot be read")
                continue
            for found in compare_all(call, asked[id], history, self._marks):
                yield found
        async for found in self._uses(rows, histories):
            yield found

    async def _uses(self, rows: Sequence[Sequence[Any]], histories: dict[str, History]) -> AsyncIterator[Difference]:
        """What was given and used with these calls: a grant that is told of has a row, which counts each use."""
        given = {told.data["grant_id"] for one in histories.values() for told in one.all("grant.created")}
        used: dict[str, str] = {}
        for row in rows:
            for told in histories[row[2]].all("tool.started", "tool.undo_started"):
                kind, _, id = str(told.data["approved_by"]).partition(":")
                if kind == "grant":
                    used[row[2]] = id
        ids = sorted({*given, *used.values()})
        hexed = [uuid_hex(id) for id in ids]
        found = await self._fetch(_GRANT + _list(hexed), self._project, *hexed) if ids else []
        read = [_read(grant_of, row) for row in found]
        grants = {grant.id: grant for grant in read if grant is not None}
        for id in ids:
            if id not in grants:
                yield Difference(self._project, "grant", id, "its row is missing, or cannot be read")
        for call_id, id in used.items():
            if id in grants and call_id not in (use.call_id for use in grants[id].used):
                yield Difference(self._project, "grant", id, f"it does not count its use by call {call_id}")

    async def _grants(self, rows: Sequence[Sequence[Any]]) -> AsyncIterator[Difference]:
        read = [(row, _read(grant_of, row)) for row in rows]
        grants = [grant for _, grant in read if grant is not None]
        for row, grant in read:
            if grant is None:
                yield Difference(self._project, "grant", str(row[0]), "its row cannot be read")
        ids = {grant.call_id or "" for grant in grants} | {use.call_id for grant in grants for use in grant.used}
        histories = await self._histories(sorted(ids))
        for grant in grants:
            for found in self._said("grant", grant.id, self._about(grant, histories)):
                yield found

    def _about(self, grant: Grant, histories: dict[str, History]) -> Iterator[str]:
        yield from compare_grant(grant, histories[grant.call_id or ""])
        if self._marks is not None and not self._marks.hold(grant):
            yield NO_MARK
        for use in grant.used:
            history = histories[use.call_id]
            begun = history.last("tool.started", "tool.undo_started", approved_by=grant.name)
            if begun is None and history.is_whole:
                yield f"it counts a use by call {use.call_id}, of which no event tells"

    async def _delegations(self, rows: Sequence[Sequence[Any]]) -> AsyncIterator[Difference]:
        read = [(row, _read(delegation_of, row)) for row in rows]
        histories = await self._histories([one.id for _, one in read if one is not None])
        for row, delegation in read:
            if delegation is None:
                yield Difference(self._project, "delegation", str(row[0]), "its row cannot be read")
                continue
            said = [*compare_delegation(delegation, histories[delegation.id])]
            if self._marks is not None and not self._marks.hold(delegation):
                said.append(NO_MARK)
            for found in self._said("delegation", delegation.id, said):
                yield found

    async def _missing(self) -> AsyncIterator[Difference]:
        """Calls and delegations that events tell of and that have no row."""
        last, seen = 0, set[str]()
        while rows := await self._fetch(_TOLD, self._project, last, PAGE):
            last = rows[-1][0]
            for kind, table, begin in _KINDS:
                told = {row[2] for row in rows if row[2] is not None and row[1].startswith(begin)} - seen
                for id in await self._without_row(table, sorted(told)):
                    yield Difference(self._project, kind, id, "its row is missing")
                    seen.add(id)

    async def _without_row(self, table: str, ids: Sequence[str]) -> list[str]:
        hexed = {id: uuid_hex(id) for id in ids}
        sql = _ROWS.format(table) + _list(ids)
        rows = await self._fetch(sql, self._project, *hexed.values()) if ids else []
        there = {str(row[0]).replace("-", "") for row in rows}
        return [id for id in ids if hexed[id] not in there]


def _read(make: Callable[[Sequence[Any]], Any], row: Sequence[Any]) -> Any:
    """What a row holds; None where somebody wrote into it what we never do."""
    try:
        return make(row)
    except _UNREADABLE:
        return None
