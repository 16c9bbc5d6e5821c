"""Looking after a database file from outside: checking chains, status, backup, vacuum, retention."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from toolgate.adapters.sql import brakes
from toolgate.adapters.sql.rows import EVENT_COLUMNS, event_of, moment
from toolgate.adapters.sql.upkeep import FORGETTABLE, ChainReport, told_copied, told_pruned
from toolgate.adapters.sql.versions import HEAD
from toolgate.adapters.sqlite.chain import append
from toolgate.adapters.sqlite.file import check_current, connect, is_fresh, make_private, prepare, revision_of
from toolgate.adapters.sqlite.statements import free_undo
from toolgate.errors import StoreError
from toolgate.kernel.call import Status
from toolgate.kernel.context import SYSTEM_PROJECT
from toolgate.kernel.event import ChainError, Event, verify
from toolgate.ports.directory import HOST

_FINAL = tuple(status.value for status in Status if status.is_final)


@contextmanager
def looking(path: Path) -> Iterator[sqlite3.Connection]:
    """A read-only connection to a database of ours."""
    check_current(path)
    try:
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=10)
        try:
            yield connection
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise StoreError(f"The database cannot be read: {error}.") from error


def verify_chains(path: Path) -> list[ChainReport]:
    """Check the chain of every project against its events and its recorded head."""
    with looking(path) as connection:
        connection.execute("BEGIN")  # one moment in time, however long it takes
        rows = connection.execute("SELECT project_id, seq, hash, base_seq, base_hash FROM chain_heads")
        heads = {row[0]: row[1:] for row in rows}
        told = {row[0] for row in connection.execute("SELECT DISTINCT project_id FROM events")}
        return [_verify(connection, project, heads.get(project)) for project in sorted(heads.keys() | told)]


def projects_of(path: Path) -> list[str]:
    """The projects anything was recorded for, by name."""
    with looking(path) as connection:
        return sorted(row[0] for row in connection.execute("SELECT project_id FROM chain_heads"))


def _verify(connection: sqlite3.Connection, project: str, head: tuple[Any, ...] | None) -> ChainReport:
    last: list[Event] = []
    redacted = 0
    base = head[2:] if head is not None and head[2] else None
    """The last event that retention removed, if any: the kept ones begin after it."""

    def events() -> Iterator[Event]:
        nonlocal redacted
        rows = connection.execute(
            f"SELECT {', '.join(EVENT_COLUMNS)} FROM events WHERE project_id=? ORDER BY seq", (project,)
        )
        for row in rows:
            event = _readable(row)
            last[:] = [event]
            yield event
            redacted += event.is_redacted

    count = connection.execute("SELECT count(*) FROM events WHERE project_id=?", (project,)).fetchone()[0]
    try:
        verify(events(), after=base)
    except ChainError as error:
        return ChainReport(project, count, str(error))
    tail = (last[0].seq, last[0].hash) if last else base
    if (None if head is None else head[:2]) != tail:
        return ChainReport(project, count, "the newest events are missing: the chain ends before its recorded head")
    return ChainReport(project, count, None, redacted)


def _readable(row: tuple[Any, ...]) -> Event:
    """The event of a row; ChainError where somebody put something else into it than we did."""
    try:
        return event_of(row)
    except (TypeError, ValueError):
        raise ChainError(f"Event {row[1]} of project '{row[0]}' was altered: it cannot be read.") from None


def status_of(path: Path) -> dict[str, Any]:
    """What a person wants to know at a glance."""
    revision = revision_of(path)
    if revision != HEAD:
        return {"revision": revision, "needed": HEAD, "bytes": path.stat().st_size, "events": None, "calls": {},
                "pending_approvals": None, "mode": None, "brakes": None}  # fmt: skip
    with looking(path) as connection:
        calls = dict(connection.execute("SELECT status, count(*) FROM tool_executions GROUP BY status").fetchall())
        pending = connection.execute("SELECT count(*) FROM approval_requests WHERE status='pending'").fetchone()[0]
        events = connection.execute("SELECT count(*) FROM events").fetchone()[0]
        mode = connection.execute("SELECT value FROM settings WHERE name='mode'").fetchone()
    return {
        "revision": revision,
        "needed": HEAD,
        "bytes": path.stat().st_size,
        "events": events,
        "calls": calls,
        "pending_approvals": pending,
        **brakes.shown(mode[0] if mode else None),
    }


def upgrade_file(path: Path) -> tuple[str | None, str]:
    """Bring the file to this version's schema; return the revision before and after."""
    before = None if is_fresh(path) else revision_of(path)
    prepare(path)
    return before, revision_of(path)


def backup_to(path: Path, destination: Path, *, by: str = HOST) -> int:
    """Copy the database while others use it, check the copy and return its size.

    The record is told of it first, so that the copy says of itself that it is one.
    """
    if destination.exists():
        raise StoreError(f"{destination} exists already; give another name.")
    _tell_copied(path, destination, by)
    with looking(path) as source:
        try:
            make_private(destination)
            copy = sqlite3.connect(destination)
            try:
                source.backup(copy, pages=1024)
                copy.execute("PRAGMA journal_mode=DELETE")  # one file, readable where nothing can be written
                sound = copy.execute("PRAGMA integrity_check").fetchone()[0]
            finally:
                copy.close()
        except (sqlite3.Error, OSError) as error:
            destination.unlink(missing_ok=True)
            raise StoreError(f"The backup could not be written: {error}.") from error
    if sound != "ok":
        destination.unlink(missing_ok=True)
        raise StoreError(f"The backup is damaged ({sound}); it was removed.")
    return destination.stat().st_size


def _tell_copied(path: Path, destination: Path, by: str) -> None:
    check_current(path)
    connection = connect(path, busy_s=10)
    try:
        connection.execute("BEGIN IMMEDIATE")
        append(connection, datetime.now(UTC), [told_copied(str(destination.absolute()), by=by)])
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise StoreError(f"The record cannot be told of the backup, so none was made: {error}.") from error
    finally:
        connection.close()


def vacuum_file(path: Path) -> tuple[int, int]:
    """Give unused pages back; return the sizes before and after."""
    check_current(path)
    before = path.stat().st_size
    connection = connect(path, busy_s=10)
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error as error:
        raise StoreError(f"The file cannot be vacuumed: {error}.") from error
    finally:
        connection.close()
    return before, path.stat().st_size


def prune(path: Path, cut: datetime, *, by: str = HOST, events: bool = False) -> tuple[int, int]:
    """Forget the arguments and results of old calls and, with `events`, remove their events; return how many of each.

    One transaction, in which the record is told of it.
    """
    check_current(path)
    connection = connect(path, busy_s=10)
    try:
        connection.execute("BEGIN IMMEDIATE")
        forgotten = _forget(connection, cut)
        removed = _remove_all(connection, cut) if events else None
        append(connection, datetime.now(UTC), [told_pruned(cut, forgotten, removed, by=by)])
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise StoreError(f"Old calls could not be pruned: {error}.") from error
    finally:
        connection.close()
    return forgotten, removed or 0


def _forget(connection: sqlite3.Connection, cut: datetime) -> int:
    """Forget arguments, previews, results and undo data of calls finished before `cut`; return how many.

    What was said in the agent's runs that ended before it is forgotten too, and the nonces without which nobody can try
    out which arguments a digest stands for. The rows stay, so a call id is never run again, and the events stay, so the
    chain verifies.
    """
    marks = ",".join("?" * len(FORGETTABLE))
    old = f"completed_at<? AND sealed_params IS NOT NULL AND status IN ({marks})"
    values = (moment(cut), *FORGETTABLE)
    connection.execute(
        "UPDATE approval_requests SET detail=json_set(json_remove(detail, '$.facts'), '$.arguments', NULL, "
        "'$.preview', NULL, '$.difference', NULL, '$.nonce', '') WHERE "
        f"(project_id, action_id) IN (SELECT project_id, id FROM tool_executions WHERE {old})",
        values,
    )
    connection.execute(
        "DELETE FROM large_params WHERE (project_id, action_id) IN "
        f"(SELECT project_id, id FROM tool_executions WHERE {old})",
        values,
    )
    done = connection.execute(
        "UPDATE tool_executions SET tool_params=NULL, result=NULL, sealed_params=NULL, sealed_result=NULL, "
        f"detail=json_remove(detail, '$.preview', '$.facts', '$.first_asked') WHERE {old}",
        values,
    ).rowcount
    free_undo(connection, cut)
    connection.execute("DELETE FROM effect_keys WHERE held_until<?", (moment(cut),))
    connection.execute(
        "UPDATE messages SET shown=NULL, sealed_content=NULL WHERE created_at<? AND (project_id, run_id) IN "
        "(SELECT project_id, id FROM agent_runs WHERE ended_at<?)",
        (moment(cut), moment(cut)),
    )
    connection.execute("UPDATE conversations SET title='' WHERE updated_at<?", (moment(cut),))
    return done


def _remove_all(connection: sqlite3.Connection, cut: datetime) -> int:
    """Remove the oldest events of every project, as far as all of them are older than `cut` and of calls that ended.

    Where the kept ones begin is noted with the head, so the chain verifies from there. Those of `_system` stay: what
    accounts and tokens are is told there. Returns how many went.
    """
    heads = connection.execute("SELECT project_id FROM chain_heads WHERE project_id<>?", (SYSTEM_PROJECT,)).fetchall()
    return sum(_remove_events(connection, project, cut) for (project,) in heads)


def _remove_events(connection: sqlite3.Connection, project: str, cut: datetime) -> int:
    marks = ",".join("?" * len(_FINAL))
    (first,) = connection.execute(
        "SELECT min(e.seq) FROM events AS e LEFT JOIN tool_executions AS t ON t.project_id=e.project_id "
        f"AND t.call_id=e.call_id WHERE e.project_id=? AND (e.at>=? OR t.status NOT IN ({marks}))",
        (project, moment(cut), *_FINAL),
    ).fetchone()
    row = connection.execute(
        "SELECT seq, hash FROM events WHERE project_id=? AND seq<coalesce(?, 9223372036854775807) "
        "ORDER BY seq DESC LIMIT 1",
        (project, first),
    ).fetchone()
    if row is None:
        return 0
    done = connection.execute("DELETE FROM events WHERE project_id=? AND seq<=?", (project, row[0])).rowcount
    connection.execute("UPDATE chain_heads SET base_seq=?, base_hash=? WHERE project_id=?", (*row, project))
    return done
