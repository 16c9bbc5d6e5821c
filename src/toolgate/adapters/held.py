"""How every store refuses a change because of who holds a key, where another call stands, or what events tell."""

from __future__ import annotations

from datetime import datetime

from toolgate.errors import AlreadyToldError, EffectHeldError
from toolgate.kernel.holding import How, Move

Held = tuple[str, datetime | None]
"""Which call holds a key, and until when."""


def holder_of(held: Held | None, at: datetime) -> str | None:
    """Who holds a key at a time; a key whose time is over is nobody's."""
    if held is None or (held[1] is not None and held[1] <= at):
        return None
    return held[0]


def check_move(move: Move, held: Held | None, at: datetime) -> None:
    """Raise EffectHeldError where a key that must be held as expected is not."""
    if move.how is How.HARD and (holder := holder_of(held, at)) != move.expect:
        raise EffectHeldError("The effect key is held by another call.", holder=holder, key=move.key)


def check_stands(stands: tuple[str, int], version: int | None) -> None:
    """Raise EffectHeldError where the call that a change rests on is another than when people were told of it."""
    call_id, expected = stands
    if version != expected:
        raise EffectHeldError(f"Call {call_id} was changed by somebody else.", holder=call_id)


def already_told(call_id: str) -> AlreadyToldError:
    """What refuses a change that its call's events rule out."""
    return AlreadyToldError(f"The events of call {call_id[:64]} tell what its row says has not happened.")
