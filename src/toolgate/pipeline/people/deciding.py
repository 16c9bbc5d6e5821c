"""What people do with a question: approve, reject, edit, respond, extend, escalate, comment; and who may.

Each verb reads the call and its approval, makes one change and commits it; where somebody else changed the row
meanwhile it looks again, so the first decision wins and everybody else hears of it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from toolgate.authority import Verb, check_decider, check_escalation, check_human, check_person
from toolgate.errors import (
    ConflictError,
    DecisionConflictError,
    NotFoundError,
    ToolgateError,
    ToolInputError,
    UsageError,
)
from toolgate.kernel.approval import Approval, ApprovalStatus
from toolgate.kernel.assessment import ApprovalLevel
from toolgate.kernel.call import Call
from toolgate.kernel.change import Change
from toolgate.kernel.context import Mode, Principal
from toolgate.kernel.editing import difference, restore
from toolgate.kernel.event import Draft
from toolgate.kernel.grant import Grant, Remember, make_pattern
from toolgate.kernel.output import Result, result_of
from toolgate.kernel.payload import LARGE, encode
from toolgate.kernel.record import evolve
from toolgate.kernel.text.canonical import Arguments, read_arguments
from toolgate.kernel.text.schema import compile_schema
from toolgate.pipeline import Pipeline, steps
from toolgate.pipeline.driver import Driver
from toolgate.pipeline.evidence import shows_much
from toolgate.pipeline.joining import name_of
from toolgate.pipeline.lane import aside, is_large
from toolgate.pipeline.people.delegating import Delegating
from toolgate.ports.store import CallQuery, GrantQuery

Given = str | bytes | Mapping[str, object]
FORESEEN = 1000
"""How many past calls of a tool are looked at to say what a grant would have covered."""


class Foresight(NamedTuple):
    """Which past calls a grant would have covered: `matched` of `looked_at`, back to `since`.

    About `asked` of them a person was asked. `pattern` is what the grant would cover, as people see it.
    """

    matched: int
    asked: int
    looked_at: int
    since: datetime | None
    examples: tuple[str, ...]
    pattern: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """Who answers which approval, and what they saw: the id, in its project, and the digest they were shown.

    `allowances` name what the host excused a yes from; its event has them, and no reason is asked for with them.
    `on_behalf_of` is whose vote it is, where that was delegated to who answers.
    """

    approval_id: str
    by: Principal
    reason: str | None = None
    digest: str | None = None
    project: str | None = None
    allowances: tuple[str, ...] = ()
    on_behalf_of: Principal | None = None

    @property
    def people(self) -> frozenset[UUID]:
        """Everybody who answers with it."""
        return frozenset(who.id for who in (self.by, self.on_behalf_of) if who is not None)


class Deciding:
    """Takes people's answers to questions."""

    def __init__(self, driver: Driver, pipeline: Pipeline, delegating: Delegating) -> None:
        self._driver = driver
        self._pipeline = pipeline
        self._delegating = delegating

    async def decide(self, said: Said, *, approve_it: bool, remember: Remember | None = None) -> Result:
        """Record a person's answer and return where the call then stands.

        Raises DecisionConflictError where the approval is decided, expired, frozen by LOCKDOWN, already answered by
        this person, or not what `digest` says was shown; NotAllowedError where they may not decide.
        """
        if remember is not None and said.on_behalf_of is not None:
            raise UsageError("A yes on behalf of somebody else is not remembered; only one's own can be.")
        while True:
            mode = self._driver.store.brakes.serial
            call, approval, voter = await self._answerable(said)
            reason = self._reason(said, call, approval, approve_it=approve_it)
            now = self._driver.now()
            marks, by = self._driver.store.marks, said.by.name
            decide = partial(
                steps.decide,
                call,
                approval,
                approve=approve_it,
                by=by,
                reason=reason,
                now=now,
                marks=marks,
                roles=voter.roles,
                allowances=said.allowances,
                on_behalf_of=None if said.on_behalf_of is None else said.on_behalf_of.name,
                standing=await self._delegating.standing(approval) if approval.votes else (),
            )
            change = await aside(decide) if shows_much(call, approval) else decide()
            if remember is not None:
                change = self._remember(change, remember, said.by)
            done = await self._try(evolve(change, mode_seen=mode))
            if done is not None:
                return result_of(done)

    async def edit(
        self,
        said: Said,
        arguments: Given,
        *,
        remember: Remember | None = None,
        look: Callable[[Approval], bool] | None = None,
    ) -> Result:
        """Approve a call with other arguments: a new approval takes the old one's place and is answered in one step.

        Where `look` says that the new question must be looked at first, it is asked and not answered.
        A value that is given as it was shown, masked, stays what it really is. Raises ToolError where the arguments
        are not valid or a rule denies them; the question then stays open.
        """
        while True:
            mode = self._driver.store.brakes.serial
            call, approval, _ = await self._answerable(said)
            reason = self._reason(said, call, approval, approve_it=True)
            change = await self._edited(call, approval, arguments, said, reason, look)
            if remember is not None:
                change = self._remember(change, remember, said.by)
            done = await self._try(evolve(change, mode_seen=mode))
            if done is not None:
                self._tell_channels(change.approvals[-1])
                return result_of(done)

    def _tell_channels(self, asked: Approval) -> None:
        """Carry a question that an edit left open to the people who are asked."""
        if asked.status is ApprovalStatus.PENDING and self._driver.on_asked is not None:
            self._driver.on_asked(asked)

    async def respond(self, said: Said, response: Any) -> Result:
        """Answer the agent instead of running the call; the result carries the answer."""
        encoded = encode(response, what="response")
        mask, value = self._driver.masker, orjson.loads(encoded)
        shown = await aside(mask, value) if len(encoded) > LARGE else mask(value)
        while True:
            mode = self._driver.store.brakes.serial
            call, approval, _ = await self._answerable(said)
            now, by, marks = self._driver.now(), said.by.name, self._driver.store.marks
            change = steps.respond(call, approval, by=by, response=encoded, shown=shown, now=now, marks=marks)
            done = await self._try(evolve(change, mode_seen=mode))
            if done is not None:
                return result_of(done, data=orjson.loads(encoded))

    async def extend(self, said: Said, *, seconds: float) -> Approval:
        """Give people `seconds` from now to decide; raise DecisionConflictError where it is too late."""
        if not 0 < seconds < float("inf"):
            raise UsageError("An approval is extended by a positive number of seconds.")
        by, marks = said.by.name, self._driver.store.marks
        return await self._change(
            said,
            lambda call, approval: steps.extend(
                call, approval, seconds=seconds, by=by, now=self._driver.now(), marks=marks
            ),
            check_decider,
        )

    async def escalate(self, said: Said, *, roles: frozenset[str]) -> Approval:
        """Ask the people the policy names for it too, and tell the channels again; `roles` may not go beyond those."""
        by, marks = said.by, self._driver.store.marks

        def wider(call: Call, approval: Approval) -> Change:
            check_escalation(approval, roles)
            return steps.escalate(call, approval, by=by.name, now=self._driver.now(), marks=marks)

        asked = await self._change(said, wider, check_decider)
        if self._driver.on_asked is not None:
            self._driver.on_asked(asked)
        return asked

    async def comment(self, said: Said, *, text: str) -> Approval:
        """Put a person's words beside an undecided question."""
        masked = self._driver.masker.text(text.strip())
        if not masked:
            raise UsageError("A comment cannot be empty.")
        return await self._change(
            said,
            lambda call, approval: steps.comment(call, approval, by=said.by.name, text=masked, now=self._driver.now()),
            lambda by, call, _approval: check_person(by, call),
        )

    async def revoke(self, grant_id: str, *, by: Principal, reason: str | None, project: str | None) -> Grant:
        """Take a grant back; calls that already started because of it go on."""
        check_human(Verb.REVOKE, by)
        while True:
            found = await self._driver.store.grants(GrantQuery(id=grant_id, project=project))
            if not found:
                raise NotFoundError(f"There is no grant {grant_id[:64]}.")
            grant, now = found[0], self._driver.now()
            shown = None if reason is None else self._driver.masker.text(reason)
            revoked, marks = grant.revoke(by=by.name, reason=shown, now=now), self._driver.store.marks
            if marks.hold(grant):  # what somebody else wrote is not made good
                revoked = marks.put(revoked)
            data = {"grant_id": grant.id, "tool_name": grant.tool_name, "revoked_by": by.name, "uses": len(grant.used)}
            event: Draft = ("grant.revoked", grant.call_id, data, {"reason": shown})
            change = Change(project=grant.project, at=now, grant=revoked, grant_expect=grant.version, events=(event,))
            try:
                await self._driver.commit(change)
            except ConflictError:
                continue  # it was used just now
            return revoked

    async def _change(
        self, said: Said, make: Callable[[Call, Approval], Change], check: Callable[[Principal, Call, Approval], None]
    ) -> Approval:
        """Change a question without answering it, where this person may."""
        while True:
            call, approval = await self._asked(said)
            check(said.by, call, approval)
            change = await aside(make, call, approval) if shows_much(call, approval) else make(call, approval)
            if await self._try(change) is not None:
                return change.approvals[-1]

    async def check(self, said: Said) -> None:
        """Raise what an answer by this person would be refused with; nothing is decided."""
        await self._answerable(said)

    async def votes_held(self, said: Said) -> tuple[str, ...]:
        """Whose votes this person could give on a question now, by delegations; nothing is decided."""
        call, approval = await self._asked(said)
        return await self._delegating.held(said.by, call, approval)

    async def _answerable(self, said: Said) -> tuple[Call, Approval, Principal]:
        """Return a call, its question, and whose vote an answer is, if this person may give it now.

        What is known here of a question may be outdated, so only what is stored refuses; the commit decides the rest.
        """
        known = self._driver.store.known_question(said.approval_id)
        if known is not None and said.project in (None, known.call.project):
            with contextlib.suppress(ToolgateError):
                return await self._may_answer(said, known.call, known.approval)
        return await self._may_answer(said, *await self._asked(said))

    async def _may_answer(self, said: Said, call: Call, approval: Approval) -> tuple[Call, Approval, Principal]:
        voter = said.by
        if said.on_behalf_of is None:
            check_decider(voter, call, approval)
        else:
            voter = await self._delegating.giver(said.by, said.on_behalf_of, call, approval)
        if said.digest is not None and said.digest != approval.digest:
            raise DecisionConflictError(
                f"Approval {approval.id} covers something else than what was shown; review it again."
            )
        approval.check_open(at=self._driver.now())
        for vote in approval.votes:
            if not said.people.isdisjoint(vote.people):
                raise DecisionConflictError(
                    f"Approval {approval.id} has the answer of {vote.who} already; nobody answers twice, "
                    "neither for themselves nor for somebody else."
                )
        lock = self._driver.store.brakes.told(call.context, mode=Mode.LOCKDOWN)
        if lock:
            raise DecisionConflictError(f"Nothing can be decided in LOCKDOWN; change the mode first. Now: {lock}")
        return call, approval, voter

    def _reason(self, said: Said, call: Call, approval: Approval, *, approve_it: bool) -> str | None:
        """Return the reason, masked; refuse an answer that needs one and has none."""
        given = (said.reason or "").strip()
        if not given and not approve_it and approval.requires_reason:
            raise UsageError(f"Rejecting `{approval.tool_name}` needs a reason; give one.")
        is_own = call.context.user is not None and Principal.of(call.context.user).id == said.by.id
        is_excused = bool(given or said.allowances)
        if not is_excused and approve_it and is_own and approval.level == ApprovalLevel.FULL:
            raise UsageError(f"Approving your own `{approval.tool_name}` at level full needs a reason; give one.")
        return None if said.reason is None else self._driver.masker_of(call).text(said.reason)

    async def _edited(
        self,
        call: Call,
        approval: Approval,
        arguments: Given,
        said: Said,
        reason: str | None,
        look: Callable[[Approval], bool] | None,
    ) -> Change:
        driver, by = self._driver, said.by
        if call.undo_of is not None:
            raise UsageError("An undo has no arguments to edit; approve or reject it.")
        is_long = len(call.arguments) > LARGE or is_large(arguments)
        restored, changed = await aside(self._meant, call, arguments) if is_long else self._meant(call, arguments)
        revised = await self._revise(call, approval, restored)
        check_decider(by, call, revised[1])
        shown = evolve(revised[1], edited_from=approval.id, difference=changed)
        now, marks = driver.now(), driver.store.marks
        edit = partial(
            steps.edit,
            call,
            approval,
            revised[0],
            shown,
            by=by.name,
            reason=reason,
            now=now,
            marks=marks,
            roles=by.roles,
            allowances=said.allowances,
            answers=look is None or not look(shown),
        )
        return await aside(edit) if is_long or shows_much(call, approval) or shows_much(revised[0], shown) else edit()

    def _meant(self, call: Call, arguments: Given) -> tuple[Mapping[str, Any], dict[str, Any]]:
        """Return what an edit says the arguments are to be, in truth, and what of them it changes, masked."""
        driver = self._driver
        wanted = read_arguments(arguments, limits=driver.limits).value
        real = orjson.loads(call.arguments)
        restored = restore(wanted, driver.mask(real), real)
        return restored, difference(real, restored, driver.mask)

    async def _revise(self, call: Call, approval: Approval, arguments: Mapping[str, Any]) -> tuple[Call, Approval]:
        """Return the call with other arguments, and its new question.

        Without the tool, which another process holds, they are checked against the schema the question quotes;
        the rules, and what the tool prepares, are asked by the process that runs it.
        """
        driver = self._driver
        now, id, nonce = driver.now(), driver.new_id(), driver.new_id()
        left_s = (approval.expires_at - now).total_seconds()
        if driver.realm(call.project).registry.find(call.tool_name) is not None:
            revised = await self._pipeline.revise(call, arguments)
            timeout = max(left_s, revised.timeout_s)
            terms = revised.terms
            fresh = steps.question(
                revised.call, revised.tool, id=id, nonce=nonce, now=now, timeout=timeout, terms=terms,
                undo_ttl_s=approval.undo_ttl_s, can_undo=revised.can_undo,
            )  # fmt: skip
            return revised.call, fresh
        is_long, asked = is_large(arguments), (call.tool_name, approval.input_schema, arguments)
        checked, shown = await aside(self._checked, *asked) if is_long else self._checked(*asked)
        other = evolve(
            call,
            arguments=checked.canonical,
            shown=shown,
            hides=shown != checked.value,
            first_asked=call.first_asked or name_of(call),
            preview=None,
            facts=None,
        )
        fresh = steps.question(other, None, id=id, nonce=nonce, now=now, timeout=left_s, terms=approval.terms)
        kept = ("message", "input_schema", "undoable", "undo_ttl_s", "approve_label", "reject_label", "requires_reason")
        return other, evolve(fresh, **{name: getattr(approval, name) for name in kept})

    def _checked(self, tool: str, schema: Any, arguments: Mapping[str, Any]) -> tuple[Arguments, Any]:
        """Return arguments that fit a question's schema, and their masked view; raise ToolInputError."""
        driver = self._driver
        checked = read_arguments(arguments, limits=driver.limits)
        compiled = compile_schema(schema or {}, what="input_schema")
        if not compiled.is_valid(checked.value):
            said = "; ".join(f"{item.location or '/'} {item.message}" for item in compiled.violations(checked.value))
            raise ToolInputError(f"Arguments of `{tool}` do not fit its schema: {said}.", tool=tool)
        return checked, driver.masker.of(checked.value, checked.canonical)

    def _remember(self, change: Change, remember: Remember, by: Principal) -> Change:
        """Add the grant that remembers this yes, if it is one person's whole yes."""
        call, approval = change.call, change.approvals[-1]
        if approval.status is ApprovalStatus.PENDING and not approval.votes:
            raise UsageError("What is asked anew is not approved yet; say with your yes that it is to be remembered.")
        assert call is not None
        grant = self._driver.store.marks.put(self._grant(call, approval, remember, by, change.at))
        return evolve(change, grant=grant, grant_expect=None, events=(*change.events, _granted(grant, call)))

    async def foresee(self, said: Said, remember: Remember) -> Foresight:
        """Say which past calls such a grant would have covered; nothing is decided or kept."""
        call, approval = await self._asked(said)
        check_person(said.by, call)
        driver = self._driver
        grant = self._grant(call, approval, remember, said.by, driver.now())
        query = CallQuery(project=call.project, tool_name=call.tool_name, newest_first=True, limit=FORESEEN)
        past = [one for one in await driver.store.calls(query) if _can_compare(one, call)]
        covered = [
            one
            for one in past
            if grant.covers(one, orjson.loads(one.arguments), ApprovalLevel(one.level), approval.terms)
        ]
        return Foresight(
            matched=len(covered),
            asked=sum(one.level != ApprovalLevel.AUTO for one in covered),
            looked_at=len(past),
            since=past[-1].created_at if past else None,
            examples=tuple(one.id for one in covered[:5]),
            pattern=grant.shown,
        )

    def _grant(self, call: Call, approval: Approval, remember: Remember, by: Principal, now: datetime) -> Grant:
        """Return the grant that would remember a yes to this question."""
        is_alone = approval.terms.quorum == 1 and not approval.terms.lacking([by.roles])
        if not is_alone or call.undo_of is not None:
            raise UsageError("Only the approval of one person who may decide alone can be remembered.")
        driver, nonce = self._driver, self._driver.new_id()
        arguments = orjson.loads(call.arguments)
        pattern, shown = make_pattern(arguments, driver.mask(arguments), remember.pattern, nonce=nonce)
        return Grant(
            id=driver.new_id(),
            project=call.project,
            tool_name=call.tool_name,
            definition_hash=call.definition_hash,
            requester=call.context.principal,
            user=call.context.user,
            pattern=pattern,
            shown=driver.mask(shown),
            nonce=nonce,
            level=approval.level,
            terms=approval.terms,
            escalated=approval.escalated,
            approval_id=approval.id,
            call_id=call.id,
            granted_by=by.name,
            created_at=now,
            expires_at=now + remember.duration,
            max_uses=remember.uses,
        )

    async def _asked(self, said: Said) -> tuple[Call, Approval]:
        found = await self._driver.store.question(said.approval_id, project=said.project)
        if found is None:
            raise NotFoundError(f"There is no approval {said.approval_id[:64]}.")
        return found.call, found.approval

    async def _try(self, change: Change) -> Call | None:
        """Commit; None where the row changed meanwhile and the caller should look again."""
        try:
            await self._driver.commit(change)
        except ConflictError:
            return None
        return change.call


def _can_compare(one: Call, asked: Call) -> bool:
    """Whether this is another call, with arguments that are still known."""
    return one.id != asked.id and one.undo_of is None and isinstance(one.shown, dict)


def _granted(grant: Grant, call: Call) -> Draft:
    data = {
        "grant_id": grant.id,
        "tool_name": grant.tool_name,
        "granted_by": grant.granted_by,
        "approval_id": grant.approval_id,
        "requester": grant.requester,
        "uses": grant.max_uses,
        "expires_at": grant.expires_at,
    }
    return ("grant.created", call.id, data, {"pattern": grant.shown})
