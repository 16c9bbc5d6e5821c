"""The one thing a store writes: a state change with everything that must be true together with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum
from typing import NamedTuple

from toolgate.errors import RateLimitError
from toolgate.kernel.approval import Approval
from toolgate.kernel.brake import Brakes
from toolgate.kernel.call import Call, Status
from toolgate.kernel.delegation import Delegation
from toolgate.kernel.event import Draft
from toolgate.kernel.grant import Grant
from toolgate.kernel.holding import Move, moves_of
from toolgate.kernel.record import record
from toolgate.kernel.undo import UndoRecord, UndoState


class Durability(IntEnum):
    """How safe a change must be before `commit` returns."""

    BEHIND = 0  # accepted; written soon
    COMMITTED = 1  # survives kill -9
    FSYNCED = 2  # survives power loss


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """A use of a rate or budget: at most `limit` of `key` within any `window_s` seconds, and this takes `amount`.

    A key always comes with the same window, so a store may forget older uses of it. `excess` is what a caller is
    told when it does not fit. `is_held`: it does not age while nobody knows what became of the call.
    """

    key: str
    limit: int
    window_s: float
    amount: int = 1
    excess: str = ""
    is_held: bool = False

    def refusal(self) -> RateLimitError:
        """Return the error of a use that does not fit."""
        text = self.excess or f"Rate limit exceeded: {self.limit} in {self.window_s:g} s for {self.key}."
        return RateLimitError(text)


class Use(NamedTuple):
    """A use of a rate or budget that counts as of `at`, whatever room there is; less than nothing takes one back."""

    key: str
    at: datetime
    amount: int


HELD = datetime(9999, 1, 1, tzinfo=UTC)
"""When a use counts as made that does not age."""


@record
class Change:
    """All or nothing. `expect` is the version the row must have (None: the row must not exist).

    `undo` is written only if the stored undo record is in `undo_expect` (None: whatever it is). `undo_stored` says that
    its data is what an earlier change stored, so that a store need not write it again.
    `mode_seen` is the number of the brakes it was made under: it is refused when the stored ones have another.
    `set_mode` puts these in their place; its last event is then the `mode.changed` in `_system` that gives them theirs.
    `lasting` vouches for the events: known names, and data that is JSON which nobody else can reach or change
    before the call is read back from the store. Until then a store in this process may put off encoding them.
    `grant` is written only if the stored one has version `grant_expect` (None: there must be none of this id).
    `delegation` is written only over its version before; the first one only where there is none of this id.
    `starts` says that it lets the call's handler start for the first time.
    `untold` are names of events: it is refused where one of them tells of the call already. A row can be put back by
    whoever can write to the database, an event cannot. A store that no other process may use need not look.
    `joins` are moves of keys besides those that follow from the call.
    `rewrites` says that the call's arguments, or what its tool prepared, are others than before.
    """

    project: str
    at: datetime
    events: tuple[Draft, ...] = ()
    call: Call | None = None
    expect: int | None = None
    mode_seen: int | None = None
    durability: Durability = Durability.FSYNCED
    approvals: tuple[Approval, ...] = ()
    undo: UndoRecord | None = None
    undo_expect: UndoState | None = None
    undo_stored: bool = False
    reservations: tuple[Reservation, ...] = ()
    set_mode: Brakes | None = None
    lasting: bool = False
    grant: Grant | None = None
    grant_expect: int | None = None
    delegation: Delegation | None = None
    rewrites: bool = False
    starts: bool = False
    untold: frozenset[str] = frozenset()
    joins: tuple[Move, ...] = ()

    @property
    def moves(self) -> tuple[Move, ...]:
        """What it does to the keys that its call shares with others; a hard one that cannot be made refuses it."""
        call = self.call
        if call is None or (call.effect_key is None and call.doubt_key is None and call.ask_key is None):
            return self.joins
        return self.joins + moves_of(call, self.at, is_new=self.expect is None, starts=self.starts)

    @property
    def stands(self) -> tuple[str, int] | None:
        """The call that a repeat rests on when it starts, and the version of that which people were told of."""
        call = self.call
        if call is None or call.repeat_of is None or call.repeat_seen is None or not self.starts:
            return None
        return call.repeat_of, call.repeat_seen

    @property
    def uses(self) -> Iterator[Use]:
        """What becomes of a call's budgets when its outcome is unknown, and when somebody says what happened.

        Meanwhile they are held: a use counts as of a time that never passes instead of when the call was claimed.
        """
        call = self.call
        if call is None:
            return
        is_unknown, was_unknown = call.status is Status.UNKNOWN, call.settled_by is not None
        if not is_unknown and not was_unknown:
            return
        for key, amount, at in call.spent:
            yield Use(key, HELD, amount if is_unknown else -amount)
            if is_unknown or call.status is Status.COMPLETED:
                yield Use(key, datetime.fromtimestamp(at, UTC), -amount if is_unknown else amount)

    @property
    def is_plain(self) -> bool:
        """Whether it moves a call, maybe with keys it shares with others, tells of it, and does nothing else."""
        more = self.approvals or self.undo or self.reservations or self.set_mode or self.grant or self.delegation
        if more or self.rewrites:
            return False
        call = self.call
        return call is None or (call.repeat_of is None and not call.spent)
