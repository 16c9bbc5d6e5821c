"""The call: one request to run one tool once, its statuses and which may follow which.

The status is the program counter: there is no other resume state. The table here is the only place
that says which status may follow which.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from orjson import Fragment

from toolgate.errors import ConflictError
from toolgate.kernel.context import Context
from toolgate.kernel.payload import SUMMARY_BYTES, summarize
from toolgate.kernel.record import evolve, record


class Status(StrEnum):
    PENDING = "PENDING"
    AWAITING_APPROVAL = "AWAITING_APPROVAL"
    APPROVED = "APPROVED"
    EXECUTING = "EXECUTING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    DENIED = "DENIED"
    REJECTED = "REJECTED"
    TIMEOUT = "TIMEOUT"
    CANCELLED = "CANCELLED"
    UNKNOWN = "UNKNOWN"

    __hash__ = str.__hash__  # an enum's own hash is a Python function; this table is on every call's path

    is_final: bool
    """Nothing more happens by itself. UNKNOWN counts: only a person or `reconcile` moves it on."""


_S = Status
TRANSITIONS: dict[Status, frozenset[Status]] = {
    _S.PENDING: frozenset({_S.AWAITING_APPROVAL, _S.APPROVED, _S.EXECUTING, _S.DENIED, _S.FAILED, _S.CANCELLED}),
    _S.AWAITING_APPROVAL: frozenset({_S.APPROVED, _S.REJECTED, _S.TIMEOUT, _S.DENIED, _S.CANCELLED}),
    _S.APPROVED: frozenset({_S.EXECUTING, _S.AWAITING_APPROVAL, _S.DENIED, _S.FAILED, _S.CANCELLED, _S.TIMEOUT}),
    _S.EXECUTING: frozenset({_S.COMPLETED, _S.FAILED, _S.CANCELLED, _S.UNKNOWN}),
    _S.UNKNOWN: frozenset({_S.COMPLETED, _S.FAILED}),
    _S.COMPLETED: frozenset(),
    _S.FAILED: frozenset(),
    _S.DENIED: frozenset(),
    _S.REJECTED: frozenset(),
    _S.TIMEOUT: frozenset(),
    _S.CANCELLED: frozenset(),
}
"""Which status may follow which. PENDING -> EXECUTING is an approval by policy and its claim in one commit;
APPROVED -> TIMEOUT is the end of a call whose caller never came to run it."""

for _status, _next in TRANSITIONS.items():
    _status.is_final = not _next or _status is _S.UNKNOWN


@record
class Call:
    """One call. `arguments` are the exact canonical bytes that run; `shown` is their masked view.

    `facts` is the masked record of what the policy's inspectors found out about what the arguments point at.
    `recalled` is why whoever runs it elsewhere was asked to stop, masked. `approved_for_s` is how long it stays
    approved for its caller to run it. `first_asked` names the arguments it was made with, where a person changed them.
    `effect_key` is the identity of its effect, held for `effect_per_s` after it completed (None: for good), `ask_key`
    that of its question and `doubt_key` that of a doubt about it, where it has no effect key; `effect_from` is the call
    it took its key from, `doubt_seen` the one whose doubt was looked at, and `held_key` the key of its effect where
    another gate holds that, empty where that one knows of none. `is_named`: its id is its caller's. `distinct`: it
    joins no other. `repeat_of` is the call whose effect it repeats if it runs, and `repeat_seen` the version of that
    which people were told of. `spent` is what it used of budgets: the key, how much, and as of when.
    `settled_by` is who said what an unknown outcome was.
    `rule` and `reason` are the rule that refused it, or the word of the person who did, masked.
    """

    id: str
    project: str
    tool_name: str
    context: Context
    created_at: datetime
    arguments: bytes = b"{}"
    shown: Any = None
    hides: bool = False
    definition_hash: str = ""
    status: Status = Status.PENDING
    version: int = 0
    undo_of: str | None = None
    forced: bool = False
    has_effects: bool = True
    idempotent: bool = False
    placement: str = "inline"

    policy_revision: str = ""
    reasons: tuple[str, ...] = ()
    facts: Any = None
    risk: str = "low"
    confidence: int | None = None
    factors: tuple[str, ...] = ()
    level: str = "auto"
    approval_timeout_s: float | None = None
    message: str | None = None
    claim: str | None = None
    approval_id: str | None = None
    approved_by: str | None = None
    approved_at: datetime | None = None
    preconditions: bytes | None = None
    preview: Any = None
    approved_for_s: float | None = None
    first_asked: str | None = None
    effect_key: str | None = None
    effect_per_s: float | None = None
    effect_from: str | None = None
    ask_key: str | None = None
    doubt_key: str | None = None
    doubt_seen: str | None = None
    is_named: bool = False
    distinct: bool = False
    held_key: str | None = None
    repeat_of: str | None = None
    repeat_seen: int | None = None
    spent: tuple[tuple[str, int, float], ...] = ()

    owner: str | None = None
    attempt: int = 0
    fence: str | None = None
    runner: str | None = None
    recalled: str | None = None
    due_at: datetime | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    duration_ms: float | None = None
    result: bytes | None = None
    shown_result: Any = None
    artifacts: tuple[Any, ...] = ()
    error: str | None = None
    error_code: str | None = None
    timed_out: bool = False
    rule: str | None = None
    reason: str | None = None
    settled_by: str | None = None

    @property
    def is_final(self) -> bool:
        return self.status.is_final

    @property
    def unchecked(self) -> bool:
        """Whether it is an undo that cannot see what others changed since: nothing says how its effect was left."""
        return self.undo_of is not None and isinstance(self.shown, dict) and self.shown.get("unchecked") is True

    @property
    def quotation(self) -> Any:
        """The masked arguments as events quote them: whole when small, and then as the JSON that is at hand anyway.

        Only of a call that was just made: what a row says of itself, somebody may have written there.
        """
        size = len(self.arguments)
        if self.version or self.hides or self.undo_of is not None or size > SUMMARY_BYTES:
            return summarize(self.shown, size)
        return Fragment(self.arguments)

    @property
    def waits_for_caller(self) -> bool:
        """Whether it is approved, and its caller is to run it."""
        return self.status is Status.APPROVED and self.approved_for_s is not None

    def next(self, status: Status) -> Status:
        """Return `status` where it may follow this call's own; a step the table lacks is a ConflictError."""
        if status not in TRANSITIONS[self.status]:
            raise ConflictError(f"Call {self.id} is {self.status} and cannot become {status}.")
        return status

    def to(self, status: Status) -> Call:
        """Return the next version of this call in `status`; a step the table lacks is a ConflictError."""
        return evolve(self, status=self.next(status), version=self.version + 1)

    def stay(self) -> Call:
        """Return the next version of this call in the same status."""
        return evolve(self, version=self.version + 1)
