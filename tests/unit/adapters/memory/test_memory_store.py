from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from toolgate.adapters.memory.store import BATCH, EVENTS_PER_CALL, MemoryStore
from toolgate.errors import ConflictError
from toolgate.kernel.approval import ApprovalStatus
from toolgate.kernel.call import Status
from toolgate.kernel.change import Change
from toolgate.kernel.event import verify
from toolgate.kernel.record import evolve
from toolgate.ports.store import ApprovalQuery, CallQuery
from toolgate.testing.clock import NOON
from toolgate.testing.conformance.rows import PROJECT, a_call, a_fact, an_approval, commit, insert, step


async def test_finished_calls_are_forgotten_beyond_what_is_retained() -> None:
    store = MemoryStore(retain=3)
    for number in range(5):
        await commit(store, insert(a_call(f"c{number}", status=Status.COMPLETED)))
    assert [call.id for call in await store.calls(CallQuery())] == ["c2", "c3", "c4"]


async def test_the_approval_of_a_forgotten_call_is_forgotten_too() -> None:
    store = MemoryStore(retain=1)
    closed = an_approval(status=ApprovalStatus.DENIED)
    await commit(store, insert(a_call(status=Status.REJECTED, approval_id="a1"), approvals=(closed,)))
    await commit(store, insert(a_call("c2", status=Status.COMPLETED)))
    assert await store.approvals(ApprovalQuery()) == []


async def test_calls_that_are_not_finished_are_never_forgotten() -> None:
    store = MemoryStore(retain=1)
    for number, status in enumerate((Status.AWAITING_APPROVAL, Status.EXECUTING, Status.UNKNOWN, Status.COMPLETED)):
        await commit(store, insert(a_call(f"c{number}", status=status)))
    await commit(store, insert(a_call("last", status=Status.COMPLETED)))
    assert [call.id for call in await store.calls(CallQuery())] == ["c0", "c1", "c2", "last"]


async def test_a_settled_call_is_forgotten_in_its_turn() -> None:
    store = MemoryStore(retain=1)
    unknown = a_call(status=Status.UNKNOWN)
    await commit(store, insert(unknown))
    await commit(store, step(unknown, Status.COMPLETED))
    await commit(store, insert(a_call("c2", status=Status.COMPLETED)))
    assert await store.call(PROJECT, "c1") is None


async def test_old_events_are_forgotten_and_the_rest_still_verifies() -> None:
    store = MemoryStore(retain=2)
    kept = 2 * EVENTS_PER_CALL
    everything = []
    for _ in range(kept + 5):
        await commit(store, Change(project=PROJECT, at=NOON, events=(a_fact(),)))
        everything.append((await store.events(PROJECT))[-1])
    events = await store.events(PROJECT)
    assert [event.seq for event in events] == list(range(6, kept + 6))
    assert verify(events, after=(5, everything[4].hash)) == kept
    assert [event.seq for event in await store.events(PROJECT, after=2, limit=2)] == [6, 7]


async def test_a_page_after_a_call_that_is_gone_starts_where_it_was() -> None:
    store = MemoryStore()
    for name in ("c1", "c3"):
        await commit(store, insert(a_call(name)))
    assert [call.id for call in await store.calls(CallQuery(after=a_call("c2")))] == ["c3"]


async def test_deadlines_that_no_longer_count_are_dropped() -> None:
    store = MemoryStore()
    call = a_call(due_at=NOON)
    await commit(store, insert(call))
    for number in range(1, 50):
        moved = evolve(call.stay(), due_at=NOON + timedelta(seconds=number))
        await commit(store, Change(project=PROJECT, at=NOON, call=moved, expect=call.version))
        call = moved
    assert (await store.due(NOON + timedelta(seconds=48))).calls == []
    assert len(store._due) == 1


def a_lasting(number: int, **fields: Any) -> Change:
    return insert(a_call(f"c{number}"), events=(a_fact(f"c{number}", n=number), a_fact(None)), lasting=True, **fields)


@pytest.mark.parametrize("count", [1, BATCH, BATCH + 1, 2 * BATCH + 7])
async def test_the_chain_is_the_same_however_late_it_is_sealed(count: int) -> None:
    late, at_once = MemoryStore(), MemoryStore()
    for number in range(count):
        await commit(late, a_lasting(number))
        await commit(at_once, evolve(a_lasting(number), lasting=False))
    found = await late.events(PROJECT)
    same = await at_once.events(PROJECT)
    assert [event.body for event in found] == [event.body for event in same]
    assert verify(found) == verify(same) == 2 * count


async def test_an_event_that_cannot_wait_comes_after_those_that_wait() -> None:
    store = MemoryStore()
    await commit(store, a_lasting(1))
    with pytest.raises(TypeError):
        await commit(store, Change(project=PROJECT, at=NOON, events=(a_fact(bad=object()),)))
    await commit(store, Change(project=PROJECT, at=NOON, events=(a_fact("last"),)))
    assert [event.call_id for event in await store.events(PROJECT)] == ["c1", None, "last"]


READS: dict[str, Callable[[MemoryStore], Awaitable[object]]] = {
    "call": lambda store: store.call(PROJECT, "c1"),
    "calls": lambda store: store.calls(CallQuery()),
    "due": lambda store: store.due(NOON),
    "close": lambda store: store.close(),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
async def test_what_a_reader_does_to_a_call_cannot_reach_its_events(
    read: Callable[[MemoryStore], Awaitable[object]],
) -> None:
    store, shown = MemoryStore(), {"path": "/a"}
    told = a_fact(payload_summary=shown)
    await commit(store, insert(a_call(shown=shown, due_at=NOON), events=(told,), lasting=True))
    await read(store)
    shown["path"] = "/b"
    assert (await store.events(PROJECT))[0].data == {"payload_summary": {"path": "/a"}}


async def test_a_conflicting_change_leaves_no_event_waiting() -> None:
    store = MemoryStore()
    await commit(store, a_lasting(1))
    with pytest.raises(ConflictError):
        await commit(store, a_lasting(1))
    assert len(await store.events(PROJECT)) == 2


async def test_the_events_of_a_private_project_go_with_its_last_call() -> None:
    store = MemoryStore(retain=2)

    def end(id: str, project: str) -> None:
        call = a_call(id, project=project, status=Status.COMPLETED)
        store.commit(Change(project=project, at=NOON, call=call, events=(("tool.completed", id, {}, None),)))

    for number, project in enumerate(("private:a", "private:a", "private:b", "open", "open")):
        end(f"c{number}", project)
    assert await store.events("private:a") == []
    assert await store.events("private:b") == []
    assert len(await store.events("open")) == 2
    end("again", "private:a")
    assert len(await store.events("private:a")) == 1
    assert store._private == {"private:a": 1}


async def test_the_numbers_of_a_private_project_go_on_while_a_sink_follows_it() -> None:
    store = MemoryStore(retain=1)

    def end(id: str, project: str) -> None:
        call = a_call(id, project=project, status=Status.COMPLETED)
        store.commit(Change(project=project, at=NOON, call=call, events=(("tool.completed", id, {}, None),)))

    await store.open_cursor("private:a", None)
    await store.open_cursor("private:a", None)
    end("1", "private:a")
    end("2", "open")
    end("3", "private:a")
    assert [event.seq for event in await store.events("private:a")] == [1, 2]
    await store.close_cursor("private:a", None)
    end("4", "open")
    assert len(await store.events("private:a")) == 2
    await store.close_cursor("private:a", None)
    assert await store.events("private:a") == []


async def test_closing_a_cursor_leaves_the_events_of_calls_that_are_there() -> None:
    store = MemoryStore()
    await store.open_cursor("private:a", None)
    store.commit(Change(project="private:a", at=NOON, call=a_call(project="private:a"), events=(a_fact(),)))
    await store.close_cursor("private:a", None)
    assert len(await store.events("private:a")) == 1


async def test_events_are_found_from_either_end() -> None:
    store = MemoryStore()
    store.commit(Change(project=PROJECT, at=NOON, events=tuple(a_fact() for _ in range(10))))
    for after in range(12):
        assert [event.seq for event in await store.events(PROJECT, after=after, limit=3)] == [
            seq for seq in range(after + 1, after + 4) if seq <= 10
        ]


async def test_the_head_says_where_the_kept_events_begin() -> None:
    store = MemoryStore(retain=1)
    for number in range(10):
        await commit(store, insert(a_call(f"c{number}"), events=(a_fact(f"c{number}"),)))
    head, oldest = await store.head(PROJECT), (await store.events(PROJECT))[0]
    assert (head.seq, head.base_seq, head.base_hash) == (10, oldest.seq - 1, oldest.prev)
    assert oldest.seq > 1
