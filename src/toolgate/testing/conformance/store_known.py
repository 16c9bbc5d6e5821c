"""What every store may say it knows of a call without being asked for it: what was written last, or nothing."""

from __future__ import annotations

import asyncio

import pytest

from toolgate.errors import ConflictError
from toolgate.kernel.approval import ApprovalStatus
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change
from toolgate.kernel.record import evolve
from toolgate.ports.store import Store
from toolgate.testing.clock import NOON
from toolgate.testing.conformance.rows import PROJECT, a_call, an_approval, commit, decision, insert, step


def asked() -> Call:
    return a_call(status=Status.AWAITING_APPROVAL, approval_id="a1", shown={"path": "/a"})


class KnownLaws:
    """Inherited by StoreConformance. A store that reads without asking anybody knows nothing besides, and may."""

    async def test_what_is_known_of_a_call_is_what_was_written_last(self, store: Store) -> None:
        call, approval = asked(), an_approval()
        await commit(store, insert(call, approvals=(approval,)))
        assert store.known(PROJECT, "c1") in (None, call)
        assert store.known_question("a1") in (None, (approval, call))
        await commit(store, decision(call, approval, yes=True, by="ann"))
        known, question = store.known(PROJECT, "c1"), store.known_question("a1")
        assert known is None or (known.status, known.version) == (Status.APPROVED, 2)
        assert question is None or (question.approval.status, question.call.version) == (ApprovalStatus.APPROVED, 2)

    async def test_nothing_is_known_of_what_nobody_wrote_here_or_what_went_on(self, store: Store) -> None:
        call = asked()
        await commit(store, insert(call, approvals=(an_approval(),)))
        assert store.known("other", "c1") is None
        assert store.known_question("a2") is None
        await commit(store, step(call, Status.CANCELLED))
        assert store.known(PROJECT, "c1") is None
        assert store.known_question("a1") is None

    async def test_whoever_changes_what_is_known_changes_a_copy(self, store: Store) -> None:
        await commit(store, insert(asked(), approvals=(an_approval(),)))
        known = store.known(PROJECT, "c1")
        if known is not None:
            known.shown["path"] = "/b"
        again = await store.call(PROJECT, "c1")
        assert again is not None
        assert again.shown == {"path": "/a"}
        assert store.known(PROJECT, "c1") in (None, asked())

    async def test_what_another_was_heard_to_change_is_known_no_longer(self, store: Store) -> None:
        await commit(store, insert(asked(), approvals=(an_approval(),)))
        store.forget(PROJECT, "c1", 1)  # this very version: its own news
        before = store.known(PROJECT, "c1")
        assert before in (None, asked())
        store.forget(PROJECT, "c1", 2)
        assert store.known(PROJECT, "c1") is None
        assert store.known_question("a1") is None

    async def test_everything_can_be_forgotten(self, store: Store) -> None:
        await commit(store, insert(asked(), approvals=(an_approval(),)))
        store.forget()
        assert store.known(PROJECT, "c1") is None
        assert (await store.call(PROJECT, "c1")) == asked()

    async def test_a_change_made_of_an_outdated_row_is_refused_and_the_row_known_no_longer(self, store: Store) -> None:
        await commit(store, insert(asked(), approvals=(an_approval(),)))
        outdated = asked()
        await commit(store, Change(project=PROJECT, at=NOON, call=evolve(outdated.stay(), claim="x"), expect=1))
        with pytest.raises(ConflictError):
            await commit(store, step(outdated, Status.APPROVED))
        assert store.known(PROJECT, "c1") is None

    async def test_many_reads_of_one_moment_are_answered_each_with_its_own(self, store: Store) -> None:
        for number in range(5):
            await commit(store, insert(a_call(f"c{number}", shown={"n": number})))
        ids = ["c0", "c1", "c2", "none", "c3", "c4", "c0"]
        found = await asyncio.gather(*(store.call(PROJECT, id) for id in ids))
        assert [None if call is None else call.id for call in found] == [*ids[:3], None, *ids[4:]]
        await asyncio.gather(*(store.call("other", id) for id in ids))
