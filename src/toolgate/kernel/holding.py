"""Who holds what a call may have to share with others: the key of its effect, its question, its doubt, its id.

One call of a project holds a key at a time. Nobody else decides who takes, keeps, frees or gives one back; stores
compare and set what `moves_of` says, in the transaction of the change.

A call with an effect key holds that from its birth. One without may hold two others, which are nobody's but ours:

    ask    the same call of the same caller in the same run, while its question is open or its yes unclaimed, and for
           a while after a no
    doubt  the same call by whomever, after its outcome was unknown, until somebody says what happened; the last repeat
           of it that started has the key
    id     an id under which a call came that joined another one, so that the same id joins it again
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import Enum, auto
from hashlib import sha256
from typing import NamedTuple

from toolgate.kernel.call import Call, Status
from toolgate.kernel.context import Context
from toolgate.kernel.effect import UNDO

NO_LASTS = timedelta(minutes=5)
"""How long the same repeat of a call gets the same no."""
JOINED_FOR = timedelta(days=30)
"""How long an id under which a call joined another one stands for that one."""
WITHOUT_EFFECT = frozenset({Status.DENIED, Status.REJECTED, Status.TIMEOUT, Status.CANCELLED, Status.FAILED})
"""The ends of calls whose effect did not happen."""
_COMPLETED = Status.COMPLETED  # bound once: an enum's attributes are slow to look up
_BEFORE = frozenset({Status.PENDING, Status.AWAITING_APPROVAL, Status.APPROVED})


class How(Enum):
    """When a key is moved: a change is refused unless it is held as expected, or the key is left alone then, or moved
    whoever holds it."""

    HARD = auto()
    SOFT = auto()
    ALWAYS = auto()


class Move(NamedTuple):
    """Who holds a key from now on: `holder`, until a time where there is one, in place of `expect`.

    None as a holder means nobody, which is also who holds a key whose time is over. A hard move to who holds it already
    only looks.
    """

    key: str
    expect: str | None
    holder: str | None
    until: datetime | None = None
    how: How = How.HARD

    @property
    def only_looks(self) -> bool:
        return self.how is How.HARD and self.expect == self.holder


_HARD = How.HARD
_move = tuple.__new__  # what a named tuple's own constructor does, without its Python frame


def ask_key(tool: str, arguments: bytes, made: Context) -> str:
    """The key of a call's question: the same tool and arguments, of one caller, for one and the same, in one run."""
    whose = f"{made.principal}\0{made.user or ''}\0{made.run_id or ''}\0{tool}\0"  # no name has a \0
    return "*ask:" + sha256(whose.encode() + arguments).hexdigest()


def doubt_key(tool: str, arguments: bytes) -> str:
    """The key of a doubt about a call: the same tool and arguments, whoever comes with them."""
    return "*doubt:" + sha256(f"{tool}\0".encode() + arguments).hexdigest()


def id_key(call_id: str) -> str:
    """The key of an id under which a call joined another one."""
    return f"*id:{call_id}"


def is_same_step(first: Context, later: Context) -> bool:
    """Whether two calls are of one and the same step, as far as both name theirs: then they are two on purpose."""
    return first.step_id is not None and first.step_id == later.step_id


def moves_of(call: Call, at: datetime, *, is_new: bool, starts: bool) -> tuple[Move, ...]:
    """Return what the change that leaves a call like this does to the keys it has to do with.

    `starts`: it lets the handler start, for the first time.
    """
    key, status = call.effect_key, call.status
    if is_new:
        if status in WITHOUT_EFFECT:
            return ()
        joined = (Move(id_key(call.id), None, None),) if call.is_named else ()
    else:
        if status is _COMPLETED and not (call.settled_by or call.effect_per_s or call.undo_of):
            return ()  # most calls end so, and keep what they have
        joined = ()
    if key is not None:
        return joined + _of_effect(call, key, at, is_new=is_new)
    asked = () if call.ask_key is None else _of_question(call, call.ask_key, at, is_new=is_new, starts=starts)
    doubted = () if call.doubt_key is None else _of_doubt(call, call.doubt_key, is_new=is_new, starts=starts)
    return joined + asked + doubted


def _of_effect(call: Call, key: str, at: datetime, *, is_new: bool) -> tuple[Move, ...]:
    status, is_undo = call.status, call.undo_of is not None
    before = None if is_undo else call.effect_from
    if is_new:
        return (_move(Move, (key, before, call.id, None, _HARD)),)
    if status in WITHOUT_EFFECT:
        return (Move(key, call.id, before, how=How.SOFT),)
    if status is not Status.COMPLETED:
        return ()
    if is_undo:
        undone = Move(key.removeprefix(UNDO), call.undo_of, call.effect_from, how=How.SOFT)
        return Move(key, call.id, None, how=How.SOFT), undone
    if call.effect_per_s is None:
        return ()
    return (Move(key, call.id, call.id, at + timedelta(seconds=call.effect_per_s), how=How.SOFT),)


def _of_question(call: Call, key: str, at: datetime, *, is_new: bool, starts: bool) -> tuple[Move, ...]:
    if is_new:
        return (Move(key, call.effect_from, call.effect_from if starts else call.id),)
    if call.status is Status.REJECTED:
        return (Move(key, call.id, call.id, at + NO_LASTS, how=How.SOFT),)
    if starts or (call.status in WITHOUT_EFFECT and call.started_at is None):
        return (Move(key, call.id, None, how=How.SOFT),)
    return ()


def _of_doubt(call: Call, key: str, *, is_new: bool, starts: bool) -> tuple[Move, ...]:
    """A repeat of what is in doubt takes the key when it starts, so that who is asked about another one hears of it."""
    seen, status = call.doubt_seen, call.status
    if starts:
        return (Move(key, seen, None if seen is None or call.repeat_of is None else call.id),)
    if is_new:
        return (Move(key, seen, seen),)
    if status is Status.UNKNOWN:
        return (Move(key, None, call.id, how=How.ALWAYS),)
    is_over = call.settled_by is not None if seen is None else status in WITHOUT_EFFECT
    return (Move(key, call.id, seen, how=How.SOFT),) if is_over else ()


def is_answerable(call: Call) -> bool:
    """Whether a call that is named as the holder of a question has its answer yet to come, or has just got a no."""
    return call.status in _BEFORE or call.status is Status.REJECTED


def has_effect(call: Call, at: datetime) -> bool:
    """Whether a call that is named as the holder of an effect key has a claim to it."""
    if call.status is Status.COMPLETED and call.effect_per_s is not None and call.completed_at is not None:
        return call.completed_at + timedelta(seconds=call.effect_per_s) > at
    return call.status not in WITHOUT_EFFECT
