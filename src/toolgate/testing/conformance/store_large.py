"""What every store must do with arguments and undo data of hundreds of kilobytes, however it keeps them."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import orjson

from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change
from toolgate.kernel.record import evolve
from toolgate.kernel.undo import UndoRecord, UndoState
from toolgate.ports.store import CallQuery, Store
from toolgate.testing.clock import NOON
from toolgate.testing.conformance.rows import PROJECT, a_call, an_approval, an_undo, commit, insert, step

LONG = "a line of a long text\n" * 10_000
UNDO = orjson.dumps({"before": LONG})


def large(id: str = "c1", *, masked: bool = False, **fields: Any) -> Call:
    """A call with large arguments, whose keys are not in the order in which they are sorted."""
    value = {"path": "a.txt", "content": LONG, "at": {"y": 1, "b": [2, LONG]}}
    shown = {**value, "content": "***"} if masked else value
    return a_call(id, arguments=orjson.dumps(value, option=orjson.OPT_SORT_KEYS), shown=shown, **fields)


def same(found: Call | None, call: Call) -> bool:
    """Whether this is what was stored, down to the order of the view's keys."""
    assert found is not None
    views = json.dumps(found.shown) == json.dumps(call.shown)
    return views and (found.arguments, found.preconditions) == (call.arguments, call.preconditions)


class LargeLaws:
    """Inherited by StoreConformance."""

    async def test_a_large_call_is_the_same_after_every_change(self, store: Store) -> None:
        for id, masked in (("c1", False), ("c2", True)):
            call = large(id, masked=masked, preconditions=b'{"sha256":"x"}')
            await commit(store, insert(call))
            assert same(await store.call(PROJECT, id), call)
            claimed = step(call, Status.EXECUTING)
            await commit(store, claimed)
            assert claimed.call is not None
            await commit(store, step(claimed.call, Status.COMPLETED, changes={"result": b"1"}))
            found = await store.call(PROJECT, id)
            assert same(found, call)
            assert found is not None
            assert (found.status, found.version, found.result) == (Status.COMPLETED, 3, b"1")

    async def test_large_calls_are_listed_among_others(self, store: Store) -> None:
        calls = [large("c1"), a_call("c2", arguments=b'{"n":1}', shown={"n": 1}), large("c3", masked=True)]
        for call in calls:
            await commit(store, insert(call))
        found = {call.id: call for call in await store.calls(CallQuery(project=PROJECT))}
        assert [same(found[call.id], call) for call in calls] == [True] * 3

    async def test_a_question_about_a_large_call_has_it_whole(self, store: Store) -> None:
        asked = large(status=Status.AWAITING_APPROVAL, approval_id="a1")
        await commit(store, insert(asked, approvals=(an_approval(arguments=asked.shown),)))
        found = await store.question("a1")
        assert found is not None
        assert same(found.call, asked)

    async def test_arguments_may_become_large_and_small_again(self, store: Store) -> None:
        small = a_call(arguments=b'{"n":1}', shown={"n": 1}, status=Status.AWAITING_APPROVAL)
        await commit(store, insert(small))
        grown = evolve(small, arguments=large().arguments, shown=large().shown, version=2)
        await commit(store, Change(project=PROJECT, at=NOON, call=grown, expect=1, rewrites=True))
        assert same(await store.call(PROJECT, "c1"), grown)
        shrunk = evolve(small, arguments=b'{"n":2}', shown={"n": 2}, version=3)
        await commit(store, Change(project=PROJECT, at=NOON, call=shrunk, expect=2, rewrites=True))
        assert same(await store.call(PROJECT, "c1"), shrunk)

    async def test_large_undo_data_need_be_given_once(self, store: Store) -> None:
        kept, call = an_undo(data=UNDO, state=UndoState.PREPARED), large()
        await commit(store, insert(call, undo=kept))
        later = evolve(kept, state=UndoState.AVAILABLE, fingerprint=b"now", expires_at=NOON + timedelta(hours=2))
        await commit(store, step(call, Status.EXECUTING, undo=later, undo_stored=True))
        assert await store.undo(PROJECT, "c1") == later

    async def test_undo_data_that_is_said_to_be_stored_is_never_lost(self, store: Store) -> None:
        """Its time may be over before the call ends, and then nothing is there any more."""
        kept, call = an_undo(data=UNDO, state=UndoState.PREPARED, expires_at=NOON), large()
        await commit(store, insert(call, undo=kept))
        await store.due(NOON + timedelta(minutes=1))
        assert await store.undo(PROJECT, "c1") is None
        later = evolve(kept, state=UndoState.AVAILABLE, expires_at=NOON + timedelta(hours=1))
        await commit(store, step(call, Status.EXECUTING, undo=later, undo_stored=True))
        assert await store.undo(PROJECT, "c1") == later

    async def test_large_undo_data_is_replaced_and_forgotten(self, store: Store) -> None:
        call = large()
        await commit(store, insert(call, undo=an_undo(data=UNDO)))
        for version, data in enumerate((orjson.dumps({"after": LONG}), b"{}", UNDO, b'{"n":1}'), 1):
            undo: UndoRecord = an_undo(data=data, state=UndoState.DONE if data == b"{}" else UndoState.AVAILABLE)
            change = Change(project=PROJECT, at=NOON, call=evolve(call, version=version + 1), expect=version, undo=undo)
            await commit(store, change)
            assert await store.undo(PROJECT, "c1") == undo
