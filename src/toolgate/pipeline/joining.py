"""What becomes of a call that is, or may be, another one over again: it joins that one, repeats it, or conflicts.

Who holds a key, the store says; here it is only read what that means for whoever comes second.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Any, Final

from toolgate.authority import is_same_maker
from toolgate.errors import ConflictError, EffectHeldError, NotFoundError, ToolInputError
from toolgate.kernel.assessment import Assessment
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change, Durability
from toolgate.kernel.effect import EffectKey
from toolgate.kernel.holding import JOINED_FOR, WITHOUT_EFFECT, Move, has_effect, id_key, is_answerable, is_same_step
from toolgate.kernel.narration import tell
from toolgate.kernel.output import Result, result_of
from toolgate.kernel.record import evolve
from toolgate.kernel.undo import UndoState
from toolgate.pipeline.driver import Driver
from toolgate.pipeline.outcome import decode

_SAYS_NOTHING: Final = "The effect of this call is held by another call of the project; nothing ran."


def is_joined(call: Call, standing: Call) -> bool:
    """Whether a call and one that stands are one and the same, made by one and the same.

    Nobody else hears of it, not even that everything but they themselves would fit.
    """
    is_same = standing.arguments == call.arguments or standing.first_asked == name_of(call, standing.id)
    return is_same and is_same_maker(standing.context, call.context) and standing.tool_name == call.tool_name


def name_of(call: Call, id: str | None = None) -> str:
    """Return a name for a call's arguments that tells nothing of them to who does not know them.

    It is bound to the call's id, or to that of the call it is compared with.
    """
    return sha256((id or call.id).encode() + b"\0" + call.arguments).hexdigest()


async def meet(driver: Driver, call: Call, held: EffectHeldError) -> Result | Call:
    """Return the result a call joins, or the call as it goes on; raise EffectHeldError where it may do neither."""
    holder, key = held.holder, held.key
    first = None if holder is None else await driver.store.call(call.project, holder)
    if key == id_key(call.id):
        return await _under_this_id(driver, call, first)
    if key == call.doubt_key:
        return await _doubting(driver, call, holder, first)
    if key == call.ask_key:
        return await _asked_before(driver, call, holder, first)
    if key is not None and key == call.effect_key:
        return await _with_this_effect(driver, call, holder, first)
    return call  # what it repeats was changed meanwhile, and people are told of that


async def _under_this_id(driver: Driver, call: Call, first: Call | None) -> Result | Call:
    """A call came under this id before, and joined another one: it joins that again."""
    if first is None or not is_joined(call, first):
        raise ConflictError(
            f"Call id {call.id[:64]} is taken by another call of project '{call.project}'; use a new id."
        )
    return _joined(first)


async def _doubting(driver: Driver, call: Call, holder: str | None, first: Call | None) -> Call:
    """The same call, or what that repeated, has an outcome nobody knows: this one repeats it, and a person is asked.

    So it does where people were told of a doubt, and the same call came after that and had its effect.
    """
    doubted = first
    while doubted is not None and doubted.status is not Status.UNKNOWN:
        before = doubted.doubt_seen
        doubted = None if before is None else await driver.store.call(call.project, before)
    came_after = call.doubt_seen is not None and first is not None and first.status not in WITHOUT_EFFECT
    return evolve(call, doubt_seen=holder, repeat_of=holder if doubted or came_after else call.repeat_of)


async def _asked_before(driver: Driver, call: Call, holder: str | None, first: Call | None) -> Result | Call:
    """The same call of the same run waits for its answer, or was answered with a no just now."""
    if first is None or not is_answerable(first):
        return evolve(call, effect_from=holder)
    if is_same_step(first.context, call.context) or not is_joined(call, first):
        return evolve(call, ask_key=None)
    return await _join(driver, call, first)


async def _with_this_effect(driver: Driver, call: Call, holder: str | None, first: Call | None) -> Result | Call:
    if holder is None or call.repeat_of == holder:
        return evolve(call, effect_from=holder)
    if first is None:  # it was pruned, so nobody can say more of it than that
        return evolve(call, effect_from=holder, repeat_of=holder, doubt_seen=holder)
    if not has_effect(first, driver.now()) or await _is_undone(driver, first):
        return evolve(call, effect_from=holder)
    if await _is_inside(driver, call, first):
        raise EffectHeldError(
            f"Call {first.id} (`{first.tool_name}`) would wait for itself: this call, which has its effect key, was "
            "made from inside it; nothing ran.",
            holder=first.id,
        )
    if not is_same_maker(first.context, call.context):
        raise EffectHeldError(_SAYS_NOTHING)
    is_on_purpose = call.repeat_of is not None and call.doubt_seen is None  # rather than for an effect met in doubt
    is_pruned, is_same = first.shown is None, is_joined(call, first)
    if call.distinct or is_on_purpose or is_pruned or not is_same:
        differs = (
            ", and its arguments are not kept any more" if is_pruned else "" if is_same else ", with other arguments"
        )
        raise EffectHeldError(
            f"Call {first.id} (`{first.tool_name}`, {first.status}) has the effect key of this call{differs}; nothing "
            "ran. Look at that call; to have its effect again on purpose, name it as `repeat_of`.",
            holder=first.id,
        )
    if first.status is Status.UNKNOWN:
        return evolve(call, repeat_of=holder, effect_from=holder, doubt_seen=holder)
    return await _join(driver, call, first)


async def _is_inside(driver: Driver, call: Call, first: Call) -> bool:
    """Whether a call was made, maybe through others, by the handler of one that has not ended."""
    if first.is_final:
        return False
    above = call.context.parent_call_id
    while above is not None and above != first.id:
        made = await driver.store.call(call.project, above)
        above = None if made is None else made.context.parent_call_id
    return above is not None


async def _is_undone(driver: Driver, first: Call) -> bool:
    """Whether a call's effect was taken back while a repeat had its key, which came back to it after that."""
    undo = await driver.store.undo(first.project, first.id) if first.status is Status.COMPLETED else None
    return undo is not None and undo.state is UndoState.DONE


async def _join(driver: Driver, call: Call, first: Call) -> Result:
    """Return where the first call stands; an id that a call came under stands for the first one from now on."""
    if call.is_named:
        now = driver.now()
        told = tell(first, "tool.joined", {"joined_as": call.id, "step_id": call.context.step_id})
        move = Move(id_key(call.id), None, first.id, now + JOINED_FOR)
        change = Change(project=call.project, at=now, events=(told,), joins=(move,), durability=Durability.COMMITTED)
        with suppress(EffectHeldError):  # the same request came twice at once, and the other one was told of
            await driver.commit(change)
    return _joined(await driver.read(first.project, first.id))


def _joined(first: Call) -> Result:
    return evolve(result_of(first, data=decode(first.result)), joined=True)


async def check_repeat(driver: Driver, call: Call) -> None:
    """Refuse a repeat on purpose of what is not the caller's own, not finished, or has another effect."""
    first = await driver.store.call(call.project, call.repeat_of or "")
    if first is None or not is_same_maker(first.context, call.context):
        raise NotFoundError(f"There is no call {str(call.repeat_of)[:64]} of yours to repeat in '{call.project}'.")
    if first.tool_name != call.tool_name or first.effect_key != call.effect_key:
        raise ConflictError(
            f"Call {first.id} has another effect: a repeat is of the same tool and the same effect key."
        )
    if not first.is_final:
        raise ConflictError(f"Call {first.id} is {first.status}; only what has ended can be repeated.")


def check_same_effect(effect: EffectKey | None, call: Call, values: Mapping[str, Any], shown: Any) -> None:
    """Refuse arguments a person gave a parked call, where they would give it another effect than the one it holds."""
    if call.effect_key is None or effect is None or effect.of(values, shown, call.tool_name) == call.effect_key:
        return
    names = ", ".join(f"'{name}'" for name in effect.names)
    raise ToolInputError(
        f"An edit may not change what the effect of a call is ({names}); reject it and make another call.",
        tool=call.tool_name,
    )


def check_effect_now(effect: EffectKey, call: Call) -> None:
    """Refuse a call that was made under other rules than those of now, by which its effect would have another key."""
    if call.undo_of is not None or call.held_key is not None:
        return
    if effect.of(decode(call.arguments), call.shown, call.tool_name) != call.effect_key:
        raise ToolInputError(
            f"The effect key of `{call.tool_name}` is another than when this call was made; nothing ran. Make the call "
            "again.",
            tool=call.tool_name,
        )


async def retold(driver: Driver, call: Call, assessment: Assessment) -> tuple[Call, Assessment]:
    """Return a repeat and its assessment with the story of what it repeats, for whoever is asked about it.

    Whoever makes a call sees its card, so what another caller's call said is not told on it.
    """
    first = await driver.store.call(call.project, call.repeat_of or "")
    if first is None:
        story = f"It repeats call {call.repeat_of}, which had this effect and is not kept any more."
    else:
        is_theirs = is_same_maker(first.context, call.context)
        whose = "" if is_theirs else " of another caller"
        ended = "" if first.completed_at is None else f" at {first.completed_at.isoformat(timespec='seconds')}"
        why = f": {first.error}" if first.error and is_theirs else "."
        stands = "ended" if first.is_final else "is"
        story = f"It repeats call {first.id}{whose}, which {stands} {first.status}{ended}{why}"
    told = assessment._replace(reasons=(*assessment.reasons, story))
    return evolve(call, repeat_seen=None if first is None else first.version), told


async def is_outdated(driver: Driver, call: Call, repeated: str) -> bool:
    """Whether what a call repeats is not any more what people were told of it."""
    first = await driver.store.call(call.project, repeated)
    return (None if first is None else first.version) != call.repeat_seen
