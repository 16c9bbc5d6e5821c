"""Whether what a row says may be believed: its yes carries a mark, and the chain has not told that it ran.

A row can be written by whoever can write to the database; a mark takes a key, and an event cannot be taken back.
A remembered yes is worth no more than the right its giver has now.
"""

from __future__ import annotations

from collections.abc import Callable

from toolgate.errors import GrantChangedError
from toolgate.kernel.approval import Approval
from toolgate.kernel.call import Call
from toolgate.kernel.delegation import Delegation
from toolgate.kernel.event import Event
from toolgate.kernel.grant import Grant
from toolgate.kernel.payload import LARGE
from toolgate.pipeline.driver import Driver
from toolgate.pipeline.lane import aside, is_large
from toolgate.ports.store import GrantQuery, Store

ALREADY_STARTED = ("already_started", "it was started before, as its events tell, and what was approved runs once")
"""Why a call does not run whose row says that it never did, as a code and a reason."""
GRANT_MOVES = frozenset({"grant.used", "grant.revoked"})
PAGE = 1000


def shows_much(call: Call, approval: Approval) -> bool:
    """Whether what people are shown of a question is so much that its mark is made and checked off the event loop.

    Its arguments are those of the call, masked, which are about as long.
    """
    preview, facts = approval.preview, approval.facts
    is_long = len(call.arguments) > LARGE or (preview is not None and is_large(preview))
    return is_long or (facts is not None and is_large(facts))


async def refusal_of(store: Store, call: Call, approval: Approval | None) -> tuple[str, str] | None:
    """Why an approval does not let this very call run, as a code and a reason; None where it does."""
    refusal, is_long = store.marks.refusal, approval is not None and shows_much(call, approval)
    return await aside(refusal, call, approval) if is_long else refusal(call, approval)


async def is_marked(store: Store, grant: Grant) -> bool:
    """Whether a grant is what somebody gave, whatever was written to its row since."""
    hold = store.marks.hold
    return await aside(hold, grant) if is_large(grant.shown) else hold(grant)


async def lapse_of_giver(driver: Driver, grant: Grant) -> str | None:
    """Why who gave a grant may not give it any more; None where they may, or names are the host's word."""
    if driver.who_decides is None:
        return None
    giver = await driver.who_decides(grant.project, grant.granted_by)
    if giver is None:
        return f"{grant.granted_by}, who gave it, may not decide in this project any more"
    is_accepted = grant.terms.accepts(giver.roles, escalated=grant.escalated)
    if not is_accepted or grant.terms.lacking([giver.roles]):
        return f"{grant.granted_by}, who gave it, does not have the roles any more that it takes"
    return None


async def lapse_of(driver: Driver, grant: Grant) -> str | None:
    """Why a grant counts as not there, whatever its row says; None where it counts for what was claimed with it."""
    if not await is_marked(driver.store, grant):
        return "it does not carry the mark of this gate, so nobody is known to have given it"
    return await lapse_of_giver(driver, grant)


async def is_told(store: Store, call: Call, names: frozenset[str]) -> bool:
    """Whether an event of one of these names tells of the call."""
    return await _tells(store, call.project, call.id, lambda event: event.type in names)


async def is_ended(store: Store, delegation: Delegation) -> bool:
    """Whether an event tells that a delegation was ended: an earlier row of it, mark and all, may have been put back.

    A delegation's events name it where others name their call.
    """
    return await _tells(store, delegation.project, delegation.id, lambda event: event.type == "delegation.ended")


async def lapse_told(store: Store, grant: Grant) -> str | None:
    """Why a grant's events tell another thing than its row: an earlier one, mark and all, may have been put back.

    GrantChangedError where the row has become another one since it was read.
    """
    counted = {use.call_id for use in grant.used}

    def is_later(event: Event) -> bool:
        told = event.data if event.type in GRANT_MOVES else {}
        return told.get("grant_id") == grant.id and told.get("used_by") not in counted

    if not await _tells(store, grant.project, grant.call_id or "", is_later):
        return None
    now = await store.grants(GrantQuery(project=grant.project, id=grant.id))
    if [one.version for one in now] != [grant.version]:
        raise GrantChangedError(f"Grant {grant.id} was used or changed meanwhile.")
    return "its events tell that it was revoked, or used more often than its row says"


async def _tells(store: Store, project: str, call_id: str, is_it: Callable[[Event], bool]) -> bool:
    """Whether an event that tells of a call is such a one.

    Nobody else can write to a store that no other process may use, so there the row is believed.
    """
    after = 0
    while store.is_shared:
        events = await store.events(project, call_id=call_id, after=after, limit=PAGE)
        if any(map(is_it, events)):
            return True
        if len(events) < PAGE:
            break
        after = events[-1].seq
    return False
