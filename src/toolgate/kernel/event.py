"""The append-only facts: every event name, how a fact is drafted, sealed into its chain and checked.

An event is a leaf: a frame in the clear, whose exact bytes are hashed, and a commitment to its content in it. Content
carries a salt of its own, so that it cannot be guessed from the commitment once both were destroyed.
"""

from __future__ import annotations

import hashlib
from binascii import hexlify
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import orjson

from toolgate.errors import ToolgateError
from toolgate.kernel.nonces import Nonces

EVENTS: dict[str, str] = {
    "tool.invoked": "A call was received and its tool was looked up. First event of every known tool's call.",
    "tool.started": "The claim is committed and the handler is about to run; `approved_by` says who allowed it.",
    "tool.dispatched": "The call was given to one runner elsewhere; `runner` says whose, and holds its lease.",
    "tool.progress": "The handler reported how far it is.",
    "tool.completed": "The handler returned success; carries `duration_ms` and a masked `output_summary`.",
    "tool.failed": "The call ended without success; `error_code` and `error_message` say why.",
    "tool.denied": "The call was refused before running; `reason` says by what.",
    "tool.cancelled": "The call was cancelled; `reason` says why.",
    "tool.joined": "The same call came again under another id, `joined_as`, and was given this one.",
    "tool.late_result": "A handler that had lost its claim returned; kept as evidence, changes nothing.",
    "tool.settled": "A person or a reconcile handler said what an unknown outcome really was.",
    "tool.still_unknown": "Somebody looked at a call of unknown outcome and does not know yet; it stays UNKNOWN.",
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
    "grant.used": "A call was started because of a grant.",
    "grant.revoked": "A grant was taken back.",
    "delegation.given": "A person lent their vote to another, for a while.",
    "delegation.ended": "A delegation was ended before its time.",
    "run.undone": "Undoing a run came to its end; says what was undone and what was not.",
    "account.changed": "An account was made or changed; says what it is now.",
    "token.created": "A token was made for an account; says what it is limited to.",
    "token.revoked": "A token was revoked, and what was made with it.",
    "session.begun": "A browser was signed in.",
    "session.ended": "A browser was signed out, or what its session was made with was revoked.",
    "database.pruned": "Arguments, results and, where asked for, events of old calls were deleted.",
    "database.copied": "A backup was made: a copy of every record.",
    "database.imported": "The records of a file were brought in.",
    "keys.changed": "Everything was encrypted and marked again under another key.",
    "mode.changed": "The operator changed the mode.",
    "mode.enforced": "What entering LOCKDOWN did: how much is frozen, which running calls were stopped or not.",
    "policy.changed": "The gate follows another policy revision.",
    "sandbox.tested": "A sandbox was tried with escape probes before its first use.",
    "policy.window_opened": "A sandboxed run is about to start that could write policy files; what is trusted in them.",
    "policy.window_closed": "That run ended, or died, and left the policy files as they were.",
    "policy.held": "Policy files changed during a run that could write them; the gate keeps the policy it had.",
    "policy.released": "Policy files that were held say again what is trusted; nothing waits any more.",
    "policy.accepted": "A person accepted what held policy files say; `revision` is what they said.",
    "program.pinned": "A program that could be replaced is about to run for the first time, or a person agreed to it.",
    "program.forgotten": "A person had a program forgotten; its next run is its first.",
    "policy.refused": "A changed policy file cannot be used; the gate keeps the policy it had.",
}
"""Every event name with its meaning. A name that is not here cannot be drafted."""


BEGUN = frozenset({"tool.started", "tool.undo_started"})
"""Told by every claim."""
ENDED = frozenset({"tool.completed", "tool.failed", "tool.cancelled", "tool.denied", "tool.undone", "tool.undo_failed"})
"""Told when nothing more is to happen. A call that is tried again has told none of them."""


class ChainError(ToolgateError):
    """The events do not form the chain they claim to form."""

    code = "chain_broken"


Draft = tuple[str, str | None, dict[str, Any], dict[str, Any] | None]
"""An event before it has its place in the sequence: its name, its call, its facts, and its masked content.

Facts are names, ids, times, numbers and digests: they stay for as long as the event does. Content is what people and
programs said: arguments, results, reasons, error texts. It can be destroyed one day without breaking the chain.
"""

SALT_BYTES = 16
_MARKED = b'{"content":"'
_MARK = len(_MARKED) + 64 + len(b'",')
"""How long the commitment is at the beginning of a frame."""


class Event(NamedTuple):
    """One fact in one project's sequence.

    `frame` is the leaf: the exact bytes that were hashed, JSON in the clear, whose first field `content` is the SHA-256
    of the event's content, if it has any. `content` is a salt of its own, `SALT_BYTES` long, and the content as JSON;
    None where there is none, or where it was destroyed.
    """

    project: str
    seq: int
    type: str
    at: datetime
    call_id: str | None
    frame: bytes
    content: bytes | None
    prev: bytes
    hash: bytes

    @property
    def body(self) -> bytes:
        """The event as readers get it: one JSON object, facts and content together in its `data`."""
        if not self.frame.startswith(_MARKED):
            return self.frame
        clear = b"{" + self.frame[_MARK:]
        if self.content is None:
            return clear
        comma = b"" if clear.endswith(b"{}}") else b","
        return clear[:-2] + comma + self.content[SALT_BYTES + 1 :] + b"}"

    @property
    def data(self) -> dict[str, Any]:
        """The event's data, parsed anew for each reader."""
        data: dict[str, Any] = _loads(self.body)["data"]
        return data

    @property
    def is_redacted(self) -> bool:
        """Whether there was content that has been destroyed since."""
        return self.content is None and self.frame.startswith(_MARKED)


def genesis(project: str) -> bytes:
    """The hash before the first event of a project."""
    return _sha256(b"toolgate-chain-2\x00" + project.encode()).digest()


_sha256 = hashlib.sha256
_dumps, _loads = orjson.dumps, orjson.loads
_OPTIONS = orjson.OPT_UTC_Z
_salts = Nonces(SALT_BYTES)
_CONTENT, _LEAF, _NODE = _sha256(), _sha256(b"\x00"), _sha256(b"\x01")
"""How each kind of hash begins: a copy of one that has begun costs less than a new one."""


Link = tuple[int, str, datetime, str | None, bytes, bytes | None, bytes, bytes]
"""An event without its project, in the order of its fields. A plain tuple costs the garbage collector nothing, which
matters to who keeps many."""


def link(drafts: Sequence[Draft], project: str, at: datetime, seq: int, last: bytes) -> list[Link]:
    """Return the drafts as the events after `seq`, whose hash is `last`; refuse a name that is not in `EVENTS`."""
    for draft in drafts:
        if draft[0] not in EVENTS:
            raise ChainError(f"'{draft[0]}' is not an event name; add it to EVENTS with its meaning.")
    return link_all(((at, drafts),), project, seq, last)


def link_all(told: Iterable[tuple[datetime, Sequence[Draft]]], project: str, seq: int, last: bytes) -> list[Link]:
    """Return drafts of several times as the events after `seq`.

    Leaves are hashed as in RFC 6962, and so is the chain: each link is a node of the link before and the leaf.
    """
    linked: list[Link] = []
    take_salt, begin_content, begin_leaf, begin_node = _salts.take, _CONTENT.copy, _LEAF.copy, _NODE.copy
    for at, drafts in told:
        for name, call_id, facts, said in drafts:
            seq += 1
            content, prev = None, last
            frame = {"at": at, "call_id": call_id, "project": project, "seq": seq, "type": name, "data": facts}
            leaf = _dumps(frame, None, _OPTIONS)
            if said:
                content = take_salt() + _dumps(said, None, _OPTIONS)
                hashed = begin_content()
                hashed.update(content)
                leaf = b'{"content":"%b",%b' % (hexlify(hashed.digest()), leaf[1:])
            else:
                leaf = b"%b" % leaf  # a copy that takes the room it needs: the encoder's own holds kilobytes of slack
            hashed, node = begin_leaf(), begin_node()
            hashed.update(leaf)
            node.update(prev + hashed.digest())
            last = node.digest()
            linked.append((seq, name, at, call_id, leaf, content, prev, last))
    return linked


Open = tuple[str, str | None, str, str, bytes | None]
"""An event without its number: its name, its call, its frame before and after the number, and its content."""


def open_frames(drafts: Sequence[Draft], project: str, at: datetime) -> list[Open]:
    """Return the drafts as events that only lack their numbers, for who numbers them elsewhere.

    What `link_all` makes of the same draft is the same bytes, with the number between the two parts of its frame.
    """
    made: list[Open] = []
    for name, call_id, facts, said in drafts:
        if name not in EVENTS:
            raise ChainError(f"'{name}' is not an event name; add it to EVENTS with its meaning.")
        content, committed = None, ""
        if said:
            content = _salts.take() + _dumps(said, None, _OPTIONS)
            committed = f'"content":"{_sha256(content).hexdigest()}",'
        before = _dumps({"at": at, "call_id": call_id, "project": project}, None, _OPTIONS)
        after = _dumps({"type": name, "data": facts}, None, _OPTIONS)
        frame = f'{{{committed}{before[1:-1].decode()},"seq":', f",{after[1:].decode()}"
        made.append((name, call_id, *frame, content))
    return made


def unlink(project: str, linked: Link) -> Event:
    """Return a link as the event it stands for."""
    return Event(project, *linked)


def seal(draft: Draft, project: str, seq: int, at: datetime, prev: bytes) -> Event:
    """Return the draft as event `seq`, after the one whose hash is `prev`."""
    return unlink(project, link((draft,), project, at, seq - 1, prev)[0])


def is_linked(event: Event) -> bool:
    """Whether the event's hash is that of its frame after the hash before it."""
    return _sha256(b"\x01" + event.prev + _sha256(b"\x00" + event.frame).digest()).digest() == event.hash


def verify(events: Iterable[Event], *, after: tuple[int, bytes] | None = None) -> int:
    """Check sequence, links, hashes, columns and content; return how many events were checked.

    `after` is the (seq, hash) of the event before the first one; without it the first event must be
    the project's first. Content that was destroyed is no fault; see `Event.is_redacted`. Raises ChainError naming the
    first event that does not fit.
    """
    seq, prev = after if after is not None else (0, None)
    project: str | None = None
    count = 0
    for event in events:
        if project is not None and event.project != project:
            raise ChainError(f"Event {event.seq} belongs to project '{event.project}', not to '{project}'.")
        project = event.project
        if not _is_readable(event):
            raise ChainError(f"Event {event.seq} of project '{event.project}' was altered: it cannot be read.")
        expected_prev = genesis(event.project) if prev is None else prev
        if event.seq != seq + 1:
            raise ChainError(f"Event {seq + 1} of project '{event.project}' is missing: found {event.seq}.")
        if event.prev != expected_prev:
            raise ChainError(f"Event {event.seq} of project '{event.project}' does not link to the one before it.")
        if not is_linked(event):
            raise ChainError(f"Event {event.seq} of project '{event.project}' was altered: its hash differs.")
        _check_columns(event)
        seq, prev = event.seq, event.hash
        count += 1
    return count


def _is_readable(event: Event) -> bool:
    """Whether the parts are bytes, as whoever wrote into the database by hand may not have left them."""
    content = b"" if event.content is None else event.content
    return all(isinstance(part, bytes) for part in (event.frame, content, event.prev, event.hash))


def _check_columns(event: Event) -> None:
    try:
        told = _loads(event.frame)
        clear = (told["project"], told["seq"], told["type"], told["call_id"], datetime.fromisoformat(told["at"]))
        committed = told.get("content")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ChainError(f"Event {event.seq} of project '{event.project}' has a frame that is not an event.") from None
    if clear != (event.project, event.seq, event.type, event.call_id, event.at):
        raise ChainError(f"Event {event.seq} of project '{event.project}' shows columns that its frame contradicts.")
    if event.content is not None and _sha256(event.content).hexdigest() != committed:
        raise ChainError(f"Event {event.seq} of project '{event.project}' was altered: its content differs.")
