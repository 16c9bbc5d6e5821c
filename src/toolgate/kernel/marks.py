"""Keyed marks on questions and people's decisions: who can write to the database, but has no key, cannot make one.

A mark is the id of a key and an HMAC-SHA256 over who may answer which question, what they are shown, and everything a
yes stands for. Whoever takes a yes, or claims a call, checks it on the approval they have read anyway. The keys are
given by the store, which does not keep them in the database.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable

import orjson

from toolgate.kernel.approval import Approval, digest_of, shown_digest_of
from toolgate.kernel.call import Call
from toolgate.kernel.record import evolve

Find = Callable[[str], bytes | None]
"""Returns the mark key with this id, if it is at hand."""


class Marks:
    """Marks decisions with one key, and checks them with any that is at hand."""

    def __init__(self, current: str, find: Find) -> None:
        self._current = current
        self._find = find

    @classmethod
    def fresh(cls) -> Marks:
        """Marks under a key that nobody else has and that ends with this process."""
        key = secrets.token_bytes(32)
        return cls("process", {"process": key}.get)

    def put(self, approval: Approval) -> Approval:
        """Return an approval with the mark of what it is now."""
        key = self._find(self._current)
        assert key is not None
        return evolve(approval, mark=_mark(self._current, key, approval))

    def hold(self, approval: Approval) -> bool:
        """Whether who may answer an approval, its votes and its answer are what was marked, by who has the key."""
        mark = approval.mark
        if not isinstance(mark, str) or not mark.isascii():  # somebody else's writing may be anything
            return False
        id = mark.partition(":")[0]
        key = self._find(id)
        return key is not None and hmac.compare_digest(_mark(id, key, approval), mark)

    def refusal(self, call: Call, approval: Approval | None) -> tuple[str, str] | None:
        """Why an approval does not let this very call run, as a code and a reason; None where it does."""
        if approval is None or not approval.allows(digest_of(call, nonce=approval.nonce)):
            return "approval_mismatch", "what would run is not what was approved"
        if not self.hold(approval):
            reason = "its approval does not carry the mark of this gate, so nobody is known to have given it"
            return "approval_unmarked", reason
        return None


def _mark(id: str, key: bytes, approval: Approval) -> str:
    """Bind who said what to which question, and to all that the terms of now are compared with at the claim."""
    terms = approval.terms
    covered = (
        id,
        approval.id,
        approval.status,
        approval.project,
        approval.call_id,
        approval.digest,
        [vote.by for vote in approval.votes],
        terms.quorum,
        terms.separation,
        [sorted(roles) for roles in terms.approvers],
        sorted(terms.escalate_to),
        approval.escalated,
        shown_digest_of(approval),
        approval.level,
        approval.decided_by,
        approval.decided_at,
        approval.expires_at,
    )
    return f"{id}:{hmac.digest(key, orjson.dumps(covered), 'sha256').hex()}"
