"""Make what people see of questions, without everybody else waiting for it.

Characters that were chosen to deceive take about two microseconds each to be shown for what they are, a hundred times
what ordinary text takes. So a question goes off the event loop long before its arguments would.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Concatenate, ParamSpec, TypeVar

from toolgate.kernel.approval import Approval
from toolgate.pipeline.lane import aside, is_large

P = ParamSpec("P")
T = TypeVar("T")

LONG = 8192
"""Questions with more characters are drawn aside."""
TOGETHER = 16
"""How many are drawn before others have their turn."""


async def draw(work: Callable[Concatenate[Approval, P], T], approval: Approval, *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what `work` makes of a question and what else it is given."""
    if is_large([_written(approval), *args], LONG):
        return await aside(work, approval, *args, **kwargs)
    return work(approval, *args, **kwargs)


async def draw_all(work: Callable[[Approval], T], approvals: Sequence[Approval]) -> list[T]:
    """Return what `work` makes of each of these questions, in order."""
    drawn: list[T] = []
    for start in range(0, len(approvals), TOGETHER):
        some = approvals[start : start + TOGETHER]
        if is_large([_written(approval) for approval in some], LONG):
            drawn += await aside(lambda some=some: [work(approval) for approval in some])  # type: ignore[misc]  # bound
        else:
            drawn += [work(approval) for approval in some]
            await asyncio.sleep(0)
    return drawn


def _written(approval: Approval) -> list[object]:
    """What callers, tools and people wrote into a question."""
    said = [note.text for note in (*approval.votes, *approval.comments)]
    words = [approval.message, approval.claim, approval.reason, *approval.reasons, *approval.factors, *said]
    return [approval.arguments, approval.preview, approval.facts, words]
