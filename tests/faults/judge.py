"""The independent reader: raw SQL and the chain's own check against the ledger outside the database.

It shares no code with the store. Whatever instant somebody died at, every one of these must hold.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.faults.ledger import Ledger, Line
from tests.faults.world import AT_MOST_ONCE

from toolgate.kernel.call import TRANSITIONS, Status
from toolgate.kernel.event import Event, verify


@dataclass(frozen=True)
class Row:
    """A call as its row shows it."""

    id: str
    tool: str
    status: Status
    attempt: int
    undo_of: str | None


@dataclass(frozen=True)
class Findings:
    """What the database and the ledger hold, found to agree."""

    rows: dict[str, Row]
    events: dict[str, list[Event]]
    approvals: dict[str, tuple[str, str | None]]
    effects: Counter[str]
    undos: Counter[str]

    def count(self, tally: Counter[str]) -> None:
        """Add them to a campaign's figures."""
        tally["calls"] += len(self.rows)
        tally["effects"] += self.effects.total() + self.undos.total()
        tally["decisions"] += sum(status != "pending" for status, _ in self.approvals.values())


def judge(file: Path, ledger: Ledger) -> Findings:
    """Return what is there; AssertionError where a promise is broken."""
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        connection.execute("BEGIN")
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        findings = Findings(
            rows=_rows(connection),
            events=_chains(connection),
            approvals=_approvals(connection),
            effects=Counter(line["call"] for line in ledger.lines("effect")),
            undos=Counter(line["call"] for line in ledger.lines("undo")),
        )
        told = findings.events.get("_system", [])
    modes = [event.data["to"] for event in told if event.type == "mode.changed"]
    _statuses_follow_the_table(findings)
    _no_effect_without_a_claim(findings)
    _at_most_one_effect(findings)
    _nothing_was_guessed(findings)
    for line in ledger.lines():
        _acknowledged(line, findings, modes)
    return findings


def chains_of(file: Path) -> dict[str, list[Event]]:
    """Every project's events, from a sound file whose chains verify."""
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        return _chains(connection)


def _rows(connection: sqlite3.Connection) -> dict[str, Row]:
    found = connection.execute("SELECT call_id, tool_name, status, detail FROM tool_executions").fetchall()
    rows = {}
    for call_id, tool, status, text in found:
        detail = json.loads(text)
        rows[call_id] = Row(call_id, tool, Status(status), detail.get("attempt", 0), detail.get("undo_of"))
    return rows


def _chains(connection: sqlite3.Connection) -> dict[str, list[Event]]:
    """Every project's events: verified, without a gap, ending at the recorded head."""
    chains: dict[str, list[Event]] = defaultdict(list)
    for row in connection.execute(
        "SELECT project_id, seq, type, at, call_id, frame, content, prev, hash FROM events ORDER BY project_id, seq"
    ):
        at = datetime.fromisoformat(row[3]).replace(tzinfo=UTC)
        chains[row[0]].append(Event(row[0], row[1], row[2], at, *row[4:]))
    heads = {row[0]: (row[1], row[2]) for row in connection.execute("SELECT project_id, seq, hash FROM chain_heads")}
    for events in chains.values():
        assert verify(events) == len(events)
    assert heads == {project: (events[-1].seq, events[-1].hash) for project, events in chains.items()}
    return chains


def _approvals(connection: sqlite3.Connection) -> dict[str, tuple[str, str | None]]:
    found = connection.execute("SELECT detail, status, decided_by_name FROM approval_requests")
    return {json.loads(detail)["id"]: (status, by) for detail, status, by in found}


def _statuses_follow_the_table(findings: Findings) -> None:
    """Told in order, the events of a call lead through allowed steps to the status its row shows."""
    stands: dict[str, Status] = {}
    for events in findings.events.values():
        for event in events:
            after = _status_told(event)
            if event.call_id is None or after is None:
                continue
            # No event says that a call waits for its caller because nobody need be asked.
            unasked = Status.APPROVED if event.data.get("reason") == "unclaimed" else Status.PENDING
            before = stands.get(event.call_id, unasked)
            if after is not before:
                assert after in TRANSITIONS[before], f"{event.call_id}: {before} -> {after} ({event.type})"
            stands[event.call_id] = after
    assert stands == {row.id: row.status for row in findings.rows.values()}


_TOLD = {
    "tool.started": Status.EXECUTING,
    "tool.undo_started": Status.EXECUTING,
    "tool.completed": Status.COMPLETED,
    "tool.undone": Status.COMPLETED,
    "tool.cancelled": Status.CANCELLED,
    "approval.requested": Status.AWAITING_APPROVAL,
}
_BY_REASON = {
    "unknown": Status.UNKNOWN,
    "approval_denied": Status.REJECTED,
    "approval_timeout": Status.TIMEOUT,
    "unclaimed": Status.TIMEOUT,
    "cancelled": Status.CANCELLED,
    "denied": Status.DENIED,
}


def _status_told(event: Event) -> Status | None:
    """The status an event says its call has now; None where it says nothing of it."""
    data: dict[str, Any] = event.data
    if event.type == "approval.decided":
        return Status.APPROVED if data["decision"] == "approved" else Status.REJECTED
    if event.type == "tool.settled":
        return Status(data["outcome"])
    if event.type in ("tool.failed", "tool.undo_failed"):
        return _BY_REASON.get(data["error_code"], Status.FAILED)
    if event.type == "tool.denied":
        return _BY_REASON.get(data["reason"], Status.DENIED)
    return _TOLD.get(event.type)


def _claims(findings: Findings) -> Counter[str]:
    return Counter(
        event.call_id
        for events in findings.events.values()
        for event in events
        if event.type in ("tool.started", "tool.undo_started") and event.call_id is not None
    )


def _no_effect_without_a_claim(findings: Findings) -> None:
    claims = _claims(findings)
    for call_id, times in findings.effects.items():
        assert times <= claims[call_id], f"{call_id}: {times} effects, {claims[call_id]} claims"
    undo_claims = Counter(row.undo_of for row in findings.rows.values() if row.undo_of and claims[row.id])
    for call_id, times in findings.undos.items():
        assert times <= undo_claims[call_id], f"{call_id}: undone {times} times, {undo_claims[call_id]} claims"
    for row in findings.rows.values():
        assert row.attempt == claims[row.id], f"{row.id}: attempt {row.attempt}, {claims[row.id]} claims"


def _at_most_one_effect(findings: Findings) -> None:
    claims = _claims(findings)
    for row in findings.rows.values():
        if row.tool in AT_MOST_ONCE:
            assert claims[row.id] <= 1, f"{row.id} ({row.tool}) was claimed {claims[row.id]} times"
            assert findings.effects[row.id] <= 1, f"{row.id} ({row.tool}) had {findings.effects[row.id]} effects"
    assert all(times == 1 for times in findings.undos.values())


def _nothing_was_guessed(findings: Findings) -> None:
    """A call that says it completed did; one whose effect happened says nothing else than that or 'unknown'."""
    may_have_acted = {Status.EXECUTING, Status.COMPLETED, Status.UNKNOWN}
    for row in findings.rows.values():
        times = findings.effects[row.id] if row.undo_of is None else findings.undos[row.undo_of]
        if row.status is Status.COMPLETED:
            assert times, f"{row.id} ({row.tool}) is COMPLETED without an effect"
        if times and row.undo_of is None:
            assert row.status in may_have_acted, f"{row.id} ({row.tool}) had its effect and is {row.status}"


def _acknowledged(line: Line, findings: Findings, modes: list[str]) -> None:
    """What somebody was told is there."""
    match line["what"]:
        case "decided":
            assert findings.approvals[line["approval"]] == (line["decision"], line["by"])
        case "parked":
            assert line["approval"] in findings.approvals
        case "mode":
            assert line["mode"] in modes
        case "result":
            told, stands = Status(line["status"]), findings.rows[line["call"]].status
            assert stands is told or not told.is_final or told is Status.UNKNOWN, f"{line['call']}: {told}, {stands}"
