"""What every store must do with grants, and with arguments that a person changed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from toolgate.errors import GrantChangedError
from toolgate.kernel.approval import Note
from toolgate.kernel.call import Status
from toolgate.kernel.change import Change
from toolgate.kernel.grant import Grant
from toolgate.kernel.record import evolve
from toolgate.kernel.terms import ApprovalLevel, ApprovalTerms
from toolgate.ports.store import ApprovalQuery, GrantQuery, Store
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
    step,
    winners,
)


def a_grant(id: str = "g1", **fields: Any) -> Grant:
    """A grant that can be used three times within an hour."""
    standard: dict[str, Any] = {
        "project": PROJECT,
        "tool_name": "write",
        "definition_hash": "h",
        "requester": "agent:local",
        "pattern": {"path": {"like": "notes/*"}, "text": "any"},
        "shown": {"path": {"like": "notes/*"}, "text": "any"},
        "nonce": "n",
        "approval_id": "a1",
        "granted_by": "ann",
        "created_at": NOON,
        "expires_at": NOON + timedelta(hours=1),
        "max_uses": 3,
    }
    return Grant(id=id, **{**standard, **fields})


def put(grant: Grant, expect: int | None, **fields: Any) -> Change:
    return Change(project=grant.project, at=NOON, grant=grant, grant_expect=expect, **fields)


class GrantLaws:
    """Inherited by StoreConformance."""

    async def test_a_grant_comes_back_as_it_was_put(self, store: Store) -> None:
        terms = ApprovalTerms(level=ApprovalLevel.FULL, approvers=(frozenset({"lead"}),))
        grant = a_grant(user="ann", level="full", terms=terms, pattern={"n": {"digest": "d"}}, shown={"n": {"is": 1}})
        grant = store.marks.put(evolve(grant, escalated=True))
        await commit(store, put(grant, None))
        assert await store.grants(GrantQuery(id="g1")) == [grant]
        used = store.marks.put(grant.use("c1", NOON).revoke(by="bob", reason="enough", now=NOON))
        await commit(store, put(used, grant.version))
        assert await store.grants(GrantQuery(id="g1")) == [used]
        assert store.marks.hold((await store.grants(GrantQuery(id="g1")))[0])

    async def test_grants_are_found_by_what_is_asked_for(self, store: Store) -> None:
        later = NOON + timedelta(minutes=1)
        grants = [
            a_grant("g1"),
            a_grant("g2", tool_name="read", created_at=later),
            a_grant("g3", project="other", created_at=later),
            a_grant("g4", max_uses=1, created_at=later).use("c1", NOON),
            a_grant("g5", created_at=later).revoke(by="ann", reason=None, now=NOON),
            a_grant("g6", created_at=later, expires_at=later),
        ]
        for grant in grants:
            await commit(store, put(grant, None))

        async def ids(**query: Any) -> list[str]:
            return [grant.id for grant in await store.grants(GrantQuery(**query))]

        assert len(await ids()) == 6
        assert await ids(limit=1) == ["g1"]
        assert await ids(project="other") == ["g3"]
        assert await ids(tool_name="read") == ["g2"]
        assert await ids(project=PROJECT, tool_name="write", live_at=later) == ["g1"]

    async def test_a_grant_of_an_unexpected_version_refuses_the_whole_change(self, store: Store) -> None:
        with pytest.raises(GrantChangedError):
            await commit(store, put(a_grant(), 1))
        await commit(store, put(a_grant(), None))
        used = a_grant().use("c1", NOON)
        with pytest.raises(GrantChangedError):
            await commit(store, insert(a_call(), grant=used, grant_expect=2, events=(a_fact(),)))
        with pytest.raises(GrantChangedError):
            await commit(store, put(used, None))
        assert await store.call(PROJECT, "c1") is None
        assert await store.events(PROJECT) == []
        assert await store.grants(GrantQuery(id="g1")) == [a_grant()]

    @pytest.mark.parametrize("race", [race_tasks, race_threads])
    async def test_one_version_of_a_grant_is_used_once_by_many_at_once(self, store: Store, race: Any) -> None:
        await commit(store, put(a_grant(), None))

        async def use(number: int) -> None:
            call = a_call(f"c{number}")
            await commit(store, insert(call, grant=a_grant().use(call.id, NOON), grant_expect=1))

        outcomes = await race(30, use)
        assert len(winners(outcomes)) == 1
        assert {type(error) for error in losers(outcomes)} == {GrantChangedError}
        (grant,) = await store.grants(GrantQuery(id="g1"))
        assert len(grant.used) == 1

    async def test_rewritten_arguments_are_what_is_read_back(self, store: Store) -> None:
        asked = a_call(status=Status.AWAITING_APPROVAL, arguments=b'{"a":1}', shown={"a": 1})
        await commit(store, insert(asked))
        edited = evolve(asked, arguments=b'{"a":2}', shown={"a": 2}, preconditions=b"7")
        await commit(store, step(edited, Status.APPROVED, rewrites=True))
        standing = await store.call(PROJECT, "c1")
        assert standing is not None
        assert (standing.arguments, standing.shown, standing.preconditions) == (b'{"a":2}', {"a": 2}, b"7")

    async def test_what_people_said_about_a_question_comes_back(self, store: Store) -> None:
        approval = an_approval(
            claim="trust me",
            factors=("70: base",),
            votes=(Note("ann", NOON, None), Note("bob", NOON, "fine", roles=("cfo", "lead"))),
            comments=(Note("cid", NOON, "hm"),),
            escalate_at=NOON,
            escalated=True,
            edited_from="a0",
            difference={"a": {"before": 1, "after": 2}},
            input_schema={"type": "object"},
            undo_ttl_s=60.0,
            approve_label="Yes",
            reject_label="No",
        )
        await commit(store, insert(a_call(), approvals=(approval,)))
        assert await store.approvals(ApprovalQuery(id="a1")) == [approval]
