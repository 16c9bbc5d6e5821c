"""What every store must do with rates, the mode and deadlines."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from toolgate.errors import ConflictError, ModeChangedError, RateLimitError
from toolgate.kernel.brake import Brake, Scope
from toolgate.kernel.call import Status
from toolgate.kernel.change import Change, Reservation
from toolgate.kernel.context import Mode
from toolgate.kernel.record import evolve
from toolgate.kernel.undo import UndoState
from toolgate.ports.store import Store
from toolgate.testing.clock import NOON
from toolgate.testing.conformance.rows import (
    PROJECT,
    a_call,
    an_undo,
    commit,
    insert,
    losers,
    race_tasks,
    race_threads,
    set_mode,
    step,
    winners,
)


class LimitLaws:
    """Inherited by StoreConformance."""

    @pytest.mark.parametrize("race", [race_tasks, race_threads])
    async def test_a_rate_is_never_exceeded_by_many_at_once(self, store: Store, race: Any) -> None:
        async def use(_number: int) -> None:
            await commit(store, _use(limit=7))

        outcomes = await race(50, use)
        assert len(winners(outcomes)) == 7
        assert {type(error) for error in losers(outcomes)} == {RateLimitError}

    async def test_a_rate_slides_with_time(self, store: Store) -> None:
        await commit(store, _use(at=NOON, limit=2))
        await commit(store, _use(at=NOON + timedelta(seconds=30), limit=2))
        with pytest.raises(RateLimitError):
            await commit(store, _use(at=NOON + timedelta(seconds=59), limit=2))
        await commit(store, _use(at=NOON + timedelta(seconds=61), limit=2))
        with pytest.raises(RateLimitError):
            await commit(store, _use(at=NOON + timedelta(seconds=62), limit=2))

    async def test_rates_are_counted_by_project_and_key(self, store: Store) -> None:
        await commit(store, _use(limit=1))
        await commit(store, _use(limit=1, key="another"))
        await commit(store, _use(limit=1, project="other"))
        with pytest.raises(RateLimitError):
            await commit(store, _use(limit=1))

    async def test_a_refused_use_counts_for_nothing_and_writes_nothing(self, store: Store) -> None:
        await commit(store, _use(limit=1))
        with pytest.raises(RateLimitError):
            await commit(store, insert(a_call(), reservations=(Reservation(key="k", limit=1, window_s=60),)))
        assert await store.call(PROJECT, "c1") is None
        await commit(store, _use(limit=2))

    async def test_a_budget_is_used_by_amounts_and_never_exceeded(self, store: Store) -> None:
        await commit(store, _use(limit=100, amount=60))
        with pytest.raises(RateLimitError):
            await commit(store, _use(limit=100, amount=41))
        await commit(store, _use(limit=100, amount=40))
        with pytest.raises(RateLimitError):
            await commit(store, _use(limit=100, amount=1))
        await commit(store, _use(at=NOON + timedelta(seconds=61), limit=100, amount=100))

    async def test_whoever_exceeds_a_limit_is_told_in_its_own_words(self, store: Store) -> None:
        with pytest.raises(RateLimitError, match="Too much for today"):
            await commit(store, _use(limit=1, amount=2, excess="Too much for today."))

    async def test_a_conflict_is_reported_before_a_rate(self, store: Store) -> None:
        """A second call with the id of one that runs joins it, however the rate stands."""
        slot = (Reservation(key="k", limit=1, window_s=60),)
        await commit(store, insert(a_call(), reservations=slot))
        with pytest.raises(ConflictError) as caught:
            await commit(store, insert(a_call(), reservations=slot))
        assert type(caught.value) is ConflictError

    async def test_the_mode_is_normal_until_it_is_set(self, store: Store) -> None:
        before = store.brakes
        await commit(store, set_mode(Mode.LOCKDOWN))
        assert (before.mode, store.brakes.mode, before.serial) == (Mode.NORMAL, Mode.LOCKDOWN, 0)
        assert store.brakes.serial == (await store.head("_system")).seq

    async def test_a_change_made_under_another_mode_is_refused(self, store: Store) -> None:
        seen = store.brakes.serial
        await commit(store, set_mode(Mode.ALERT))
        with pytest.raises(ModeChangedError):
            await commit(store, insert(a_call(), mode_seen=seen))
        assert await store.call(PROJECT, "c1") is None
        await commit(store, insert(a_call(), mode_seen=store.brakes.serial))

    async def test_a_change_made_before_a_brake_was_pulled_is_refused(self, store: Store) -> None:
        brake = Brake(scope=Scope(PROJECT, run="r1"), mode=Mode.LOCKDOWN, by="ann", at=NOON, reason="why", holds=("a",))
        seen = store.brakes.serial
        await commit(store, set_mode(Mode.NORMAL, brake))
        with pytest.raises(ModeChangedError):
            await commit(store, insert(a_call(), mode_seen=seen))
        await store.due(NOON)  # reads the brakes anew
        assert store.brakes.active == (brake,)

    async def test_of_two_who_set_a_mode_at_once_the_first_does(self, store: Store) -> None:
        seen = store.brakes.serial
        await commit(store, evolve(set_mode(Mode.ALERT), mode_seen=seen))
        with pytest.raises(ModeChangedError):
            await commit(store, evolve(set_mode(Mode.LOCKDOWN), mode_seen=seen))
        assert store.brakes.mode is Mode.ALERT
        assert len(await store.events("_system")) == 1

    async def test_calls_come_due_in_order_and_the_next_is_announced(self, store: Store) -> None:
        for number in (3, 1, 2):
            await commit(store, insert(a_call(f"c{number}", due_at=_at(number))))
        assert await store.due(_at(0)) == ([], _at(1))
        due = await store.due(_at(2))
        assert [call.id for call in due.calls] == ["c1", "c2"]
        assert due.next_at is not None
        assert due.next_at <= _at(3)

    async def test_nothing_is_due_in_an_empty_store(self, store: Store) -> None:
        assert await store.due(NOON) == ([], None)

    async def test_a_call_stays_due_until_it_is_handled(self, store: Store) -> None:
        call = a_call(due_at=_at(1))
        await commit(store, insert(call))
        first, second = await store.due(_at(1)), await store.due(_at(1))
        assert [call.id for call in first.calls] == [call.id for call in second.calls] == ["c1"]
        await commit(store, step(call, Status.EXECUTING, changes={"due_at": None}))
        assert await store.due(_at(1)) == ([], None)

    async def test_a_moved_deadline_counts_from_the_new_time_only(self, store: Store) -> None:
        call = a_call(due_at=_at(1))
        await commit(store, insert(call))
        await commit(
            store, Change(project=PROJECT, at=NOON, call=evolve(call.stay(), due_at=_at(5)), expect=call.version)
        )
        assert await store.due(_at(2)) == ([], _at(5))
        assert [call.id for call in (await store.due(_at(5))).calls] == ["c1"]

    async def test_a_deadline_written_twice_comes_due_once(self, store: Store) -> None:
        call = a_call(due_at=_at(1))
        await commit(store, insert(call))
        await commit(store, Change(project=PROJECT, at=NOON, call=call.stay(), expect=call.version))
        assert [call.id for call in (await store.due(_at(1))).calls] == ["c1"]

    async def test_due_calls_are_limited_and_more_are_announced(self, store: Store) -> None:
        for number in range(5):
            await commit(store, insert(a_call(f"c{number}", due_at=_at(number))))
        due = await store.due(_at(10), limit=2)
        assert [call.id for call in due.calls] == ["c0", "c1"]
        assert due.next_at is not None
        assert due.next_at <= _at(10)

    async def test_an_expired_undo_record_is_freed(self, store: Store) -> None:
        await commit(store, insert(a_call("c1"), undo=an_undo("c1", expires_at=_at(1))))
        await commit(store, insert(a_call("c2"), undo=an_undo("c2", expires_at=_at(9))))
        await store.due(_at(5))
        assert await store.undo(PROJECT, "c1") is None
        assert await store.undo(PROJECT, "c2") is not None

    async def test_an_undo_record_that_was_renewed_is_kept(self, store: Store) -> None:
        undo = an_undo(state=UndoState.PREPARED, expires_at=_at(1))
        await commit(store, insert(a_call(), undo=undo))
        renewed = evolve(undo, state=UndoState.AVAILABLE, expires_at=_at(9))
        await commit(store, step(a_call(), Status.EXECUTING, undo=renewed))
        await store.due(_at(5))
        assert await store.undo(PROJECT, "c1") == renewed


def _at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def _use(
    *, limit: int, at: datetime = NOON, key: str = "k", project: str = PROJECT, amount: int = 1, excess: str = ""
) -> Change:
    slot = Reservation(key=key, limit=limit, window_s=60, amount=amount, excess=excess)
    return Change(project=project, at=at, reservations=(slot,))
