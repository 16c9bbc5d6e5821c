"""One pure function for each thing that may happen to a call: from the row that stands to the change that is committed.

The only place where a call gets another status; `kernel/call.py` says which may follow which.
"""

from toolgate.pipeline.steps.asking import (
    ask,
    close,
    comment,
    decide,
    edit,
    escalate,
    expire,
    extend,
    question,
    respond,
    timeout_s,
    unclaimed,
    warn,
)
from toolgate.pipeline.steps.ending import adopt, complete, fail, late, progress, settle, still_unknown, undo_record
from toolgate.pipeline.steps.running import BY_POLICY, claim, moved, offer, pending, reclaim, stillborn, take

__all__ = [
    "BY_POLICY",
    "adopt",
    "ask",
    "claim",
    "close",
    "comment",
    "complete",
    "decide",
    "edit",
    "escalate",
    "expire",
    "extend",
    "fail",
    "late",
    "moved",
    "offer",
    "pending",
    "progress",
    "question",
    "reclaim",
    "respond",
    "settle",
    "still_unknown",
    "stillborn",
    "take",
    "timeout_s",
    "unclaimed",
    "undo_record",
    "warn",
]
