"""Votes that people lend to others: give one, end one, and say whether one counts now.

A delegation is read again, with the rights of both people, at every use. What it decides is in `deciding`.
"""

from __future__ import annotations

from collections.abc import Collection

from toolgate.authority import check_delegated, check_delegating, check_ending
from toolgate.errors import ConflictError, NotAllowedError, NotFoundError, UsageError
from toolgate.kernel.approval import Approval, Note
from toolgate.kernel.call import Call
from toolgate.kernel.change import Change
from toolgate.kernel.context import Principal
from toolgate.kernel.delegation import MAX_DELEGATED_TOOLS, MAX_DELEGATIONS, Delegation, duration_of
from toolgate.kernel.event import Draft
from toolgate.kernel.ids import check_id
from toolgate.kernel.record import evolve
from toolgate.pipeline.driver import Driver
from toolgate.pipeline.evidence import is_ended
from toolgate.ports.store import DelegationQuery


class Delegating:
    """Keeps delegations, and looks at each as it is now."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    async def give(
        self,
        giver: Principal,
        delegate: Principal,
        *,
        project: str,
        seconds: float,
        tools: Collection[str],
        reason: str | None,
    ) -> Delegation:
        """Lend somebody's vote; raise NotAllowedError where one of them may not decide in the project now."""
        driver, now = self._driver, self._driver.now()
        check_delegating(giver, delegate)
        for who in (giver, delegate):
            if await self._decider(project, who) is None:
                raise NotAllowedError(f"{who.name} may not decide in this project; who lends or gets a vote must.")
        query = DelegationQuery(project=project, giver=giver.name, live_at=now)
        if len(await driver.store.delegations(query)) >= MAX_DELEGATIONS:
            raise ConflictError(f"{giver.name} has {MAX_DELEGATIONS} delegations here already; end one first.")
        given = driver.store.marks.put(
            Delegation(
                id=driver.new_id(),
                project=project,
                giver=giver.name,
                delegate=delegate.name,
                created_at=now,
                expires_at=now + duration_of(seconds),
                tools=self._named(tools),
                reason=None if reason is None else driver.masker.text(reason),
            )
        )
        data = {"expires_at": given.expires_at, "tools": list(given.tools), "mark": given.mark}
        await driver.commit(_told(given, "delegation.given", data, given.reason))
        return given

    def _named(self, tools: Collection[str]) -> tuple[str, ...]:
        if isinstance(tools, str) or len(tools) > MAX_DELEGATED_TOOLS:
            raise UsageError(f"`tools` is a list of at most {MAX_DELEGATED_TOOLS} names.")
        for name in tools:
            check_id(name, "tool name", self._driver.masker)
        return tuple(sorted(set(tools)))

    async def end(self, delegation_id: str, *, by: Principal, reason: str | None, project: str | None) -> Delegation:
        """End a delegation; what was decided by it stands."""
        driver = self._driver
        found = await driver.store.delegations(DelegationQuery(id=delegation_id, project=project))
        if not found:
            raise NotFoundError(f"There is no delegation {delegation_id[:64]}.")
        given, now, marks = found[0], driver.now(), driver.store.marks
        check_ending(by, given)
        ended = given.end(by=by.name, now=now)
        if marks.hold(given):  # what somebody else wrote is not made good
            ended = marks.put(ended)
        said = None if reason is None else driver.masker.text(reason)
        await driver.commit(_told(ended, "delegation.ended", {"ended_by": by.name, "mark": ended.mark}, said))
        return ended

    async def list(self, query: DelegationQuery) -> list[Delegation]:
        """Return the delegations that fit, each with why it counts as not there, where it does."""
        found = await self._driver.store.delegations(query)
        return [await self.looked_at(one) for one in found]

    async def looked_at(self, delegation: Delegation) -> Delegation:
        """Return a delegation with why it counts as not there, where it does."""
        lapse = await self._lapse(delegation)
        return delegation if lapse is None else evolve(delegation, invalid_because=lapse)

    async def giver(self, by: Principal, giver: Principal, call: Call, approval: Approval) -> Principal:
        """Return whose vote somebody gives, as they are now; raise NotAllowedError where they cannot give it.

        Where the host says who people are, `giver` is its word.
        """
        now, why = self._driver.now(), f"there is no delegation from {giver.name} to {by.name} that is live"
        found = await self._decider(call.project, giver)
        if found is None:
            raise NotAllowedError(f"{giver.name} may not decide in this project, so nobody can for them.")
        query = DelegationQuery(project=call.project, giver=giver.name, delegate=by.name, live_at=now)
        for one in await self._driver.store.delegations(query):
            lapse = await self._lapse(one)
            if lapse is None and one.covers(call.tool_name):
                check_delegated(by, found, call, approval)
                return found
            why = lapse or f"it is for {', '.join(one.tools)} alone"
        raise NotAllowedError(f"{by.name} cannot give the vote of {giver.name} on this: {why}.")

    async def standing(self, approval: Approval) -> tuple[Note, ...]:
        """Return the votes on a question whose givers may still give them, each with the roles they have now.

        Where the host says who people are, all of them.
        """
        who_decides, terms, found = self._driver.who_decides, approval.terms, list[Note]()
        if who_decides is None:
            return approval.votes
        for vote in approval.votes:
            voter = await who_decides(approval.project, vote.on_behalf_of or vote.by)
            holder = voter if vote.on_behalf_of is None else await who_decides(approval.project, vote.by)
            is_accepted = voter is not None and terms.accepts(voter.roles, escalated=approval.escalated)
            if voter is not None and holder is not None and is_accepted:
                found.append(vote._replace(roles=terms.counted(voter.roles)))
        return tuple(found)

    async def held(self, by: Principal, call: Call, approval: Approval) -> tuple[str, ...]:
        """Whose votes somebody could give on a question now."""
        query = DelegationQuery(project=call.project, delegate=by.name, live_at=self._driver.now())
        names = dict.fromkeys(one.giver for one in await self._driver.store.delegations(query))
        return tuple([name for name in names if await self._gives(by, name, call, approval)])

    async def _gives(self, by: Principal, giver: str, call: Call, approval: Approval) -> bool:
        try:
            await self.giver(by, Principal.of(giver), call, approval)
        except NotAllowedError:
            return False
        return True

    async def _lapse(self, delegation: Delegation) -> str | None:
        """Why a delegation counts as not there, whatever its row says; None where it counts."""
        store = self._driver.store
        if not store.marks.hold(delegation):
            return "it does not carry the mark of this gate, so nobody is known to have given it"
        if delegation.ended_at is None and await is_ended(store, delegation):
            return "its events tell that it was ended"
        for name in (delegation.giver, delegation.delegate):
            if await self._decider(delegation.project, Principal.of(name)) is None:
                return f"{name} may not decide in this project any more"
        return None

    async def _decider(self, project: str, who: Principal) -> Principal | None:
        """Who somebody is now, if they may decide there; without anybody to ask, they are who the host says."""
        who_decides = self._driver.who_decides
        return who if who_decides is None else await who_decides(project, who.name)


def _told(delegation: Delegation, name: str, data: dict[str, object], reason: str | None) -> Change:
    """Write a delegation with the event that tells of it, which names it where others name their call."""
    facts = {"delegation_id": delegation.id, "giver": delegation.giver, "delegate": delegation.delegate, **data}
    event: Draft = (name, delegation.id, facts, {"reason": reason})
    at = delegation.ended_at or delegation.created_at
    return Change(project=delegation.project, at=at, delegation=delegation, events=(event,))
