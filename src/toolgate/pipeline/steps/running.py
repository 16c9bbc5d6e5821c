"""The changes that start a call: claimed here, offered to somebody elsewhere, taken by them, or taken over.

The commit to EXECUTING is the claim: it consumes the approval or a use of a grant, reserves rates, and for an undo
claims the original. Nothing with effects starts before it is durable.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change, Durability, Reservation
from toolgate.kernel.context import Context
from toolgate.kernel.event import BEGUN, ENDED, Draft
from toolgate.kernel.grant import Grant
from toolgate.kernel.narration import invoked, is_plainly_told, tell
from toolgate.kernel.record import evolve
from toolgate.kernel.undo import UndoRecord, UndoState

BY_POLICY = "policy:auto"
"""Who approved a call nobody had to be asked about."""
_EXECUTING = Status.EXECUTING


def claim(
    call: Call,
    *,
    now: datetime,
    owner: str,
    mode: int,
    durability: Durability,
    undo: UndoRecord | None = None,
    reservations: tuple[Reservation, ...] = (),
    grant: Grant | None = None,
    fence: str | None = None,
    due_at: datetime | None = None,
    runner: str | None = None,
) -> Change:
    """Give one owner the right to run this call once.

    `undo` is, for an undo call, the claimed record of the original; otherwise data that `prepare` made and that must
    be durable before the effect. `mode` is the number of the brakes its rules saw. `grant` is the one it starts because
    of, with this use and its mark. `fence`, `due_at` and `runner` are for a call whose result comes from elsewhere: who
    may report it, and until when.
    """
    claimed = evolve(  # in one go: every call comes through here
        call,
        status=call.next(_EXECUTING),
        version=call.version + 1,
        owner=owner,
        attempt=call.attempt + 1,
        started_at=now,
        approved_by=call.approved_by or BY_POLICY if grant is None else grant.name,
        approved_at=call.approved_at or now,
        fence=fence,
        due_at=due_at,
        runner=runner,
    )
    if reservations:
        at = now.timestamp()
        claimed = evolve(claimed, spent=tuple((one.key, one.amount, at) for one in reservations if one.is_held))
    return Change(
        project=call.project,
        at=now,
        call=claimed,
        expect=call.version or None,
        events=(*first(call), _started(claimed), *_used(grant, claimed)),
        durability=durability,
        mode_seen=mode,
        undo=undo,
        undo_expect=UndoState.AVAILABLE if undo is not None and call.undo_of is not None else None,
        undo_stored=call.undo_of is not None,
        reservations=reservations,
        grant=grant,
        grant_expect=None if grant is None else grant.version - 1,
        lasting=grant is None and is_plainly_told(call),
        starts=True,
        untold=BEGUN if call.version else frozenset(),
        rewrites=call.version > 0 and call.status is Status.PENDING and call.preconditions is not None,
    )


def offer(call: Call, *, now: datetime, mode: int, grant: Grant | None = None) -> Change:
    """Let a call that needs nobody's answer wait for its caller to run it; a grant is used when it does."""
    waiting = evolve(
        call.to(Status.APPROVED),
        owner=None,
        approved_by=BY_POLICY if grant is None else grant.name,
        approved_at=now,
        due_at=now + timedelta(seconds=call.approved_for_s or 0.0),
    )
    return moved(waiting, call, now=now, events=first(call), mode=mode)


def pending(call: Call, *, now: datetime, owner: str) -> Change:
    """Store a new call before it is asked about or claimed, since making it ready takes time."""
    return moved(evolve(call.stay(), owner=owner), call, now=now, events=first(call))


def stillborn(
    context: Context, *, id: str, tool_name: str, definition_hash: str, policy_revision: str, now: datetime
) -> Call:
    """Return a call that never had a tool or usable arguments. The arguments are not kept."""
    return Call(
        id=id,
        project=context.project,
        tool_name=tool_name,
        context=context,
        created_at=now,
        arguments=b"null",  # not an object: no other call can be mistaken for this one
        definition_hash=definition_hash,
        policy_revision=policy_revision,
    )


def first(call: Call) -> tuple[Draft, ...]:
    """What the first change of a call tells before its own news: that it was received and its tool was found.

    An undo begins with news of its own.
    """
    is_new = not call.version and call.undo_of is None and call.definition_hash
    return (invoked(call),) if is_new else ()


def _started(call: Call) -> Draft:
    told = {"approved_by": call.approved_by, "approval_id": call.approval_id, "attempt": call.attempt}
    return tell(call, "tool.started" if call.undo_of is None else "tool.undo_started", told)


def _used(grant: Grant | None, call: Call) -> tuple[Draft, ...]:
    """Tell of a use where the grant was given, so that an earlier row of it, put back, does not give the use back."""
    if grant is None:
        return ()
    told = {"grant_id": grant.id, "tool_name": grant.tool_name, "used_by": call.id, "uses": len(grant.used)}
    return (("grant.used", grant.call_id, told, None),)


def reclaim(
    call: Call, *, now: datetime, owner: str, mode: int, fence: str | None = None, due_at: datetime | None = None
) -> Change:
    """Take a call over from whoever died running it: another attempt, same call.

    Only for what may be run again or was never sent; the version of the row decides who takes it over.
    """
    attempt = call.attempt + 1
    taken = evolve(call.stay(), owner=owner, attempt=attempt, started_at=now, fence=fence, due_at=due_at, runner=None)
    told = {"approved_by": call.approved_by, "approval_id": call.approval_id, "attempt": attempt}
    return moved(
        taken, call, now=now, events=(tell(taken, "tool.started", told),), durability=Durability.COMMITTED, mode=mode
    )


def take(call: Call, *, by: str, now: datetime, lease: timedelta, mode: int) -> Change:
    """Give a call that waits for somebody elsewhere to one of them alone, before anything is sent to them."""
    taken = evolve(call.stay(), runner=by, due_at=now + lease)
    event = tell(taken, "tool.dispatched", {"runner": by, "attempt": call.attempt})
    durability = Durability.FSYNCED if call.has_effects else Durability.COMMITTED
    taking = moved(taken, call, now=now, events=(event,), durability=durability, mode=mode)
    return evolve(taking, untold=ENDED)


def moved(
    after: Call,
    before: Call,
    *,
    now: datetime,
    events: tuple[Draft, ...] = (),
    durability: Durability = Durability.COMMITTED,
    mode: int | None = None,
) -> Change:
    """Put a row in another's place, and nothing else."""
    return Change(
        project=after.project,
        at=now,
        call=after,
        expect=before.version or None,
        events=events,
        durability=durability,
        mode_seen=mode,
    )
