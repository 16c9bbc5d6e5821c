"""The question put to a person, bound to a digest of exactly what will run, and its answer.

An approval's content never changes: another argument, definition or precondition is another
approval with another id, so the id implies the digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, NamedTuple
from uuid import UUID

import orjson

from toolgate.errors import DecisionConflictError
from toolgate.kernel.call import Call
from toolgate.kernel.context import Principal
from toolgate.kernel.record import evolve, record
from toolgate.kernel.terms import NO_TERMS, ApprovalLevel, ApprovalTerms
from toolgate.kernel.text.canonical import canonical


class ApprovalStatus(StrEnum):
    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"


class Note(NamedTuple):
    """What one person said about a question, and when: a vote for it, or a comment.

    `on_behalf_of` is whose vote it was, where that was delegated to who said it. `roles` are those of whose vote it
    was, when it was given, that the question's terms ask at least one of the voters to hold.
    """

    by: str
    at: datetime
    text: str | None = None
    on_behalf_of: str | None = None
    roles: tuple[str, ...] = ()

    @property
    def who(self) -> str:
        """Who said it, as people read it."""
        return decider_name(self.by, self.on_behalf_of)

    @property
    def people(self) -> frozenset[UUID]:
        """Everybody who has answered with it: who said it, and whose vote it was."""
        return frozenset(Principal.of(name).id for name in (self.by, self.on_behalf_of) if name is not None)


SHOWN_JSON: Final = ("arguments", "preview", "facts")
"""The fields of an approval that hold JSON somebody is shown, and which a reader therefore gets a copy of."""


@record
class Approval:
    """One question. `arguments`, `preview` and `facts` are masked; `digest` covers the real ones.

    What is asked never changes. Who is asked, how long, and what has been said so far may. A `silent` one
    was not put to anybody by a channel: it waits for people who look. `mark` binds who may answer, what they are shown,
    the votes and the answer to a key that is not in the database.
    """

    id: str
    project: str
    call_id: str
    tool_name: str
    message: str
    digest: str
    nonce: str
    definition_hash: str
    requester: str
    created_at: datetime
    expires_at: datetime
    warn_at: datetime | None = None
    user: str | None = None
    run_id: str | None = None
    session_id: str | None = None
    correlation_id: str | None = None
    level: str = "quick"
    risk: str = "low"
    confidence: int | None = None
    factors: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    claim: str | None = None
    arguments: Any = None
    preview: Any = None
    facts: Any = None
    input_schema: Any = None
    undoable: bool = False
    undo_ttl_s: float | None = None
    approve_label: str | None = None
    reject_label: str | None = None
    requires_reason: bool = False
    terms: ApprovalTerms = NO_TERMS
    escalate_at: datetime | None = None
    escalated: bool = False
    votes: tuple[Note, ...] = ()
    comments: tuple[Note, ...] = ()
    edited_from: str | None = None
    silent: bool = False
    difference: Any = None
    status: ApprovalStatus = ApprovalStatus.PENDING
    decided_by: str | None = None
    decided_at: datetime | None = None
    reason: str | None = None
    mark: str | None = None

    @property
    def is_pending(self) -> bool:
        return self.status is ApprovalStatus.PENDING

    @property
    def needs_reason(self) -> bool:
        """Whether a server takes a yes only with a reason: at level full, and where the risk is high."""
        return self.level == ApprovalLevel.FULL or self.risk == "high"

    @property
    def lacks(self) -> tuple[frozenset[str], ...]:
        """The sets of roles of which somebody who approves must hold one, and nobody who did so far does."""
        return self.terms.lacking(vote.roles for vote in self.votes)

    def is_enough(self, votes: Sequence[Note]) -> bool:
        """Whether so many people are enough, and the right ones are among them."""
        return len(votes) >= self.terms.quorum and not self.terms.lacking(vote.roles for vote in votes)

    @property
    def due_at(self) -> datetime:
        """When time next has something to do: escalate, warn or expire."""
        return min(at for at in (self.escalate_at, self.warn_at, self.expires_at) if at is not None)

    def allows(self, digest: str) -> bool:
        """Whether this is a yes, given before it expired, to what has this digest."""
        in_time = self.decided_at is not None and self.decided_at < self.expires_at
        return self.status is ApprovalStatus.APPROVED and in_time and digest == self.digest

    def satisfies(self, level: ApprovalLevel, terms: ApprovalTerms) -> bool:
        """Whether a yes to this question is as strong as the one that is due."""
        return level.rank <= ApprovalLevel(self.level).rank and self.terms.covers(terms)

    def check_open(self, *, at: datetime | None) -> None:
        """Raise DecisionConflictError where it is decided, or, if the time matters, its time is over."""
        if self.status is not ApprovalStatus.PENDING:
            who = f" by {self.decided_by}" if self.decided_by else ""
            raise DecisionConflictError(f"Approval {self.id} is already {self.status}{who}; the first answer is final.")
        if at is not None and at >= self.expires_at:
            raise DecisionConflictError(f"Approval {self.id} expired at {self.expires_at.isoformat()}; ask again.")

    def close(
        self, status: ApprovalStatus, *, at: datetime, by: str | None = None, reason: str | None = None
    ) -> Approval:
        """Return this approval decided or expired. The first answer is final; a late one is refused."""
        self.check_open(at=None if status is ApprovalStatus.EXPIRED else at)
        return evolve(self, status=status, decided_by=by, decided_at=at, reason=reason)


def decider_name(by: str, on_behalf_of: str | None) -> str:
    """Return how an answer names who gave it: `bob`, or `bob for ann` where the vote was ann's."""
    return by if on_behalf_of is None else f"{by} for {on_behalf_of}"


@lru_cache(maxsize=1024)  # one text for all who ask the same
def plain_question(tool_name: str) -> str:
    """Return what a person is asked where neither the caller nor the tool has words of its own."""
    return f"Run {tool_name}?"


def shown_digest_of(approval: Approval) -> str:
    """Return the SHA-256 over what people are shown of a question and decide by."""
    shown = dict(zip(_SHOWN, _shown_of(approval), strict=True))
    if approval.facts is not None:  # questions of before have none, and their marks still hold
        shown["facts"] = approval.facts
    return hashlib.sha256(orjson.dumps(shown, option=orjson.OPT_SORT_KEYS)).hexdigest()


_SHOWN = (
    "arguments", "preview", "message", "claim", "difference", "input_schema", "tool_name", "requester", "user",
    "run_id", "session_id", "risk", "confidence", "factors", "reasons", "undoable", "undo_ttl_s", "approve_label",
    "reject_label", "requires_reason", "edited_from",
)  # fmt: skip
_shown_of = attrgetter(*_SHOWN)


def digest_of(call: Call, *, nonce: str) -> str:
    """Return the SHA-256 over project, tool, definition, arguments, requester, preconditions and nonce.

    Where the call has an effect key, or repeats another call, these and what people were told of that are covered, too.
    """
    content = {
        "arguments": call.arguments.decode(),
        "definition": call.definition_hash,
        "forced": call.forced,
        "nonce": nonce,
        "preconditions": call.preconditions.decode() if call.preconditions is not None else None,
        "project": call.project,
        "requester": call.context.principal,
        "tool": call.tool_name,
        "undo_of": call.undo_of,
        "user": call.context.user,
    }
    if call.effect_key is not None or call.repeat_of is not None:
        content |= {"effect_key": call.effect_key, "repeat_of": call.repeat_of, "repeat_seen": call.repeat_seen}
    try:
        encoded = orjson.dumps(content, option=orjson.OPT_SORT_KEYS)  # text and flags alone: this is its canonical form
    except TypeError:
        encoded = canonical(content)  # which says what is wrong with it
    return hashlib.sha256(encoded).hexdigest()
