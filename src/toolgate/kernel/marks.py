"""Keyed marks on whatever row gives permission: who can write to the database, but has no key, makes none.

A mark is the id of a key and an HMAC-SHA256 over who may answer which question, what they are shown, and everything a
yes stands for; of a grant, over all that decides whether it covers a call; of a delegation, over all of it; of an
account or a token, over what it may do; of the modes, over all of them and the number of the event that set them.
Whoever takes a yes, or claims a call, checks it on the row they have read anyway. The keys are given by the store,
which does not keep them in the database.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from typing import Any, TypeVar

import orjson

from toolgate.kernel.approval import Approval, Note, digest_of, shown_digest_of
from toolgate.kernel.call import Call
from toolgate.kernel.delegation import Delegation
from toolgate.kernel.grant import Grant
from toolgate.kernel.record import evolve

M = TypeVar("M", Approval, Grant, Delegation)
Marked = Approval | Grant | Delegation
Covered = tuple[Any, ...]
"""All that a mark stands for, as JSON can say it."""
Find = Callable[[str], bytes | None]
"""Returns the mark key with this id, if it is at hand."""


class Marks:
    """Marks rows with one key, and checks them with any that is at hand."""

    def __init__(self, current: str, find: Find) -> None:
        self._current = current
        self._find = find

    @classmethod
    def fresh(cls) -> Marks:
        """Marks under a key that nobody else has and that ends with this process."""
        key = secrets.token_bytes(32)
        return cls("process", {"process": key}.get)

    def make(self, covered: Covered) -> str:
        """Return the mark of what a row of any kind says. The first of it names the kind: no mark does for another."""
        key = self._find(self._current)
        assert key is not None
        return _mark(self._current, key, covered)

    def match(self, mark: object, covered: Covered) -> bool:
        """Whether this is the mark of what a row says, made by who has the key."""
        if not isinstance(mark, str) or not mark.isascii():  # somebody else's writing may be anything
            return False
        id = mark.partition(":")[0]
        key = self._find(id)
        return key is not None and hmac.compare_digest(_mark(id, key, covered), mark)

    def put(self, marked: M, shown: str | None = None) -> M:
        """Return what is given with the mark of what it is now.

        `shown` is the digest of what people are shown of an approval, where it was just taken.
        """
        return evolve(marked, mark=self.make(_covered(marked, shown)))

    def hold(self, marked: Marked, shown: str | None = None) -> bool:
        """Whether what an approval, a grant or a delegation says is what was marked, by who has the key."""
        return self.match(marked.mark, _covered(marked, shown))

    def refusal(self, call: Call, approval: Approval | None) -> tuple[str, str] | None:
        """Why an approval does not let this very call run, as a code and a reason; None where it does."""
        is_its_own = approval is not None and approval.call_id == call.id  # the same asked twice has one digest
        if approval is None or not is_its_own or not approval.allows(digest_of(call, nonce=approval.nonce)):
            return "approval_mismatch", "what would run is not what was approved"
        if not self.hold(approval):
            reason = "its approval does not carry the mark of this gate, so nobody is known to have given it"
            return "approval_unmarked", reason
        return None


def _mark(id: str, key: bytes, covered: Covered) -> str:
    said = orjson.dumps((id, *covered), option=orjson.OPT_SORT_KEYS)
    return f"{id}:{hmac.digest(key, said, 'sha256').hex()}"


def _covered(marked: Marked, shown: str | None) -> Covered:
    if isinstance(marked, Approval):
        return _of_approval(marked, shown or shown_digest_of(marked))
    return _of_grant(marked) if isinstance(marked, Grant) else _of_delegation(marked)


def _of_vote(vote: Note) -> Any:
    """Who voted, for whom, and with which roles; most votes are nothing but somebody's own."""
    return (vote.by, vote.on_behalf_of, *vote.roles) if vote.on_behalf_of is not None or vote.roles else vote.by


def _of_approval(approval: Approval, shown: str) -> Covered:
    """Who said what to which question, and all that the terms of now are compared with at the claim."""
    terms = approval.terms
    rare = (("including", terms.including), ("firm", terms.firm))
    return (
        approval.id,
        approval.status,
        approval.project,
        approval.call_id,
        approval.digest,
        [_of_vote(vote) for vote in approval.votes],
        terms.quorum,
        terms.separation,
        [sorted(roles) for roles in terms.approvers],
        sorted(terms.escalate_to),
        approval.escalated,
        shown,
        approval.level,
        approval.decided_by,
        approval.decided_at,
        approval.expires_at,
        *([name, [sorted(roles) for roles in sets]] for name, sets in rare if sets),
        *(["in_person"] if terms.in_person else ()),
    )


def _of_grant(grant: Grant) -> Covered:
    """Who remembered a yes to what, for whom, until when, how often it was used, and what people are shown of it."""
    return (
        "grant",  # no approval has such an id, so neither mark does for the other
        grant.id,
        grant.project,
        grant.tool_name,
        grant.definition_hash,
        grant.requester,
        grant.user,
        grant.pattern,
        grant.shown,
        grant.nonce,
        grant.level,
        grant.terms.as_json(),
        grant.escalated,
        grant.approval_id,
        grant.call_id,
        grant.granted_by,
        grant.created_at,
        grant.expires_at,
        grant.max_uses,
        [(use.call_id, use.at) for use in grant.used],
        grant.revoked_at,
        grant.revoked_by,
        grant.reason,
        grant.version,
    )


def _of_delegation(delegation: Delegation) -> tuple[Any, ...]:
    """Who lent their vote to whom, for what and until when, and who ended it."""
    return (
        "delegation",
        delegation.id,
        delegation.project,
        delegation.giver,
        delegation.delegate,
        delegation.created_at,
        delegation.expires_at,
        delegation.tools,
        delegation.reason,
        delegation.ended_at,
        delegation.ended_by,
        delegation.version,
    )
