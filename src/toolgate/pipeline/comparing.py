"""Does what a store has of a call say what its events say? Looked at while others change it."""

from __future__ import annotations

from toolgate.kernel.comparing import Difference, History, compare_all
from toolgate.kernel.event import Event
from toolgate.ports.store import ApprovalQuery, Store

PAGE = 1000
_UNREADABLE = (AttributeError, KeyError, TypeError, ValueError)


async def differences_of(store: Store, project: str, call_id: str) -> list[Difference]:
    """What the rows of a call and its approvals say that its events do not, or the other way round.

    Nothing where the call is changed meanwhile: later events will tell of it. Nor in a store that no other process may
    use: nobody else can write to that.
    """
    if not store.is_shared:
        return []
    try:
        call = await store.call(project, call_id)
        head = await store.head(project)
        history = History(await _events(store, project, call_id), is_cut=head.base_seq > 0)
        approvals = await store.approvals(ApprovalQuery(project=project, call_id=call_id))
        again = await store.call(project, call_id)
    except _UNREADABLE:
        return [Difference(project, "call", call_id, "its row, or that of its approval, cannot be read")]
    if call is None or again is None:
        return [Difference(project, "call", call_id, "its row is missing")]
    return [*compare_all(call, approvals, history, store.marks)] if call.version == again.version else []


async def _events(store: Store, project: str, call_id: str) -> list[Event]:
    found: list[Event] = []
    while page := await store.events(project, call_id=call_id, after=found[-1].seq if found else 0, limit=PAGE):
        found += page
    return [event for event in found if event.type != "tool.progress"]
