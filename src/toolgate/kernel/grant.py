"""A remembered, bounded yes: for one tool as it is defined now, one requester, a pattern of arguments, a time and a
number of uses. It is used in the commit that claims the call, and it can be revoked.

Exact values are kept as digests, so that a grant holds nothing that a reader of the database should not see.
"""

from __future__ import annotations

import fnmatch
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from toolgate.errors import DecisionConflictError, UsageError
from toolgate.kernel.call import Call
from toolgate.kernel.record import evolve, record
from toolgate.kernel.terms import NO_TERMS, ApprovalLevel, ApprovalTerms
from toolgate.kernel.text.canonical import canonical

MAX_USES: Final = 1000
ANY: Final = "any"
"""The pattern of an argument that may be anything, or be missing."""
_LARGEST: Final = 2.0**63
_BOUNDS: Final = frozenset({"at_least", "at_most"})


class Use(NamedTuple):
    """One call that ran because of a grant."""

    call_id: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Remember:
    """How a yes is to be remembered: how often, how long, and for which arguments.

    Without a `pattern` only exactly the same arguments count. A pattern names arguments and what they may be:
    `{"is": value}`, `{"like": "notes/*.md"}` for text, `{"at_least": 1, "at_most": 100}` for numbers, or `"any"`; what
    it does not name must be exactly as it was. Without `at_least` numbers begin at 0, or at the one that is approved
    where that is below.
    """

    uses: int = 10
    seconds: float = 3600.0
    pattern: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if not 0 < self.uses <= MAX_USES or not 0 < self.seconds < float("inf"):
            raise UsageError(f"An approval is remembered for 1 to {MAX_USES} uses and a positive number of seconds.")

    @property
    def duration(self) -> timedelta:
        return timedelta(seconds=self.seconds)


@record
class Grant:
    """`pattern` maps each argument to what it may be; `shown` is the same for people, masked.

    `call_id` is the call whose question was answered, `escalated` says that the question had been escalated by then.
    `mark` binds all of it to a key that is not in the database. `invalid_because` is not kept: whoever lists grants is
    told there why one covers nothing.
    """

    id: str
    project: str
    tool_name: str
    definition_hash: str
    requester: str
    user: str | None = None
    pattern: Mapping[str, Any]
    shown: Mapping[str, Any]
    nonce: str
    level: str = "quick"
    terms: ApprovalTerms = NO_TERMS
    escalated: bool = False
    approval_id: str
    call_id: str | None = None
    granted_by: str
    created_at: datetime
    expires_at: datetime
    max_uses: int
    used: tuple[Use, ...] = ()
    revoked_at: datetime | None = None
    revoked_by: str | None = None
    reason: str | None = None
    version: int = 1
    mark: str | None = None
    invalid_because: str | None = None

    @property
    def is_valid(self) -> bool:
        """Whether it counts as far as was looked: it is what was given, by somebody who may still give it."""
        return self.invalid_because is None

    @property
    def name(self) -> str:
        """How the audit names this grant as the one who approved."""
        return f"grant:{self.id}"

    @property
    def uses_left(self) -> int:
        return self.max_uses - len(self.used)

    def is_live(self, now: datetime) -> bool:
        """Whether it may still be used."""
        return self.revoked_at is None and now < self.expires_at and self.uses_left > 0

    def is_for(self, call: Call) -> bool:
        """Whether this yes was given for calls of this tool, as it is defined, by this requester."""
        same = (self.project, self.tool_name, self.definition_hash, self.requester, self.user)
        context = call.context
        return same == (call.project, call.tool_name, call.definition_hash, context.principal, context.user)

    def covers(self, call: Call, arguments: Mapping[str, Any], level: ApprovalLevel, terms: ApprovalTerms) -> bool:
        """Whether this yes was given for such a call, by an answer as strong as the one that is due."""
        if not self.is_for(call) or level.rank > ApprovalLevel(self.level).rank or not self.terms.covers(terms):
            return False
        if terms.in_person:  # also where it was remembered of an answer to such a question
            return False
        if not set(arguments) <= set(self.pattern):
            return False
        return all(_fits(wanted, name, arguments, self.nonce) for name, wanted in self.pattern.items())

    def use(self, call_id: str, now: datetime) -> Grant:
        """Return this grant with one more use, to be marked anew."""
        return evolve(self, used=(*self.used, Use(call_id, now)), version=self.version + 1, mark=None)

    def revoke(self, *, by: str, reason: str | None, now: datetime) -> Grant:
        """Return this grant revoked, to be marked anew; one that was revoked before stays as it is."""
        if self.revoked_at is not None:
            raise DecisionConflictError(f"Grant {self.id} was revoked by {self.revoked_by} already.")
        return evolve(self, revoked_at=now, revoked_by=by, reason=reason, version=self.version + 1, mark=None)


def _fits(wanted: Any, name: str, arguments: Mapping[str, Any], nonce: str) -> bool:
    if wanted == ANY:
        return True
    if name not in arguments:
        return False
    value = arguments[name]
    if "digest" in wanted:
        return bool(wanted["digest"] == _digest(value, nonce))
    if "like" in wanted:
        # No way out of a directory: what a pattern means for a path is what it says, segment by segment.
        is_plain = isinstance(value, str) and ".." not in value.split("/")
        return is_plain and _matches(value, wanted["like"])
    return _is_number(value) and bool(wanted["at_least"] <= value <= wanted["at_most"])


def _is_number(value: Any) -> bool:
    """Whether this is a number that has a place on the line, and in a row."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) <= _LARGEST


def _matches(value: str, pattern: str) -> bool:
    """Compare segment by segment, so that `*` never crosses a `/`."""
    segments, wanted = value.split("/"), pattern.split("/")
    return len(segments) == len(wanted) and all(map(fnmatch.fnmatchcase, segments, wanted))


def _digest(value: Any, nonce: str) -> str:
    return hashlib.sha256(canonical({"nonce": nonce, "value": value})).hexdigest()


def make_pattern(
    arguments: Mapping[str, Any], shown: Mapping[str, Any], pattern: Mapping[str, Any] | None, *, nonce: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the pattern to keep and the one to show: the narrowest there is, but for what `pattern` widens.

    Raises UsageError where `pattern` is not understood or does not fit the arguments that were approved.
    """
    kept: dict[str, Any] = {name: {"digest": _digest(value, nonce)} for name, value in arguments.items()}
    told: dict[str, Any] = {name: {"is": shown.get(name)} for name in arguments}
    for name, wanted in (pattern or {}).items():
        kept[name] = _read(name, wanted, arguments.get(name), nonce)
        told[name] = {"is": shown.get(name)} if "digest" in kept[name] else kept[name]
        if not _fits(kept[name], name, arguments, nonce):
            raise UsageError(f"The pattern for `{name}` does not fit the arguments that are being approved.")
    return kept, told


def _read(name: str, wanted: Any, value: Any, nonce: str) -> Any:
    """Return what an argument may be, of what a person wrote; `value` is what it is now."""
    if wanted == ANY:
        return ANY
    words = set(wanted) if isinstance(wanted, Mapping) else set()
    if words == {"is"}:
        return {"digest": _digest(wanted["is"], nonce)}
    if words == {"like"}:
        if not isinstance(wanted["like"], str) or not wanted["like"]:
            raise UsageError(f"The pattern for `{name}` needs text after `like`.")
        return {"like": wanted["like"]}
    if words and words <= _BOUNDS:
        return _read_bounds(name, wanted, value)
    raise UsageError(
        f'The pattern for `{name}` is not understood; write "any", {{"is": ...}}, {{"like": ...}} or '
        '{"at_least": ..., "at_most": ...}.'
    )


def _read_bounds(name: str, wanted: Mapping[str, Any], value: Any) -> dict[str, Any]:
    """Return both ends, whatever was left out: a number that may be as low as it likes is bounded by nothing."""
    if "at_most" not in wanted:
        raise UsageError(f"The pattern for `{name}` has no upper end; write `at_most` beside `at_least`.")
    lowest = min(0, value) if _is_number(value) else 0
    bounds = {"at_least": wanted.get("at_least", lowest), "at_most": wanted["at_most"]}
    for word, bound in bounds.items():
        if not _is_number(bound):
            raise UsageError(f"The pattern for `{name}` needs a number after `{word}`.")
    return bounds
