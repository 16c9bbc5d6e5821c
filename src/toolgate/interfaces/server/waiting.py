"""The questions that wait, the riskiest first: HIGH before the rest, then what expires first.

They are read page by page and only the first so many are kept, so that thousands neither hide one nor fill the memory.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import chain

from toolgate.gate import Gate
from toolgate.interfaces.server.paging import first_size, next_size
from toolgate.kernel.approval import Approval, ApprovalStatus
from toolgate.pipeline.lane import is_large
from toolgate.ports.store import ApprovalQuery

MOST = 1000
"""How many are told at once."""
PAGE = 1000
_RANKS = {"high": 0, "medium": 1, "low": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Some of the questions that wait, in order."""

    approvals: list[Approval]
    total: int
    """How many wait in all."""
    next: Approval | None
    """The last of these, where more come after it."""

    @property
    def oldest_first(self) -> list[Approval]:
        return sorted(self.approvals, key=lambda one: (one.created_at, one.id))


def urgency(approval: Approval) -> tuple[int, datetime, str]:
    """Where a question stands among those that wait."""
    return _RANKS.get(approval.risk, 0), approval.expires_at, approval.id


def listed(approvals: Iterable[Approval]) -> list[Approval]:
    """Put all questions in an order that more time for one does not change: by risk, then the oldest first."""
    return sorted(approvals, key=lambda one: (_RANKS.get(one.risk, 0), one.created_at, one.id))


async def riskiest(gate: Gate, *, project: str, after: Approval | None = None, limit: int | None = None) -> Waiting:
    """Return the first `limit` questions that wait, after that one, and how many wait in all."""
    most = MOST if limit is None else limit
    floor = None if after is None else urgency(after)
    best: list[Approval] = []
    total = beyond = 0
    last: Approval | None = None
    size = first_size(PAGE)
    while True:
        query = ApprovalQuery(project=project, status=ApprovalStatus.PENDING, after=last, limit=size)
        page = await gate.approvals.list(query)
        fitting = page if floor is None else [one for one in page if urgency(one) > floor]
        total, beyond = total + len(page), beyond + len(fitting)
        best = heapq.nsmallest(most, chain(best, fitting), key=urgency)
        if len(page) < size:
            return Waiting(approvals=best, total=total, next=best[-1] if best and beyond > len(best) else None)
        last = page[-1]
        size = next_size(size, PAGE, were_large=any(is_large([one.arguments, one.preview, one.facts]) for one in page))
        await asyncio.sleep(0)
