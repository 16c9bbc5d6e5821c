"""A vote that one person lends to another, for a while: who gave it to whom, for which tools, until when.

It makes nobody more than they are: an answer given with it is its giver's, and counts while its giver may give it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from toolgate.errors import DecisionConflictError, UsageError
from toolgate.kernel.record import evolve, record

MAX_DELEGATION_S: Final = 14 * 86400.0
"""The longest time a vote can be lent."""
MAX_DELEGATIONS: Final = 20
"""How many of one person can be live in a project."""
MAX_DELEGATED_TOOLS: Final = 100


@record
class Delegation:
    """One vote, lent. Without `tools` it is for every tool. `mark` binds all of it to a key outside the database."""

    id: str
    project: str
    giver: str
    delegate: str
    created_at: datetime
    expires_at: datetime
    tools: tuple[str, ...] = ()
    reason: str | None = None
    ended_at: datetime | None = None
    ended_by: str | None = None
    version: int = 1
    mark: str | None = None
    invalid_because: str | None = None

    @property
    def is_valid(self) -> bool:
        """Whether it counts as far as was looked: it is what was given, and both may still decide."""
        return self.invalid_because is None

    def is_live(self, now: datetime) -> bool:
        """Whether its time is not over and nobody ended it."""
        return self.ended_at is None and now < self.expires_at

    def covers(self, tool_name: str) -> bool:
        """Whether the vote was lent for calls of this tool."""
        return not self.tools or tool_name in self.tools

    def end(self, *, by: str, now: datetime) -> Delegation:
        """Return this delegation ended, to be marked anew; one that was ended before stays as it is."""
        if self.ended_at is not None:
            raise DecisionConflictError(f"Delegation {self.id} was ended by {self.ended_by} already.")
        return evolve(self, ended_at=now, ended_by=by, version=self.version + 1, mark=None)


def duration_of(seconds: float) -> timedelta:
    """Return for how long a vote is lent; there is no way to lend one for good."""
    if not 0 < seconds <= MAX_DELEGATION_S:
        days = MAX_DELEGATION_S / 86400
        raise UsageError(f"A vote is delegated for a positive number of seconds, {days:g} days at most.")
    return timedelta(seconds=seconds)
