"""The append-only facts: every event name, how a fact is drafted, sealed into its chain and checked.

An event's `body` is the exact bytes that were hashed; readers parse it and never re-encode it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import orjson

from toolgate.errors import ToolgateError

EVENTS: dict[str, str] = {
    "tool.invoked": "A call was received and its tool was looked up. First event of every known tool's call.",
    "tool.started": "The claim is committed and the handler is about to run; `approved_by` says who allowed it.",
    "tool.dispatched": "The call was given to one runner elsewhere; `runner` says whose, and holds its lease.",
    "tool.progress": "The handler reported how far it is.",
    "tool.completed": "The handler returned success; carries `duration_ms` and a masked `output_summary`.",
    "tool.failed": "The call ended without success; `error_code` and `error_message` say why.",
    "tool.denied": "The call was refused before running; `reason` says by what.",
    "tool.cancelled": "The call was cancelled; `reason` says why.",
    "tool.late_result": "A handler that had lost its claim returned; kept as evidence, changes nothing.",
    "tool.settled": "A person or a reconcile handler said what an unknown outcome really was.",
    "tool.adopted": "Undo data that was kept elsewhere was brought in, so that its call can be undone here.",
    "tool.undo_started": "An undo was claimed and its handler is about to run.",
    "tool.undone": "The effect of `action_id` was undone.",
    "tool.undo_failed": "Undoing `action_id` was refused or failed; the undo data is kept.",
    "approval.requested": "A person is asked; the call waits.",
    "approval.expiring": "An undecided approval is about to expire.",
    "approval.extended": "The expiry of an undecided approval was moved.",
    "approval.voted": "One of several people said yes; the others are still asked.",
    "approval.escalated": "People with other roles are asked too.",
    "approval.commented": "Somebody commented on an undecided approval.",
    "approval.edited": "A person changed the arguments; another approval takes this one's place.",
    "approval.undelivered": "A channel gave up carrying the question; it stays open.",
    "approval.decided": "A person decided; `decision`, `decided_by` and `reason` are final.",
    "approval.expired": "The approval closed without a decision: time ran out, the call ended or it was superseded.",
    "grant.created": "A person wants a yes remembered: for what, how often and how long.",
    "grant.revoked": "A grant was taken back.",
    "run.undone": "Undoing a run came to its end; says what was undone and what was not.",
    "mode.changed": "The operator changed the mode.",
    "mode.enforced": "What entering LOCKDOWN did: how much is frozen, which running calls were stopped or not.",
    "policy.changed": "The gate follows another policy revision.",
    "sandbox.tested": "A sandbox was tried with escape probes before its first use.",
    "policy.refused": "A changed policy file cannot be used; the gate keeps the policy it had.",
}
"""Every event name with its meaning. A name that is not here cannot be drafted."""


class ChainError(ToolgateError):
    """The events do not form the chain they claim to form."""

    code = "chain_broken"


Draft = tuple[str, str | None, dict[str, Any]]
"""An event before it has its place in the sequence: its name, its call and its masked data."""


class Event(NamedTuple):
    """One fact in one project's sequence."""

    project: str
    seq: int
    type: str
    at: datetime
    call_id: str | None
    body: bytes
    prev: bytes
    hash: bytes

    @property
    def data(self) -> dict[str, Any]:
        """The event's data, parsed anew for each reader."""
        data: dict[str, Any] = orjson.loads(self.body)["data"]
        return data


def genesis(project: str) -> bytes:
    """The hash before the first event of a project."""
    return hashlib.sha256(b"toolgate-chain-1\x00" + project.encode()).digest()


HASH_BYTES = 32
_sha256 = hashlib.sha256
_dumps = orjson.dumps
_OPTIONS = orjson.OPT_UTC_Z


Link = tuple[int, str, datetime, str | None, bytes, bytes]
"""A sealed event without its project: seq, type, at, call, exactly what was hashed, and the hash.

What was hashed is the hash before, `HASH_BYTES` long, followed by the body. A plain tuple costs the
garbage collector nothing, which matters to who keeps many.
"""


def link(drafts: Sequence[Draft], project: str, at: datetime, seq: int, last: bytes) -> list[Link]:
    """Return the drafts as the events after `seq`, whose hash is `last`; refuse a name that is not in `EVENTS`."""
    for name, _, _ in drafts:
        if name not in EVENTS:
            raise ChainError(f"'{name}' is not an event name; add it to EVENTS with its meaning.")
    return link_all(((at, drafts),), project, seq, last)


def link_all(told: Iterable[tuple[datetime, Sequence[Draft]]], project: str, seq: int, last: bytes) -> list[Link]:
    """Return drafts of several times as the events after `seq`, each hashed over its exact body."""
    linked: list[Link] = []
    for at, drafts in told:
        for name, call_id, data in drafts:
            seq += 1
            body = {"at": at, "call_id": call_id, "data": data, "project": project, "seq": seq, "type": name}
            hashed = last + _dumps(body, None, _OPTIONS)
            last = _sha256(hashed).digest()
            linked.append((seq, name, at, call_id, hashed, last))
    return linked


def unlink(project: str, linked: Link) -> Event:
    """Return a link as the event it stands for."""
    seq, name, at, call_id, hashed, digest = linked
    return Event(project, seq, name, at, call_id, hashed[HASH_BYTES:], hashed[:HASH_BYTES], digest)


def seal(draft: Draft, project: str, seq: int, at: datetime, prev: bytes) -> Event:
    """Return the draft as event `seq`, after the one whose hash is `prev`."""
    return unlink(project, link((draft,), project, at, seq - 1, prev)[0])


def verify(events: Iterable[Event], *, after: tuple[int, bytes] | None = None) -> int:
    """Check sequence, links, hashes and columns; return how many events were checked.

    `after` is the (seq, hash) of the event before the first one; without it the first event must be
    the project's first. Raises ChainError naming the first event that does not fit.
    """
    seq, prev = after if after is not None else (0, None)
    project: str | None = None
    count = 0
    for event in events:
        if project is not None and event.project != project:
            raise ChainError(f"Event {event.seq} belongs to project '{event.project}', not to '{project}'.")
        project = event.project
        expected_prev = genesis(event.project) if prev is None else prev
        if event.seq != seq + 1:
            raise ChainError(f"Event {seq + 1} of project '{event.project}' is missing: found {event.seq}.")
        if event.prev != expected_prev:
            raise ChainError(f"Event {event.seq} of project '{event.project}' does not link to the one before it.")
        if hashlib.sha256(event.prev + event.body).digest() != event.hash:
            raise ChainError(f"Event {event.seq} of project '{event.project}' was altered: its hash differs.")
        _check_columns(event)
        seq, prev = event.seq, event.hash
        count += 1
    return count


def _check_columns(event: Event) -> None:
    try:
        told = orjson.loads(event.body)
        body = (told["project"], told["seq"], told["type"], told["call_id"], datetime.fromisoformat(told["at"]))
    except (ValueError, KeyError, TypeError):
        raise ChainError(f"Event {event.seq} of project '{event.project}' has a body that is not an event.") from None
    if body != (event.project, event.seq, event.type, event.call_id, event.at):
        raise ChainError(f"Event {event.seq} of project '{event.project}' shows columns that its body contradicts.")
