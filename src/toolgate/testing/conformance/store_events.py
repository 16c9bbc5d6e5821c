"""What every store must do with events: one gap-free, verifiable chain per project, whoever writes at once."""

from __future__ import annotations

from datetime import timedelta

import pytest

from toolgate.errors import AlreadyToldError
from toolgate.kernel.call import Status
from toolgate.kernel.change import Change
from toolgate.kernel.event import BEGUN, Draft, genesis, verify
from toolgate.ports.store import Store
from toolgate.testing.clock import NOON
from toolgate.testing.conformance.rows import PROJECT, a_call, a_fact, commit, insert, losers, race_threads, step

WRITERS = 8
EACH = 25


class EventLaws:
    """Inherited by StoreConformance."""

    async def test_events_keep_their_order_and_content(self, store: Store) -> None:
        at = NOON + timedelta(microseconds=5)
        drafts = tuple(a_fact(f"c{number}", text="é", number=number) for number in range(3))
        await commit(store, Change(project=PROJECT, at=at, events=drafts))
        events = await store.events(PROJECT)
        assert [(event.seq, event.call_id, event.data["number"]) for event in events] == [
            (1, "c0", 0),
            (2, "c1", 1),
            (3, "c2", 2),
        ]
        assert {(event.project, event.type, event.at) for event in events} == {(PROJECT, "tool.progress", at)}

    async def test_the_chain_starts_at_the_project_and_verifies(self, store: Store) -> None:
        for number in range(5):
            await commit(store, insert(a_call(f"c{number}"), events=(a_fact(f"c{number}"), a_fact(f"c{number}"))))
        events = await store.events(PROJECT)
        assert events[0].prev == genesis(PROJECT)
        assert verify(events) == 10

    async def test_a_page_verifies_from_the_event_before_it(self, store: Store) -> None:
        await commit(store, Change(project=PROJECT, at=NOON, events=tuple(a_fact(n=n) for n in range(6))))
        events = await store.events(PROJECT)
        page = await store.events(PROJECT, after=4)
        assert verify(page, after=(4, events[3].hash)) == 2

    async def test_the_head_is_the_last_event_and_at_first_the_beginning(self, store: Store) -> None:
        first = genesis(PROJECT)
        assert await store.head(PROJECT) == (0, first, 0, first)
        await commit(store, Change(project=PROJECT, at=NOON, events=(a_fact(), a_fact())))
        await commit(store, Change(project="other", at=NOON, events=(a_fact(),)))
        last = (await store.events(PROJECT))[-1]
        assert await store.head(PROJECT) == (2, last.hash, 0, first)

    async def test_each_project_has_its_own_sequence(self, store: Store) -> None:
        await commit(store, Change(project="one", at=NOON, events=(a_fact(), a_fact())))
        await commit(store, Change(project="two", at=NOON, events=(a_fact(),)))
        assert [event.seq for event in await store.events("one")] == [1, 2]
        assert [event.seq for event in await store.events("two")] == [1]
        assert await store.events("three") == []

    async def test_events_are_paged_by_sequence_number(self, store: Store) -> None:
        await commit(store, Change(project=PROJECT, at=NOON, events=tuple(a_fact() for _ in range(5))))
        assert [event.seq for event in await store.events(PROJECT, after=1, limit=2)] == [2, 3]
        assert [event.seq for event in await store.events(PROJECT, after=4)] == [5]
        assert await store.events(PROJECT, after=5) == []

    async def test_events_of_one_call_are_found_among_others(self, store: Store) -> None:
        drafts = tuple(a_fact(call_id) for call_id in ("a", "b", "a", None, "b", "a"))
        await commit(store, Change(project=PROJECT, at=NOON, events=drafts))
        assert [event.seq for event in await store.events(PROJECT, call_id="a")] == [1, 3, 6]
        assert [event.seq for event in await store.events(PROJECT, call_id="a", after=1, limit=1)] == [3]
        assert await store.events(PROJECT, call_id="c") == []

    async def test_events_written_from_many_threads_form_one_chain_without_gaps(self, store: Store) -> None:
        async def write(writer: int) -> None:
            for number in range(EACH):
                call_id = f"w{writer}n{number}"
                await commit(store, insert(a_call(call_id), events=(a_fact(call_id, part=1), a_fact(call_id, part=2))))

        assert losers(await race_threads(WRITERS, write)) == []
        events = await store.events(PROJECT, limit=10_000)
        assert [event.seq for event in events] == list(range(1, WRITERS * EACH * 2 + 1))
        assert verify(events) == len(events)
        pairs = list(zip(events[::2], events[1::2], strict=True))
        assert all(first.call_id == second.call_id for first, second in pairs)
        assert all((first.data["part"], second.data["part"]) == (1, 2) for first, second in pairs)

    async def test_a_call_can_be_read_once_its_commit_returned(self, store: Store) -> None:
        async def write_and_read(writer: int) -> None:
            for number in range(EACH):
                call_id = f"w{writer}n{number}"
                await commit(store, insert(a_call(call_id), events=(a_fact(call_id),)))
                assert await store.call(PROJECT, call_id) == a_call(call_id)
                assert len(await store.events(PROJECT, call_id=call_id)) == 1

        assert losers(await race_threads(WRITERS, write_and_read)) == []

    async def test_a_change_is_refused_whose_calls_events_tell_what_they_must_not(self, store: Store) -> None:
        """Whoever can write to the database may put a row back, mark and all; its events stay."""
        if not store.is_shared:
            return  # nobody else can write to it, so it need not look
        begun: Draft = ("tool.started", "c1", {}, None)
        await commit(store, insert(a_call("c1"), events=(begun,)))
        await commit(store, insert(a_call("c2"), events=(a_fact("c2"),)))
        claims = [step(a_call(id), Status.EXECUTING, untold=BEGUN, events=(a_fact(id),)) for id in ("c1", "c2")]
        with pytest.raises(AlreadyToldError):
            await commit(store, claims[0])
        await commit(store, claims[1])
        first, second = await store.call(PROJECT, "c1"), await store.call(PROJECT, "c2")
        assert (first and first.status, second and second.status) == (Status.APPROVED, Status.EXECUTING)
        assert [event.call_id for event in await store.events(PROJECT)] == ["c1", "c2", "c2"]
