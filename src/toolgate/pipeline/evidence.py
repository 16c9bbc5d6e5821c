"""What the chain tells of a call whose row says that it is yet to run: a row can be set back, an event cannot."""

from __future__ import annotations

from toolgate.kernel.call import Call
from toolgate.ports.store import Store

BEGUN = frozenset({"tool.started", "tool.undo_started"})
"""Told by every claim."""
ENDED = frozenset({"tool.completed", "tool.failed", "tool.cancelled", "tool.denied", "tool.undone", "tool.undo_failed"})
"""Told when nothing more is to happen. A call that is tried again has told none of them."""
PAGE = 1000


async def is_told(store: Store, call: Call, names: frozenset[str]) -> bool:
    """Whether an event of one of these names tells of the call.

    Nobody else can write to a store that no other process may use, so there the row is believed.
    """
    after = 0
    while store.is_shared:
        events = await store.events(call.project, call_id=call.id, after=after, limit=PAGE)
        if any(event.type in names for event in events):
            return True
        if len(events) < PAGE:
            break
        after = events[-1].seq
    return False
