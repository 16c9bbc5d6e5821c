"""The one path: resolve, validate, permit, assess, then ask or perform; and the same again after a yes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from toolgate.errors import (
    ConflictError,
    GrantChangedError,
    ModeChangedError,
    RateLimitError,
    ToolDeniedError,
    ToolError,
    ToolInputError,
    ToolNotFoundError,
)
from toolgate.kernel.approval import Approval, digest_of
from toolgate.kernel.assessment import ApprovalLevel, Assessment
from toolgate.kernel.call import Call, Status
from toolgate.kernel.canonical import Arguments
from toolgate.kernel.change import Change
from toolgate.kernel.context import Context, Mode
from toolgate.kernel.event import Draft
from toolgate.kernel.grant import Grant
from toolgate.kernel.narration import invoked, tell
from toolgate.kernel.output import Result, result_of
from toolgate.kernel.policy import NOTHING
from toolgate.kernel.record import build, evolve
from toolgate.kernel.ruling import Ruling, look, show_facts
from toolgate.kernel.terms import NO_TERMS, ApprovalTerms
from toolgate.kernel.tool import Placement, ToolDefinition
from toolgate.kernel.undo import UndoRecord
from toolgate.pipeline import approve, record
from toolgate.pipeline.driver import Driver
from toolgate.pipeline.eager import finish
from toolgate.pipeline.execute import claim, claim_at_birth, decode, offer_s
from toolgate.pipeline.perform import Performer
from toolgate.pipeline.permit import rule_on
from toolgate.pipeline.ready import not_undone, prepare, prepare_new, refresh
from toolgate.pipeline.resolve import resolve
from toolgate.pipeline.route import Route, assessed
from toolgate.pipeline.validate import revalidate, validate
from toolgate.ports.store import ApprovalQuery, GrantQuery

_LEVELS = list(ApprovalLevel)


NO_WISHES: Mapping[str, Any] = {}
"""What the caller asks for about its own approval (`message`, `approval_timeout_s`): nothing."""


class Revised(NamedTuple):
    """A call with the arguments a person gave it, and how it must be asked about."""

    call: Call
    tool: ToolDefinition
    terms: ApprovalTerms
    timeout_s: float


class Walk:
    """Takes a call from its request to where it waits or ends."""

    def __init__(self, driver: Driver, performer: Performer) -> None:
        self._driver = driver
        self._performer = performer
        self._plain: Context | None = None

    async def submit(
        self,
        name: str,
        raw: str | bytes | Mapping[str, object],
        context: Context,
        *,
        call_id: str | None = None,
        wishes: Mapping[str, Any] = NO_WISHES,
    ) -> Result:
        """Take a new call as far as it goes without a person: to its end, or to its question."""
        driver = self._driver
        if driver.refresh is not None:
            await driver.refresh()
        now = driver.now()
        try:
            tool = resolve(driver.realm(context.project).registry, name)
        except ToolNotFoundError as error:
            return await self._stillborn(name, context, call_id, now, error)
        try:
            arguments = validate(tool, raw, driver.limits)
        except ToolInputError as error:
            return await self._stillborn(tool.name, context, call_id, now, error, tool)
        route = driver.route(tool, context.project)
        mode = driver.store.mode
        is_plain = (context is self._plain or self._is_plain(context)) and (call_id is None or _is_text(call_id))
        claimed = route.free.get(mode) if is_plain else None
        call = self._new(route.born if claimed is None else claimed, context, call_id, now, arguments, wishes)
        ruling = None
        if claimed is None:
            call, ruling = self._rule(call, route, arguments.value, mode, now)
        if is_plain and (ready := self._ready(call, route, ruling)) is not None:
            change = claim_at_birth(ready, now, mode, route.durability)
            try:
                started = self._performer.start(change, tool, None, arguments.value)
                return await finish(started) if isinstance(started, asyncio.Future) else started
            except ConflictError:  # the mode changed or the id is taken, and nothing ran: the long way finds out which
                call = self._new(route.born, context, call_id, now, arguments, wishes)
                call, ruling = self._rule(call, route, arguments.value, mode, now)
        first = (invoked(call),)
        if tool.prepare is None:
            return await self._proceed(call, route, now, first, None, values=arguments.value)
        # What the rules deny is not prepared: the hook may look at what the call may not.
        if ruling is not None and ruling.denial is not None:
            return await self._deny(call, ruling, first)
        return await self._prepare(call, route, now, first)

    async def _prepare(self, call: Call, route: Route, now: datetime, first: tuple[Draft, ...]) -> Result:
        """Have the tool of a new call prepare it, and go on."""
        driver, gone = self._driver, lambda: self._go_on(call.project, call.id)
        try:
            made = await prepare_new(driver, call, route.tool, now, first, gone)
        except ConflictError:
            return await self._existing(call)
        if made.error is not None:
            return await self._refuse(made.call, made.error, made.first)
        return await self._proceed(made.call, route, driver.now(), made.first, made.undo)

    async def _go_on(self, project: str, call_id: str) -> None:
        call = await self._driver.store.call(project, call_id)
        if call is not None and call.status is Status.PENDING:
            await self.restart(call)

    async def restart(self, call: Call) -> Result:
        """Take up a call that was stored and neither asked about nor claimed: nothing of what led there has effects."""
        driver = self._driver
        if driver.refresh is not None:
            await driver.refresh()
        tool = driver.realm(call.project).registry.find(call.tool_name)
        if tool is None or tool.hash != call.definition_hash:
            why = f"`{call.tool_name}` is not the tool it was made for any more; nothing ran"
            return await self._end(call, Status.FAILED, "prepare_failed", f"{why}. Make the call again.", ())
        route = driver.route(tool, call.project)
        call, ruling = self._rule(call, route, decode(call.arguments), driver.store.mode, driver.now())
        if ruling.denial is not None:
            return await self._deny(call, ruling, ())
        try:
            ready, undo = await refresh(driver, call, tool)
        except ToolError as error:
            return await self._refuse(call, error, ())
        return await self._proceed(ready, route, driver.now(), (), undo)

    def _ready(self, call: Call, route: Route, ruling: Ruling | None) -> Call | None:
        """Return a new call as it is claimed at birth, if it may run at once; without a ruling it already is."""
        if ruling is None:
            return call
        assessment = ruling.assessment
        if route.quick is None or assessment is None or assessment.level is not ApprovalLevel.AUTO:
            return None
        fields = call.__dict__ | route.quick | assessed(assessment, self._driver.masker.repeated)
        fields["started_at"] = fields["approved_at"] = call.created_at
        return build(Call, fields)

    async def submit_undo(self, call: Call, tool: ToolDefinition, undo: UndoRecord) -> Result:
        """Take an undo call, whose `undo` record is to be claimed with it, through the same gates."""
        return await self._proceed(call, self._driver.route(tool, call.project), self._driver.now(), (), undo)

    async def resume(self, call: Call) -> Result:
        """Run an approved call, if everything the approval covered still holds; otherwise ask again or refuse."""
        driver = self._driver
        if driver.refresh is not None:
            await driver.refresh()
        tool = driver.realm(call.project).registry.find(call.tool_name)
        if tool is None:
            return result_of(call)  # another process holds the tool
        approval = await self._approval_of(call)
        if approval is None or not approval.allows(digest_of(call, nonce=approval.nonce)):
            reason = "what would run is not what was approved"
            return await self._end(call, Status.DENIED, "approval_mismatch", reason, ())
        try:
            if call.undo_of is None:  # an undo has no arguments of its own
                revalidate(tool, call.arguments)
            fresh, undo = await refresh(driver, call, tool)
        except ToolError as error:
            return await self._refuse(call, error, ())
        changed = fresh.definition_hash != call.definition_hash or fresh.preconditions != call.preconditions
        route, now = driver.route(tool, call.project), driver.now()
        return await self._proceed(fresh, route, now, (), undo, ask_again=changed, answered=approval.terms)

    def _is_plain(self, context: Context) -> bool:
        """Whether events quote nothing of a context but what is sure to be written as JSON; remembers the last."""
        told = (context.project, context.run_id, context.request_id, context.behavior)
        if context.parent_call_id is not None or not all(map(_is_text, told)):
            return False
        self._plain = context
        return True

    def _new(
        self,
        born: dict[str, Any],
        context: Context,
        call_id: str | None,
        now: datetime,
        arguments: Arguments,
        wishes: Mapping[str, Any],
    ) -> Call:
        driver = self._driver
        fields = born.copy()
        if "status" in born:
            fields["started_at"] = fields["approved_at"] = now
        fields["id"] = call_id or driver.new_id()
        fields["project"] = context.project
        fields["context"] = context
        fields["created_at"] = now
        fields["arguments"] = arguments.canonical
        fields["shown"] = shown = driver.mask(arguments.value)
        if shown != arguments.value:
            fields["hides"] = True
        if wishes:
            fields.update(wishes)
        return build(Call, fields)

    async def _proceed(
        self,
        call: Call,
        route: Route,
        now: datetime,
        first: tuple[Draft, ...],
        undo: UndoRecord | None,
        *,
        ask_again: bool = False,
        answered: ApprovalTerms = NO_TERMS,
        values: Mapping[str, Any] | None = None,
    ) -> Result:
        """Permit and assess under the current mode, then deny, ask or perform; again if the mode changes meanwhile."""
        driver, tool = self._driver, route.tool
        if call.placement not in driver.runners:
            return await self._end(call, Status.FAILED, "no_runner", _no_runner(call), first)
        if values is None:
            values = await self._values(call, route)
        while True:
            mode = driver.store.mode
            try:
                call, ruling = self._rule(call, route, values, mode, now)
                assessment = ruling.assessment
                if assessment is None:
                    return await self._deny(call, ruling, first)
                grant = None
                if self._must_ask(call, assessment, ask_again, answered):
                    grant = await self._grant_for(call, assessment, now)
                    if grant is None:
                        return await self._ask(call, route, assessment, first, mode)
                ready = call if call.status is Status.APPROVED else self._assessed(call, assessment)
                claimed = self._claim(ready, route, mode, now, first, undo, values, grant)
                started = self._performer.start(claimed, tool, undo)
                return await finish(started) if isinstance(started, asyncio.Future) else started
            except (ModeChangedError, GrantChangedError):
                now = driver.now()
            except RateLimitError as error:
                return await self._end(call, Status.DENIED, "rate_limited", str(error), first, "rate_limited")
            except ConflictError:
                return await self._outrun(call, first)

    async def _values(self, call: Call, route: Route) -> Mapping[str, Any]:
        """The arguments rules look at, where any does; those of an undo are the ones of the call it undoes."""
        if not (route.stance.reads_arguments or route.stance.inspectors):
            return NOTHING
        subject = call if call.undo_of is None else await self._driver.read(call.project, call.undo_of)
        values: Mapping[str, Any] = decode(subject.arguments)
        return values

    def _rule(
        self, call: Call, route: Route, values: Mapping[str, Any], mode: Mode, now: datetime
    ) -> tuple[Call, Ruling]:
        """Decide about a call under the facts of now; returns it with the facts on its record."""
        tool, stance = route.tool, route.stance
        facts = look(call, tool, stance, values, mode=mode, now=now)
        if facts.found:
            call = evolve(call, facts=show_facts(stance, facts, self._driver.masker.repeated))
        return call, rule_on(call, tool, stance, route.rules, facts)

    def _claim(
        self,
        call: Call,
        route: Route,
        mode: Mode,
        now: datetime,
        first: tuple[Draft, ...],
        undo: UndoRecord | None,
        values: Mapping[str, Any],
        grant: Grant | None,
    ) -> Change:
        """Claim a call; where its result comes from elsewhere, with a fence and the time by which it is due."""
        driver, tool = self._driver, route.tool
        if grant is not None:
            call = evolve(call, approved_by=grant.name)
        is_here = call.placement == Placement.INLINE
        meters = () if call.undo_of is not None else route.stance.meters
        change = claim(
            call,
            tool,
            now=now,
            owner=driver.owner,
            mode=mode,
            first=first,
            undo=undo,
            reservations=tuple(meter(call, values) for meter in meters) if meters else (),
            fence=None if is_here else driver.new_id(),
            due_at=None if is_here else now + timedelta(seconds=offer_s(call.placement, tool)),
        )
        if grant is None:
            return change
        return evolve(change, grant=grant.use(call.id, now), grant_expect=grant.version)

    def _assessed(self, call: Call, assessment: Assessment) -> Call:
        fields = assessed(assessment, self._driver.masker.repeated)
        return evolve(call, **fields) if fields else call  # a call is born with the values of an unremarkable one

    @staticmethod
    def _must_ask(call: Call, assessment: Assessment, ask_again: bool, answered: ApprovalTerms) -> bool:
        """Whether a person must answer: the level asks, and no approval of this level and these terms is at hand."""
        if ask_again or call.status is not Status.APPROVED:
            return ask_again or assessment.level is not ApprovalLevel.AUTO
        if assessment.level is ApprovalLevel.AUTO:
            return False
        return assessment.level.rank > ApprovalLevel(call.level).rank or not answered.covers(assessment.terms)

    async def _grant_for(self, call: Call, assessment: Assessment, now: datetime) -> Grant | None:
        """A remembered yes for a new call, if somebody gave one that covers it."""
        if call.status is not Status.PENDING or call.undo_of is not None:
            return None
        query = GrantQuery(project=call.project, tool_name=call.tool_name, live_at=now)
        arguments = decode(call.arguments)
        for grant in await self._driver.store.grants(query):
            if grant.is_live(now) and grant.covers(call, arguments, assessment.level, assessment.terms):
                return grant
        return None

    async def revise(self, call: Call, raw: str | bytes | Mapping[str, object]) -> Revised:
        """Return a parked call with other arguments, made ready as a new one would be, and how it must be asked about.

        Raises ToolError where the arguments are not valid, denied, or cannot be prepared.
        """
        driver = self._driver
        tool = resolve(driver.realm(call.project).registry, call.tool_name)
        arguments = validate(tool, raw, driver.limits)
        route, now = driver.route(tool, call.project), driver.now()
        revised = evolve(
            call, arguments=arguments.canonical, shown=driver.mask(arguments.value), preview=None, preconditions=None
        )
        revised, ruling = self._rule(revised, route, arguments.value, driver.store.mode, now)
        if ruling.assessment is None:
            raise ToolDeniedError("; ".join(ruling.reasons), tool=tool.name)
        if tool.prepare is not None:
            revised, _ = await prepare(driver, revised, tool, now)
        level = max(ruling.assessment.level, ApprovalLevel(call.level), key=_LEVELS.index)
        asking = self._assessed(revised, ruling.assessment._replace(level=level))
        timeout = approve.timeout_s(call, tool, route.stance, level)
        return Revised(asking, tool, ruling.assessment.terms, timeout)

    async def _ask(
        self, call: Call, route: Route, assessment: Assessment, first: tuple[Draft, ...], mode: Mode
    ) -> Result:
        driver, tool = self._driver, route.tool
        level = max(assessment.level, ApprovalLevel(call.level), ApprovalLevel.QUICK, key=_LEVELS.index)
        asking = self._assessed(call, assessment._replace(level=level))
        message = call.message or tool.approval_message
        if message is not None:
            asking = evolve(asking, message=driver.veil(call).text(message))
        if call.claim is not None:
            asking = evolve(asking, claim=driver.veil(call).text(call.claim))
        change = approve.request(
            asking,
            tool,
            id=driver.new_id(),
            nonce=driver.new_id(),
            now=driver.now(),
            timeout=approve.timeout_s(call, tool, route.stance, level),
            first=first,
            terms=assessment.terms,
            undo_ttl_s=tool.undo_ttl_seconds or route.stance.undo_ttl_s or driver.undo_ttl_s,
            owner=driver.owner,
            silent=driver.on_asked is None,
        )
        await driver.commit(evolve(change, mode_seen=mode))
        relay = driver.relay(call.project)
        if relay is not None:
            await relay.moment()
        if driver.on_asked is not None:
            driver.on_asked(change.approvals[0])
        assert change.call is not None
        return result_of(change.call)

    async def _deny(self, call: Call, ruling: Ruling, first: tuple[Draft, ...]) -> Result:
        denial = ruling.denial
        assert denial is not None
        denied = evolve(call, reasons=tuple(map(self._driver.masker.text, ruling.reasons)))
        text = _denied(call, denial.reason, denial.rule)
        return await self._end(denied, Status.DENIED, "denied", text, first, denial.code or denial.rule)

    async def _refuse(self, call: Call, error: ToolError, first: tuple[Draft, ...]) -> Result:
        """End a call that could not be made ready; one that a guard refused is denied."""
        if isinstance(error, ToolDeniedError):
            return await self._end(call, Status.DENIED, "denied", str(error), first, error.code)
        return await self._end(call, Status.FAILED, error.code, str(error), first)

    async def _end(
        self,
        call: Call,
        status: Status,
        code: str,
        error: str,
        first: tuple[Draft, ...],
        reason: str | None = None,
    ) -> Result:
        driver = self._driver
        change = record.failed(
            call,
            now=driver.now(),
            status=status,
            code=code,
            error=driver.masker.text(error),
            first=first,
            reason=reason,
        )
        try:
            await driver.commit(change)
        except ConflictError:
            return await self._existing(call)
        assert change.call is not None
        return result_of(change.call)

    async def _stillborn(
        self,
        name: str,
        context: Context,
        call_id: str | None,
        now: datetime,
        error: ToolError,
        tool: ToolDefinition | None = None,
    ) -> Result:
        """Record a call that never had a tool or usable arguments. The arguments are not kept."""
        driver = self._driver
        call = Call(
            id=call_id or driver.new_id(),
            project=context.project,
            tool_name=driver.masker.text(str(name)[:128]),
            context=context,
            created_at=now,
            arguments=b"null",  # not an object: no other call can be mistaken for this one
            definition_hash=tool.hash if tool is not None else "",
            policy_revision=driver.policy_of(context.project).revision,
        )
        first = () if tool is None else (tell(call, "tool.invoked", {"payload_summary": None}),)
        return await self._end(call, Status.FAILED, error.code, str(error), first)

    async def _outrun(self, call: Call, first: tuple[Draft, ...]) -> Result:
        """Somebody else got there first: to this call or, for an undo, to what it would have undone."""
        if call.undo_of is not None:
            standing = await self._driver.store.call(call.project, call.id)
            if (0 if standing is None else standing.version) == call.version:
                text = not_undone(call, "another undo of it came first")
                return await self._end(call, Status.FAILED, "undo_failed", text, first)
        return await self._existing(call)

    async def _existing(self, call: Call) -> Result:
        """Somebody else moved this call: return where it stands, if it is the same call."""
        standing = await self._driver.read(call.project, call.id)
        if (standing.tool_name, standing.arguments) != (call.tool_name, call.arguments):
            raise ConflictError(
                f"Call id {call.id[:64]} is taken by another call of project '{call.project}'; use a new id."
            )
        result = result_of(standing, data=decode(standing.result))
        return result if call.version else evolve(result, joined=True)

    async def _approval_of(self, call: Call) -> Approval | None:
        query = ApprovalQuery(project=call.project, id=call.approval_id)
        found = await self._driver.store.approvals(query)
        return found[0] if found else None


def _is_text(value: object) -> bool:
    return value is None or (type(value) is str and value.isascii())


def _no_runner(call: Call) -> str:
    return (
        f"Tool `{call.tool_name}` must run in placement '{call.placement}', and this gate has no such runner; "
        "nothing ran. Configure the runner or change the tool's placement."
    )


def _denied(call: Call, reason: str, rule: str) -> str:
    return f"Tool `{call.tool_name}` was denied: {reason} (rule `{rule}`)."
