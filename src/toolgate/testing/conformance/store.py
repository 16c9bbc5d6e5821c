"""What every store must do with calls, approvals and undo records; its events and limits are in the files beside."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta
from typing import Any

import pytest

from toolgate.errors import ConflictError, StoreError
from toolgate.kernel.approval import ApprovalStatus, Note
from toolgate.kernel.brake import Brake, Brakes
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change, Reservation
from toolgate.kernel.context import Context, Mode
from toolgate.kernel.event import ChainError
from toolgate.kernel.record import evolve
from toolgate.kernel.undo import UndoState
from toolgate.ports.store import ApprovalQuery, CallQuery, Store
from toolgate.testing.clock import NOON
from toolgate.testing.conformance.rows import (
    PROJECT,
    a_call,
    a_fact,
    an_approval,
    an_undo,
    commit,
    decision,
    insert,
    losers,
    race_tasks,
    race_threads,
    step,
    winners,
)
from toolgate.testing.conformance.store_cursors import CursorLaws
from toolgate.testing.conformance.store_delegations import DelegationLaws
from toolgate.testing.conformance.store_effects import EffectLaws
from toolgate.testing.conformance.store_events import EventLaws
from toolgate.testing.conformance.store_grants import GrantLaws
from toolgate.testing.conformance.store_known import KnownLaws
from toolgate.testing.conformance.store_large import LargeLaws
from toolgate.testing.conformance.store_limits import LimitLaws
from toolgate.testing.conformance.store_records import RecordLaws

RACERS = 100


class StoreConformance(
    CursorLaws, DelegationLaws, EffectLaws, EventLaws, GrantLaws, KnownLaws, LargeLaws, LimitLaws, RecordLaws
):
    """Subclass it with a fixture `store` that gives an empty, open store."""

    async def test_a_committed_call_can_be_read(self, store: Store) -> None:
        await commit(store, insert(a_call()))
        assert await store.call(PROJECT, "c1") == a_call()

    async def test_an_unknown_call_reads_as_none(self, store: Store) -> None:
        await commit(store, insert(a_call()))
        assert await store.call(PROJECT, "c2") is None
        assert await store.call("other", "c1") is None

    async def test_two_projects_may_use_one_call_id(self, store: Store) -> None:
        await commit(store, insert(a_call(tool_name="mine")))
        await commit(store, insert(a_call(project="other", tool_name="theirs")))
        mine, theirs = await store.call(PROJECT, "c1"), await store.call("other", "c1")
        assert mine is not None
        assert theirs is not None
        assert (mine.tool_name, theirs.tool_name) == ("mine", "theirs")

    async def test_every_field_of_a_call_comes_back_unchanged(self, store: Store) -> None:
        written = a_full_call()
        await commit(store, insert(written))
        read = await store.call(PROJECT, written.id)
        assert _fields_of(read) == _fields_of(written)

    async def test_a_large_call_comes_back_whole_and_is_claimed_once_like_a_small_one(self, store: Store) -> None:
        text = b'"%b"' % (b"x" * 500_000)
        made = a_call(arguments=b'{"text":%b}' % text, shown={"text": "x" * 500_000})
        undo = an_undo(data=b'{"before":%b}' % text)
        await commit(store, insert(made, undo=undo))
        claim = step(made, Status.EXECUTING, changes={"result": text, "shown_result": "x" * 500_000})
        await commit(store, claim)
        found, kept = await store.call(PROJECT, made.id), await store.undo(PROJECT, made.id)
        assert found == claim.call
        assert kept is not None
        assert kept.data == undo.data
        with pytest.raises(ConflictError):
            await commit(store, claim)

    async def test_every_field_of_an_approval_comes_back_unchanged(self, store: Store) -> None:
        written = an_approval(
            warn_at=NOON + timedelta(minutes=4, microseconds=17),
            user="ann",
            run_id="r1",
            session_id="s1",
            correlation_id="q1",
            level="full",
            risk="high",
            confidence=42,
            reasons=("first", "second"),
            arguments={"path": "/tmp/é", "deep": [1, 2.5, None, True, {"k": "v"}]},
            preview={"diff": "- a\n+ b"},
            undoable=True,
            requires_reason=True,
            status=ApprovalStatus.DENIED,
            decided_by="bob",
            decided_at=NOON + timedelta(seconds=1),
            reason="no",
        )
        await commit(store, insert(a_call(), approvals=(written,)))
        read = (await store.approvals(ApprovalQuery(id="a1")))[0]
        assert _fields_of(read) == _fields_of(written)

    async def test_every_field_of_an_undo_record_comes_back_unchanged(self, store: Store) -> None:
        written = an_undo(state=UndoState.CLAIMED, fingerprint=b'"\xc3\xa9"', claimed_by="u1")
        await commit(store, insert(a_call(), undo=written))
        assert _fields_of(await store.undo(PROJECT, "c1")) == _fields_of(written)

    async def test_a_call_id_is_inserted_once(self, store: Store) -> None:
        await commit(store, insert(a_call(tool_name="first")))
        with pytest.raises(ConflictError):
            await commit(store, insert(a_call(tool_name="second")))
        assert await store.call(PROJECT, "c1") == a_call(tool_name="first")

    async def test_a_call_that_does_not_exist_cannot_be_changed(self, store: Store) -> None:
        with pytest.raises(ConflictError):
            await commit(store, step(a_call(), Status.EXECUTING))
        assert await store.call(PROJECT, "c1") is None

    async def test_a_change_of_an_old_version_conflicts(self, store: Store) -> None:
        call = a_call()
        await commit(store, insert(call))
        await commit(store, step(call, Status.EXECUTING))
        with pytest.raises(ConflictError):
            await commit(store, step(call, Status.CANCELLED))
        standing = await store.call(PROJECT, "c1")
        assert standing is not None
        assert standing.status is Status.EXECUTING

    async def test_a_conflict_leaves_nothing_behind(self, store: Store) -> None:
        await commit(store, insert(a_call(), events=(a_fact(),)))
        change = insert(
            a_call(),
            events=(a_fact(),),
            approvals=(an_approval(),),
            undo=an_undo(),
            reservations=(Reservation(key="k", limit=1, window_s=60),),
            set_mode=Brakes(whole=Brake(mode=Mode.ALERT)),
        )
        with pytest.raises(ConflictError):
            await commit(store, change)
        await self._only_the_first_fact_is_there(store)

    async def test_an_event_with_an_unknown_name_leaves_nothing_behind(self, store: Store) -> None:
        await commit(store, insert(a_call(), events=(a_fact(),)))
        change = insert(
            a_call("c2"),
            events=(a_fact("c2"), ("tool.sneezed", "c2", {}, None)),
            approvals=(an_approval(call_id="c2"),),
            undo=an_undo(),
            reservations=(Reservation(key="k", limit=1, window_s=60),),
            set_mode=Brakes(whole=Brake(mode=Mode.ALERT)),
        )
        with pytest.raises(ChainError):
            await commit(store, change)
        assert await store.call(PROJECT, "c2") is None
        await self._only_the_first_fact_is_there(store)

    @staticmethod
    async def _only_the_first_fact_is_there(store: Store) -> None:
        assert len(await store.events(PROJECT)) == 1
        assert await store.approvals(ApprovalQuery()) == []
        assert await store.undo(PROJECT, "c1") is None
        assert store.brakes.mode is Mode.NORMAL
        slot = Reservation(key="k", limit=1, window_s=60)
        await commit(store, Change(project=PROJECT, at=NOON, reservations=(slot,)))

    @pytest.mark.parametrize("race", [race_tasks, race_threads])
    async def test_of_many_claimers_exactly_one_wins(self, store: Store, race: Any) -> None:
        call = a_call()
        await commit(store, insert(call))

        async def claim(number: int) -> int:
            await commit(store, step(call, Status.EXECUTING, changes={"owner": str(number)}, events=(a_fact(),)))
            return number

        outcomes = await race(RACERS, claim)
        standing = await store.call(PROJECT, "c1")
        assert standing is not None
        assert [str(number) for number in winners(outcomes)] == [standing.owner]
        assert {type(error) for error in losers(outcomes)} == {ConflictError}
        assert len(await store.events(PROJECT)) == 1

    @pytest.mark.parametrize("race", [race_tasks, race_threads])
    async def test_of_many_deciders_the_first_is_final(self, store: Store, race: Any) -> None:
        call, approval = a_call(status=Status.AWAITING_APPROVAL, approval_id="a1"), an_approval()
        await commit(store, insert(call, approvals=(approval,)))

        async def decide(number: int) -> int:
            await commit(store, decision(call, approval, yes=number % 2 == 0, by=str(number)))
            return number

        won = winners(await race(20, decide))
        kept, standing = (await store.approvals(ApprovalQuery(id="a1")))[0], await store.call(PROJECT, "c1")
        assert standing is not None
        assert [str(number) for number in won] == [kept.decided_by]
        assert (kept.status is ApprovalStatus.APPROVED) == (standing.status is Status.APPROVED)

    @pytest.mark.parametrize("race", [race_tasks, race_threads])
    async def test_of_many_undoers_exactly_one_claims_the_record(self, store: Store, race: Any) -> None:
        undo = an_undo()
        await commit(store, insert(a_call(status=Status.COMPLETED), undo=undo))

        async def claim(number: int) -> int:
            claimed = evolve(undo, state=UndoState.CLAIMED, claimed_by=f"u{number}")
            change = insert(a_call(f"u{number}"), undo=claimed, undo_expect=UndoState.AVAILABLE)
            await commit(store, change)
            return number

        won = winners(await race(20, claim))
        kept = await store.undo(PROJECT, "c1")
        assert kept is not None
        assert [f"u{number}" for number in won] == [kept.claimed_by]
        assert [call.id for call in await store.calls(CallQuery())] == ["c1", kept.claimed_by]

    async def test_an_undo_record_that_is_not_there_cannot_be_claimed(self, store: Store) -> None:
        change = insert(a_call(), undo=an_undo("missing"), undo_expect=UndoState.AVAILABLE)
        with pytest.raises(ConflictError):
            await commit(store, change)
        assert await store.call(PROJECT, "c1") is None

    async def test_an_undo_record_is_replaced_where_nothing_is_expected_of_it(self, store: Store) -> None:
        await commit(store, insert(a_call(), undo=an_undo(state=UndoState.PREPARED)))
        await commit(store, step(a_call(), Status.EXECUTING, undo=an_undo(data=b'{"new":2}')))
        kept = await store.undo(PROJECT, "c1")
        assert kept == an_undo(data=b'{"new":2}')

    async def test_approvals_are_found_by_project_status_call_and_id(self, store: Store) -> None:
        later = [NOON + timedelta(seconds=number) for number in range(4)]
        closed = an_approval("a2", status=ApprovalStatus.APPROVED, created_at=later[1])
        other = an_approval("a3", project="other", created_at=later[2])
        last = an_approval("a4", call_id="c9", created_at=later[3])
        await commit(store, insert(a_call(), approvals=(an_approval("a1"), closed)))
        await commit(store, insert(a_call(project="other"), approvals=(other,)))
        await commit(store, insert(a_call("c9"), approvals=(last,)))
        assert await _ids(store, project=PROJECT) == ["a1", "a2", "a4"]
        assert await _ids(store, status=ApprovalStatus.PENDING) == ["a1", "a3", "a4"]
        assert await _ids(store, project=PROJECT, status=ApprovalStatus.APPROVED) == ["a2"]
        assert await _ids(store, call_id="c9") == ["a4"]
        assert await _ids(store, id="a3") == ["a3"]
        assert await _ids(store, id="a3", project=PROJECT) == []
        assert await _ids(store, id="nobody") == []
        assert await _ids(store, limit=2) == ["a1", "a2"]

    async def test_a_question_is_an_approval_with_its_call(self, store: Store) -> None:
        approval = an_approval(id="a1", votes=(Note("ann", NOON),))
        await commit(store, insert(a_call(approval_id="a1"), approvals=(approval,)))
        found = await store.question("a1")
        assert found == (approval, a_call(approval_id="a1"))
        assert await store.question("a1", project=PROJECT) == found
        assert await store.question("a1", project="other") is None
        assert await store.question("a2") is None
        later = a_call(approval_id="a1", version=2, status=Status.APPROVED)
        closed = approval.close(ApprovalStatus.APPROVED, at=NOON, by="bob")
        await commit(store, Change(project=PROJECT, at=NOON, call=later, expect=1, approvals=(closed,)))
        assert await store.question("a1") == (closed, later)

    async def test_a_closed_approval_leaves_the_list_of_open_ones(self, store: Store) -> None:
        call, approval = a_call(status=Status.AWAITING_APPROVAL), an_approval()
        await commit(store, insert(call, approvals=(approval,)))
        await commit(store, decision(call, approval, yes=False, by="ann"))
        assert await _ids(store, status=ApprovalStatus.PENDING) == []
        assert await _ids(store, status=ApprovalStatus.DENIED) == ["a1"]

    async def test_whoever_changes_an_approval_they_read_changes_only_their_copy(self, store: Store) -> None:
        approval = an_approval(arguments={"path": "/a"}, preview={"lines": [1]}, facts={"paths": [1]})
        await commit(store, insert(a_call(), approvals=(approval,)))
        for query in (ApprovalQuery(id="a1"), ApprovalQuery(status=ApprovalStatus.PENDING)):
            read = (await store.approvals(query))[0]
            read.arguments["path"] = "/b"
            read.preview["lines"].append(2)
            read.facts["paths"].append(2)
            again = (await store.approvals(query))[0]
            shown = (again.arguments, again.preview, again.facts)
            assert shown == ({"path": "/a"}, {"lines": [1]}, {"paths": [1]})

    async def test_calls_are_found_by_project_status_and_run(self, store: Store) -> None:
        await commit(store, insert(a_call("c1", context=Context(run_id="r1"))))
        await commit(store, insert(a_call("c2", status=Status.COMPLETED, context=Context(run_id="r1"))))
        await commit(store, insert(a_call("c3", project="other")))
        assert await _calls(store, project=PROJECT) == ["c1", "c2"]
        assert await _calls(store, run_id="r1", statuses=frozenset({Status.COMPLETED})) == ["c2"]
        assert await _calls(store, statuses=frozenset({Status.APPROVED})) == ["c1", "c3"]
        assert await _calls(store, run_id="r2") == []

    async def test_calls_are_listed_oldest_first_page_by_page(self, store: Store) -> None:
        for number in (3, 1, 2, 0):
            await commit(store, insert(a_call(f"c{number}", created_at=NOON + timedelta(seconds=number))))
        page = await store.calls(CallQuery(limit=2))
        assert [call.id for call in page] == ["c0", "c1"]
        rest = await store.calls(CallQuery(after=page[-1]))
        assert [call.id for call in rest] == ["c2", "c3"]
        assert await _calls(store, after=rest[-1]) == []

    async def test_calls_are_listed_newest_first_page_by_page_too(self, store: Store) -> None:
        for number in (3, 1, 2, 0):
            name = "odd" if number % 2 else "even"
            written = a_call(f"c{number}", tool_name=name, created_at=NOON + timedelta(seconds=number))
            await commit(store, insert(written))
        page = await store.calls(CallQuery(newest_first=True, limit=2))
        assert [call.id for call in page] == ["c3", "c2"]
        assert await _calls(store, newest_first=True, after=page[-1]) == ["c1", "c0"]
        assert await _calls(store, newest_first=True, tool_name="odd") == ["c3", "c1"]
        assert await _calls(store, newest_first=True, since=NOON + timedelta(seconds=1), after=page[0]) == ["c2", "c1"]

    async def test_pages_keep_apart_calls_of_one_id_and_time_in_several_projects(self, store: Store) -> None:
        for project in ("two", "one", "three"):
            await commit(store, insert(a_call("same", project=project)))
        seen: list[Call] = []
        while page := await store.calls(CallQuery(after=seen[-1] if seen else None, limit=1)):
            seen += page
        assert [call.project for call in seen] == ["one", "three", "two"]
        assert await _calls(store, project="two", after=seen[0]) == ["same"]

    async def test_a_closed_store_takes_nothing_more(self, store: Store) -> None:
        await commit(store, insert(a_call()))
        await store.close()
        with pytest.raises(StoreError):
            await commit(store, insert(a_call("c2")))

    async def test_a_store_can_be_closed_twice(self, store: Store) -> None:
        await store.close()
        await store.close()


def a_full_call() -> Call:
    """A call with no field left at its default."""
    context = Context(
        principal="agent:7",
        roles=frozenset({"reader", "writer"}),
        user="ann",
        project=PROJECT,
        session_id="s1",
        run_id="r1",
        request_id="q1",
        behavior="build",
        trace_id="t1",
        span_id="p1",
        parent_call_id="c0",
    )
    return a_call(
        "full",
        context=context,
        tool_name="deploy",
        created_at=NOON + timedelta(microseconds=123456),
        arguments='{"name":"é\\u0000"}'.encode(),
        shown={"name": "é", "deep": [1, 2.5, None, True, {"k": "v"}]},
        definition_hash="ab" * 32,
        status=Status.UNKNOWN,
        version=7,
        undo_of="c0",
        forced=True,
        has_effects=False,
        idempotent=True,
        placement="worker",
        policy_revision="rev9",
        reasons=("one", "two"),
        risk="high",
        confidence=61,
        level="full",
        approval_timeout_s=12.5,
        approval_id="a1",
        approved_by="bob",
        approved_at=NOON + timedelta(seconds=1),
        preconditions=b'{"etag":1}',
        preview={"diff": ["+"]},
        owner="boot",
        attempt=2,
        fence="f1",
        due_at=NOON + timedelta(seconds=9),
        started_at=NOON + timedelta(seconds=2),
        completed_at=NOON + timedelta(seconds=3),
        duration_ms=1000.25,
        result=b'{"ok":true}',
        shown_result={"ok": True},
        artifacts=({"kind": "file", "size": 3},),
        error="broke",
        error_code="execution_failed",
    )


def _fields_of(row: Any) -> dict[str, Any]:
    return {field.name: getattr(row, field.name) for field in fields(row)}


async def _ids(store: Store, **query: Any) -> list[str]:
    return [approval.id for approval in await store.approvals(ApprovalQuery(**query))]


async def _calls(store: Store, **query: Any) -> list[str]:
    return [call.id for call in await store.calls(CallQuery(**query))]
