"""What every store must do with delegations, and with the votes that were given by them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from toolgate.errors import ConflictError
from toolgate.kernel.approval import Note
from toolgate.kernel.change import Change
from toolgate.kernel.delegation import Delegation
from toolgate.ports.store import ApprovalQuery, DelegationQuery, Store
from toolgate.testing.clock import NOON
from toolgate.testing.conformance.rows import (
    PROJECT,
    a_call,
    a_fact,
    an_approval,
    commit,
    insert,
    losers,
    race_tasks,
    race_threads,
    winners,
)


def a_delegation(id: str = "d1", **fields: Any) -> Delegation:
    """The vote of ann, lent to bob for an hour."""
    standard: dict[str, Any] = {
        "project": PROJECT,
        "giver": "ann",
        "delegate": "bob",
        "created_at": NOON,
        "expires_at": NOON + timedelta(hours=1),
    }
    return Delegation(id=id, **{**standard, **fields})


def lend(delegation: Delegation, **fields: Any) -> Change:
    return Change(project=delegation.project, at=NOON, delegation=delegation, **fields)


class DelegationLaws:
    """Inherited by StoreConformance."""

    async def test_a_delegation_comes_back_as_it_was_put(self, store: Store) -> None:
        given = store.marks.put(a_delegation(tools=("pay", "write"), reason="away"))
        await commit(store, lend(given))
        assert await store.delegations(DelegationQuery(id="d1")) == [given]
        ended = store.marks.put(given.end(by="root", now=NOON))
        await commit(store, lend(ended))
        found = await store.delegations(DelegationQuery(id="d1"))
        assert found == [ended]
        assert store.marks.hold(found[0])

    async def test_delegations_are_found_by_what_is_asked_for(self, store: Store) -> None:
        later = NOON + timedelta(minutes=1)
        given = [
            a_delegation("d1"),
            a_delegation("d2", giver="cid", created_at=later),
            a_delegation("d3", delegate="dan", created_at=later),
            a_delegation("d4", project="other", created_at=later),
            a_delegation("d5", created_at=later, expires_at=later),
        ]
        for one in given:
            await commit(store, lend(one))
        await commit(store, lend(given[1].end(by="cid", now=NOON)))

        async def ids(**query: Any) -> list[str]:
            return sorted(one.id for one in await store.delegations(DelegationQuery(**query)))

        assert await ids() == ["d1", "d2", "d3", "d4", "d5"]
        assert await ids(limit=1) == ["d1"]
        assert await ids(project="other") == ["d4"]
        assert await ids(giver="cid") == ["d2"]
        assert await ids(delegate="dan") == ["d3"]
        assert await ids(project=PROJECT, live_at=later) == ["d1", "d3"]

    async def test_a_delegation_that_is_not_as_expected_refuses_the_whole_change(self, store: Store) -> None:
        ended = a_delegation().end(by="ann", now=NOON)
        with pytest.raises(ConflictError):
            await commit(store, lend(ended, events=(a_fact(),)))
        await commit(store, lend(a_delegation()))
        with pytest.raises(ConflictError):
            await commit(store, lend(a_delegation(giver="eve"), events=(a_fact(),)))
        assert await store.events(PROJECT) == []
        assert await store.delegations(DelegationQuery()) == [a_delegation()]

    @pytest.mark.parametrize("race", [race_tasks, race_threads])
    async def test_a_delegation_is_ended_once_by_many_at_once(self, store: Store, race: Any) -> None:
        await commit(store, lend(a_delegation()))

        async def end(number: int) -> None:
            await commit(store, lend(a_delegation().end(by=f"root{number}", now=NOON)))

        outcomes = await race(20, end)
        assert len(winners(outcomes)) == 1
        assert all(isinstance(error, ConflictError) for error in losers(outcomes))

    async def test_whose_vote_somebody_gave_comes_back(self, store: Store) -> None:
        votes = (Note("bob", NOON, "fine", "ann"), Note("cid", NOON))
        approval = store.marks.put(an_approval(votes=votes))
        await commit(store, insert(a_call(), approvals=(approval,)))
        found = await store.approvals(ApprovalQuery(id="a1"))
        assert found == [approval]
        assert store.marks.hold(found[0])
