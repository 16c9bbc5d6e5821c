"""Every call's way through the gate. Read `run` and `advance` first: they are what runs.

    run      resolve, validate, and a call is born
    advance  judge; deny, or prepare; ask, unless a grant covers it; leave it to its caller, or claim; fly; record

New calls enter at `run`; approved ones, undos and edited ones at `advance`. What can be known before there are any
arguments is in the `Plan`; what may be written, in `steps`; how a handler is flown, in `flight`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from toolgate.errors import (
    AlreadyToldError,
    ConflictError,
    EffectHeldError,
    GrantChangedError,
    ModeChangedError,
    RateLimitError,
    ToolDeniedError,
    ToolError,
    ToolInputError,
    ToolNotFoundError,
)
from toolgate.kernel.approval import Approval
from toolgate.kernel.assessment import ApprovalLevel, Assessment
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change
from toolgate.kernel.context import Context
from toolgate.kernel.effect import EffectKey
from toolgate.kernel.event import BEGUN
from toolgate.kernel.grant import Grant
from toolgate.kernel.holding import doubt_key
from toolgate.kernel.output import Result, result_of
from toolgate.kernel.payload import LARGE
from toolgate.kernel.policy import NOTHING
from toolgate.kernel.record import evolve
from toolgate.kernel.ruling import Ruling
from toolgate.kernel.terms import ApprovalTerms
from toolgate.kernel.tool import ToolDefinition
from toolgate.kernel.undo import UndoRecord
from toolgate.pipeline import joining, steps
from toolgate.pipeline.driver import Driver
from toolgate.pipeline.evidence import (
    ALREADY_STARTED,
    is_marked,
    is_told,
    lapse_of_giver,
    lapse_told,
    refusal_of,
)
from toolgate.pipeline.flight import NO_TAKER, Flights, Taker
from toolgate.pipeline.lane import aside, is_large
from toolgate.pipeline.outcome import decode
from toolgate.pipeline.plan import NO_OPTIONS, REMOTE, Options, Plan, assessed
from toolgate.pipeline.ready import not_undone, prepare, prepare_new, refresh
from toolgate.pipeline.trip import Trip
from toolgate.pipeline.validate import Checked, revalidate
from toolgate.ports.store import ApprovalQuery, GrantQuery


class Revised(NamedTuple):
    """A call with the arguments a person gave it, and how it must be asked about."""

    call: Call
    tool: ToolDefinition
    terms: ApprovalTerms
    timeout_s: float
    can_undo: bool = True


class Pipeline:
    """Takes calls from their request to where they wait or end."""

    def __init__(self, driver: Driver, flights: Flights) -> None:
        self._driver, self._flights = driver, flights

    async def run(
        self,
        name: str,
        raw: str | bytes | Mapping[str, object],
        context: Context,
        *,
        call_id: str | None = None,
        options: Options = NO_OPTIONS,
        taker: Taker | None = None,
    ) -> Result:
        """Take a new call as far as it goes without a person: to its end, or to its question.

        One placed at its caller runs at once for a `taker`, where nobody has to be asked.
        """
        driver = self._driver
        if driver.refresh is not None:
            await driver.refresh()
        plan, mode = None, driver.store.brakes.serial
        try:
            plan, is_long = driver.plan(name, context), is_large(raw)
            arguments, shown = self._read(plan, raw) if not is_long else await aside(self._read, plan, raw)
            id, now = call_id or driver.new_id(), driver.now()
            call = plan.born(arguments, shown, context, id=id, now=now, options=options, is_named=call_id is not None)
        except (ToolNotFoundError, ToolInputError) as error:
            stillborn = steps.stillborn(
                context,
                id=call_id or driver.new_id(),
                tool_name=driver.masker.text(str(name)[:128]) if plan is None else plan.tool.name,
                definition_hash="" if plan is None else plan.tool.hash,
                policy_revision=driver.policy_of(context.project).revision,
                now=driver.now(),
            )
            return await self._fail(stillborn, error.code, str(error))
        if call.repeat_of is not None:
            await joining.check_repeat(driver, call)
        trip = Trip(plan, call, arguments.value, mode=mode, is_fresh=not is_long and call.repeat_of is None)
        trip.is_ready, trip.kwargs = plan.tool.prepare is None, arguments.kwargs
        trip.taker = taker if call.approved_for_s is not None else None
        return await self.advance(trip)

    def _read(self, plan: Plan, raw: str | bytes | Mapping[str, object]) -> tuple[Checked, Any]:
        """Return the arguments of a call, checked, and their masked view; raise ToolInputError."""
        arguments = plan.validate(raw, self._driver.limits)
        value, canonical, kwargs = arguments
        return arguments, self._driver.masker.of(value, canonical, is_ours=kwargs is not value)

    async def advance(self, trip: Trip) -> Result:
        """Take a call on from where it stands: to its end, its question, or whoever runs it elsewhere.

        Rules are judged under the policy and brakes of now, and the commit that follows names the brakes: where either,
        or a grant, was changed meanwhile, the call is judged again.
        """
        driver = self._driver
        while True:
            now, is_known = driver.now(), trip.is_fresh or self._look_again(trip)
            plan, trip.is_fresh = trip.plan, False
            values = await self._values(trip) if plan.reads else NOTHING
            judging = (trip.call, values, now)
            is_quick = not plan.inspects and len(trip.call.arguments) <= LARGE and trip.call.undo_of is None
            trip.call, ruling = plan.judge(*judging) if is_quick else await plan.judge_aside(*judging)
            if ruling.assessment is None:
                return await self._deny(trip.call, ruling)
            try:
                self._check_can_run(trip.call, None if is_known else plan.effect)
                is_quick = is_quick and trip.is_ready
                if not trip.is_ready:
                    await self._prepare(trip)
                must_ask = trip.must_ask(ruling.assessment)
                may_cover = must_ask and trip.asks is None
                grant = await self._covering(trip.call, ruling.assessment, now) if may_cover else None
                if (must_ask or not is_quick) and driver.current(plan, trip.call.context) is not plan:
                    continue  # the policy or the mode was changed while this waited
                if must_ask and grant is None:
                    return await self._ask(trip, ruling.assessment)
                if trip.call.approved_for_s is not None and trip.taker is None:
                    return await self._park(steps.offer(trip.call, now=now, mode=trip.mode, grant=grant))
                claim = self._claim(trip, values, grant, now)
                return await self._flights.fly(claim, plan, trip.undo, trip.kwargs, taker=trip.taker)
            except (ModeChangedError, GrantChangedError):
                continue
            except (ToolError, ConflictError) as error:
                if not await self._meets(trip, error):
                    return trip.joined or await self._refuse(trip.call, error)

    def _look_again(self, trip: Trip) -> bool:
        """Give a call the plan and the brakes of now; True where it is new, and its plan the same."""
        before, trip.mode = trip.plan, self._driver.store.brakes.serial
        trip.plan = self._driver.current(before, trip.call.context)
        return trip.plan is before and not trip.call.version

    async def _meets(self, trip: Trip, error: ToolError | ConflictError) -> bool:
        """Whether a call goes on although another one holds what it would take; the result it joins is put aside."""
        if not isinstance(error, EffectHeldError) or trip.call.undo_of is not None:
            return False
        try:
            met = await joining.meet(self._driver, trip.call, error)
        except EffectHeldError as held:
            await self._end(trip.call, Status.DENIED, held.code, str(held), reason=held.code)
            raise
        if isinstance(met, Result):
            trip.joined = met
            return False
        if trip.approval is not None and (met.repeat_of != trip.call.repeat_of or error.key is None):
            trip.is_changed = True  # whoever said yes was not told of it
        trip.call = met
        return True

    async def undo(self, call: Call, tool: ToolDefinition, undo: UndoRecord) -> Result:
        """Take an undo call, whose `undo` record is to be claimed with it, the same way."""
        plan = self._driver.plan_of(tool, call.context)
        return await self.advance(Trip(plan, call, undo=undo, is_ready=True))

    async def resume(self, call: Call, taker: Taker | None = None) -> Result:
        """Run an approved call, if everything the approval covered still holds; otherwise ask again or refuse.

        One that waits for its caller runs only for a `taker`.
        """
        driver = self._driver
        if driver.refresh is not None:
            await driver.refresh()
        tool = driver.realm(call.project).registry.find(call.tool_name)
        if tool is None or (call.waits_for_caller and taker is None):
            return result_of(call)  # another process holds the tool, or its caller will come
        approval = None if call.approval_id is None else await self._approval_of(call)
        is_ours = call.approval_id is None and call.waits_for_caller  # nobody was asked, and the rules are asked again
        if not is_ours and (refusal := await refusal_of(driver.store, call, approval)) is not None:
            return await self._end(call, Status.DENIED, *refusal)
        trip = Trip(driver.plan_of(tool, call.context), call, approval=approval, taker=taker)
        try:
            if call.undo_of is None:  # an undo has no arguments of its own
                is_long, stored = len(call.arguments) > LARGE, (tool, call.arguments)
                checked = await aside(revalidate, *stored) if is_long else revalidate(*stored)
                trip.values, trip.kwargs = checked.value, checked.kwargs
                if call.first_asked is not None:  # whoever edited it may not have had the tool
                    joining.check_same_effect(trip.plan.effect, call, checked.value, call.shown)
        except ToolInputError as error:
            return await self._refuse(call, error)
        return await self.advance(trip)

    async def take(self, project: str, call_id: str, taker: Taker) -> Result:
        """Let the caller of an approved call run it; returns how it ended, or where it stands instead."""
        driver = self._driver
        call = await driver.read(project, call_id)
        if not call.waits_for_caller:
            return result_of(call, data=decode(call.result))
        if call.due_at is not None and call.due_at <= driver.now():
            return await self._unclaimed(call)  # nobody was there to end it when its time was over
        if call.tool_name not in driver.realm(project).registry:
            raise ConflictError(
                f"Call {call_id[:64]} needs the tool `{call.tool_name}`, which this gate does not have; it still "
                "waits. Register the tool, or run the call through a gate that has it."
            )
        return await self.resume(call, taker)

    async def restart(self, call: Call) -> Result:
        """Take up a call that was stored and neither asked about nor claimed: nothing of what led there has effects."""
        driver = self._driver
        if driver.refresh is not None:
            await driver.refresh()
        tool = driver.realm(call.project).registry.find(call.tool_name)
        if tool is None or tool.hash != call.definition_hash:
            why = f"`{call.tool_name}` is not the tool it was made for any more; nothing ran. Make the call again."
            return await self._fail(call, "prepare_failed", why)
        if await is_told(driver.store, call, BEGUN):
            return await self._end(call, Status.DENIED, *ALREADY_STARTED)
        return await self.advance(Trip(driver.plan_of(tool, call.context), call))

    def _check_can_run(self, call: Call, effect: EffectKey | None) -> None:
        """Raise where nothing here runs a call, or it was made when its effect had another key than `effect` makes."""
        if effect is not None:
            joining.check_effect_now(effect, call)
        if call.placement not in self._driver.runners and call.approved_for_s is None:
            missing = ToolError(
                f"Tool `{call.tool_name}` must run in placement '{call.placement}', and this gate has no such runner; "
                "nothing ran. Configure the runner or change the tool's placement.",
                tool=call.tool_name,
            )
            missing.code = "no_runner"
            raise missing

    async def _values(self, trip: Trip) -> Mapping[str, Any]:
        """The arguments rules look at; those of an undo are the ones of the call it undoes."""
        call = trip.call
        if call.undo_of is not None:
            original: Mapping[str, Any] = decode((await self._driver.read(call.project, call.undo_of)).arguments)
            return original
        values = trip.values
        # A rule may change what it is given: what runs and what is shown share nothing with it.
        if values is None or values is call.shown:
            values = decode(call.arguments)
        elif trip.kwargs is values:
            trip.kwargs = None
        trip.values = values
        return values

    async def _prepare(self, trip: Trip) -> None:
        """Make a call ready to be asked about or run; notice where that is not what was approved any more."""
        driver, before, tool = self._driver, trip.call, trip.plan.tool
        if before.version == 0:
            go_on = partial(self._go_on, before.project, before.id)
            values = None if trip.plan.reads else trip.values  # a rule may have changed what it was given
            made = await prepare_new(driver, before, tool, driver.now(), go_on, values)
            trip.call, trip.undo, trip.asks = made.call, made.undo, made.asks
            if made.error is not None:
                raise made.error
        else:
            trip.call, trip.undo, trip.asks = await refresh(driver, before, tool)
            is_same = before.definition_hash == trip.call.definition_hash
            is_same = is_same and before.preconditions == trip.call.preconditions
            is_told = before.repeat_of is None or not await joining.is_outdated(driver, before, before.repeat_of)
            trip.is_changed = not is_same or not is_told
        trip.is_ready = True

    async def _go_on(self, project: str, call_id: str) -> None:
        call = await self._driver.store.call(project, call_id)
        if call is not None and call.status is Status.PENDING:
            await self.restart(call)

    def _claim(self, trip: Trip, values: Mapping[str, Any], grant: Grant | None, now: datetime) -> Change:
        """The change that claims a call; one that runs elsewhere gets a fence and a time by which it is due."""
        driver, plan, call = self._driver, trip.plan, trip.call
        is_remote, taker = call.placement in REMOTE, trip.taker or NO_TAKER
        return steps.claim(
            call,
            now=now,
            owner=driver.owner,
            mode=trip.mode,
            durability=plan.durability,
            undo=trip.undo,
            reservations=plan.reservations(call, values),
            grant=None if grant is None else driver.store.marks.put(grant.use(call.id, now)),
            fence=driver.new_id() if is_remote else taker.fence,
            due_at=now + timedelta(seconds=plan.offer_s) if is_remote or taker.fence else None,
            runner=taker.by,
        )

    async def _park(self, change: Change) -> Result:
        await self._driver.commit(change)
        assert change.call is not None
        return result_of(change.call)

    async def _unclaimed(self, call: Call) -> Result:
        try:
            return await self._park(steps.unclaimed(call, now=self._driver.now()))
        except ConflictError:
            return await self._standing(call)

    async def _covering(self, call: Call, assessment: Assessment, now: datetime) -> Grant | None:
        """A remembered yes for a new call, if somebody gave one that covers it, and may still give it."""
        if call.approval_id is not None or call.undo_of is not None or call.repeat_of is not None:
            return None
        driver = self._driver
        found = await driver.store.grants(GrantQuery(project=call.project, tool_name=call.tool_name, live_at=now))
        arguments = decode(call.arguments) if found else NOTHING
        for grant in found:
            # In this order: only what carries its mark is sure to be made as a grant is.
            if not grant.is_live(now) or not grant.is_for(call) or not await is_marked(driver.store, grant):
                continue
            if not grant.covers(call, arguments, assessment.level, assessment.terms):
                continue
            if await lapse_of_giver(driver, grant) is None and await lapse_told(driver.store, grant) is None:
                return grant
        return None

    async def _ask(self, trip: Trip, assessment: Assessment) -> Result:
        driver, plan, call = self._driver, trip.plan, trip.call
        tool, masker = plan.tool, driver.masker_of(call)
        if call.repeat_of is not None:
            call, assessment = await joining.retold(driver, call, assessment)
        assessment = _told_why(assessment, trip.asks)
        level = max(assessment.level, ApprovalLevel(call.level), ApprovalLevel.QUICK, key=_rank)
        message = call.message or tool.approval_message
        asking = evolve(
            assessed(call, assessment._replace(level=level), plan.masker.repeated),
            message=None if message is None else masker.text(message),
            claim=None if call.claim is None else masker.text(call.claim),
        )
        id = driver.new_id()
        ask = partial(
            steps.ask,
            asking,
            tool,
            id=id,
            nonce=id,  # no two questions have the same, and thousands may wait
            now=driver.now(),
            mode=trip.mode,
            marks=driver.store.marks,
            timeout=steps.timeout_s(call, tool, plan.stance, level, assessment.terms),
            terms=assessment.terms,
            undo_ttl_s=driver.undo_ttl(tool, call.context),
            owner=driver.owner,
            silent=driver.on_asked is None,
            can_undo=tool.prepare is None or trip.undo is not None,
        )
        is_long = len(call.arguments) > LARGE or is_large(call.preview)
        change = await aside(ask) if is_long else ask()
        await driver.commit(change)
        relay = driver.relay(call.project)
        if relay is not None:
            await relay.moment()
        if driver.on_asked is not None:
            driver.on_asked(change.approvals[0])
        assert change.call is not None
        return result_of(change.call)

    async def revise(self, call: Call, raw: str | bytes | Mapping[str, object]) -> Revised:
        """Return a parked call with other arguments, made ready as a new one would be, and how it must be asked about.

        Raises ToolError where the arguments are not valid, denied, or cannot be prepared.
        """
        driver = self._driver
        plan, now = driver.plan(call.tool_name, call.context), driver.now()
        arguments, shown = self._read(plan, raw) if not is_large(raw) else await aside(self._read, plan, raw)
        joining.check_same_effect(plan.effect, call, arguments.value, shown)
        revised = evolve(
            call,
            arguments=arguments.canonical,
            shown=shown,
            hides=shown != arguments.value,
            first_asked=call.first_asked or joining.name_of(call),
            doubt_key=None if call.doubt_key is None else doubt_key(call.tool_name, arguments.canonical),
            doubt_seen=None,
            preview=None,
            facts=None,
            preconditions=None,
        )
        revised, ruling = await plan.judge_aside(revised, arguments.value, now)
        if ruling.assessment is None:
            raise ToolDeniedError("; ".join(ruling.reasons), tool=plan.tool.name)
        assessment, can_undo = ruling.assessment, True
        if plan.tool.prepare is not None:
            revised, undo, asks = await prepare(driver, revised, plan.tool, now)
            assessment, can_undo = _told_why(assessment, asks), undo is not None
        if revised.repeat_of is not None:  # whoever edits it was told, and whoever else is asked must be
            _, assessment = await joining.retold(driver, revised, assessment)
        level = max(assessment.level, ApprovalLevel(call.level), key=_rank)
        asking = assessed(revised, assessment._replace(level=level), plan.masker.repeated)
        terms = assessment.terms
        timeout = steps.timeout_s(call, plan.tool, plan.stance, level, terms)
        return Revised(asking, plan.tool, terms, timeout, can_undo)

    async def _deny(self, call: Call, ruling: Ruling) -> Result:
        denial = ruling.denial
        assert denial is not None
        mask = self._driver.masker.text
        denied = evolve(call, reasons=tuple(map(mask, ruling.reasons)), rule=denial.rule, reason=mask(denial.reason))
        pulled = self._driver.store.brakes.told(call.context) if denial.code == "mode_not_allowed" else ""
        said = f"Tool `{call.tool_name}` was denied: {denial.reason} (rule `{denial.rule}`)."
        text = " ".join(filter(None, (said, denial.remedy, pulled)))
        return await self._end(denied, Status.DENIED, "denied", text, reason=denial.code or denial.rule)

    async def _refuse(self, call: Call, error: ToolError | ConflictError) -> Result:
        """End a call that could not be made ready or claimed; one that a guard or a rate refused is denied."""
        if isinstance(error, RateLimitError):
            return await self._end(call, Status.DENIED, "rate_limited", str(error), reason="rate_limited")
        if isinstance(error, AlreadyToldError):
            return await self._end(call, Status.DENIED, *ALREADY_STARTED)
        if isinstance(error, ConflictError):
            return await self._outrun(call)
        if isinstance(error, ToolDeniedError):
            return await self._end(call, Status.DENIED, "denied", str(error), reason=error.code)
        return await self._fail(call, error.code, str(error))

    async def _fail(self, call: Call, code: str, error: str) -> Result:
        return await self._end(call, Status.FAILED, code, error)

    async def _end(self, call: Call, status: Status, code: str, error: str, *, reason: str | None = None) -> Result:
        """End a call that did not run."""
        driver = self._driver
        text = driver.masker.text(error)
        change = steps.fail(call, now=driver.now(), status=status, code=code, error=text, reason=reason)
        try:
            await driver.commit(change)
        except ConflictError:
            return await self._standing(call)
        assert change.call is not None
        return result_of(change.call)

    async def _outrun(self, call: Call) -> Result:
        """Somebody else got there first: to this call or, for an undo, to what it would have undone."""
        if call.undo_of is not None:
            standing = await self._driver.store.call(call.project, call.id)
            if (0 if standing is None else standing.version) == call.version:
                return await self._fail(call, "undo_failed", not_undone(call, "another undo of it came first"))
        return await self._standing(call)

    async def _standing(self, call: Call) -> Result:
        """Somebody else moved this call: return where it stands, if it is the same call of the same caller."""
        standing = await self._driver.read(call.project, call.id)
        if not joining.is_joined(call, standing):
            raise ConflictError(
                f"Call id {call.id[:64]} is taken by another call of project '{call.project}'; use a new id."
            )
        result = result_of(standing, data=decode(standing.result))
        return result if call.version else evolve(result, joined=True)

    async def _approval_of(self, call: Call) -> Approval | None:
        known = self._driver.store.known_question(call.approval_id or "")
        if known is not None and known.call.version == call.version:
            return known.approval
        query = ApprovalQuery(project=call.project, id=call.approval_id)
        found = await self._driver.store.approvals(query)
        return found[0] if found else None


def _told_why(assessment: Assessment, asks: str | None) -> Assessment:
    """Return an assessment that also says why a person must be asked by what was prepared."""
    if asks is None:
        return assessment
    return assessment._replace(reasons=(*assessment.reasons, f"prepare: {asks}"))


def _rank(level: ApprovalLevel) -> int:
    return level.rank
