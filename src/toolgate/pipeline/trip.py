"""What goes along with a call on its way from its request to its end or its question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from toolgate.kernel.approval import Approval
from toolgate.kernel.assessment import ApprovalLevel, Assessment
from toolgate.kernel.call import Call
from toolgate.kernel.output import Result
from toolgate.kernel.undo import UndoRecord
from toolgate.pipeline.flight import Taker
from toolgate.pipeline.plan import Plan


@dataclass(slots=True, eq=False)
class Trip:
    """A call on its way, and what goes along with it without being part of its row.

    `values` are its arguments, parsed, nobody else's; `kwargs` the same as its function takes them. `undo` is what is
    claimed or made durable with it. `is_ready`: its `prepare` hook ran. `approval` is the yes at hand, `is_changed`: it
    was for something else than what would run. `taker` is the caller who came to run it, where they do. `mode` is the
    number of the brakes it was judged under last, `is_fresh`: its plan was just looked up, under these. `joined` is
    the result of the call whose effect it would have had. `asks` is why a person must be asked, by what its `prepare`
    hook found.
    """

    plan: Plan
    call: Call
    values: dict[str, Any] | None = None
    undo: UndoRecord | None = None
    is_ready: bool = False
    approval: Approval | None = None
    is_changed: bool = False
    taker: Taker | None = None
    kwargs: dict[str, Any] | None = None
    mode: int = 0
    is_fresh: bool = False
    joined: Result | None = None
    asks: str | None = None

    def must_ask(self, assessment: Assessment) -> bool:
        """Whether a person must answer: the level asks, and no approval of this level and these terms is at hand."""
        approval, level = self.approval, assessment.level
        if approval is None or self.is_changed:
            is_doubted = self.call.repeat_of is not None or self.asks is not None
            return approval is not None or level is not ApprovalLevel.AUTO or is_doubted
        if level is ApprovalLevel.AUTO:
            return False
        return not approval.satisfies(assessment.level, assessment.terms)
