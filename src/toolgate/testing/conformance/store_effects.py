"""What every store must do with effect keys: compare who holds them and set it, with the change or not at all."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from toolgate.errors import ConflictError, EffectHeldError
from toolgate.kernel.call import Status
from toolgate.kernel.change import Reservation
from toolgate.kernel.holding import How, Move
from toolgate.kernel.record import evolve
from toolgate.ports.store import Store
from toolgate.testing.clock import NOON
from toolgate.testing.conformance.rows import (
    a_call,
    commit,
    insert,
    losers,
    race_tasks,
    race_threads,
    step,
    winners,
)

KEY = "refund:p1"


def take(holder: str, expect: str | None = None) -> tuple[Move, ...]:
    return (Move(KEY, expect, holder),)


class EffectLaws:
    """Inherited by StoreConformance."""

    async def test_an_effect_key_is_taken_once_and_names_its_holder(self, store: Store) -> None:
        await commit(store, insert(a_call("c1"), joins=take("c1")))
        with pytest.raises(EffectHeldError) as refused:
            await commit(store, insert(a_call("c2"), joins=take("c2")))
        assert refused.value.holder == "c1"
        assert await store.call("default", "c2") is None

    async def test_an_effect_key_is_of_one_project(self, store: Store) -> None:
        await commit(store, insert(a_call("c1"), joins=take("c1")))
        await commit(store, insert(a_call("c1", project="other"), joins=take("c1")))

    async def test_a_freed_key_is_free_and_one_passed_on_is_held(self, store: Store) -> None:
        first = a_call("c1")
        await commit(store, insert(first, joins=take("c1")))
        await commit(store, step(first, Status.FAILED, joins=(Move(KEY, "c1", None, how=How.SOFT),)))
        second = a_call("c2")
        await commit(store, insert(second, joins=take("c2")))
        await commit(store, step(second, Status.FAILED, joins=(Move(KEY, "c2", "c0", how=How.SOFT),)))
        with pytest.raises(EffectHeldError) as refused:
            await commit(store, insert(a_call("c3"), joins=take("c3")))
        assert refused.value.holder == "c0"
        await commit(store, insert(a_call("c4"), joins=take("c4", "c0")))

    async def test_a_soft_move_leaves_a_key_alone_that_another_holds(self, store: Store) -> None:
        first = a_call("c1")
        await commit(store, insert(first, joins=take("c1")))
        moves = (
            Move(KEY, "c9", None, how=How.SOFT),
            Move(KEY, "c8", "c8", how=How.SOFT),
            Move("x:1", "c8", "c8", how=How.SOFT),
        )
        for move in moves:
            await commit(store, insert(a_call(f"of-{move.expect}-{move.key}"), joins=(move,)))
        with pytest.raises(EffectHeldError) as refused:
            await commit(store, insert(a_call("c2"), joins=take("c2")))
        assert refused.value.holder == "c1"
        await commit(store, insert(a_call("c3"), joins=(Move("x:1", None, "c3"),)))

    async def test_a_key_is_free_when_its_time_is_over(self, store: Store) -> None:
        until = NOON + timedelta(hours=1)
        first = a_call("c1")
        await commit(store, insert(first, joins=take("c1")))
        await commit(store, step(first, Status.EXECUTING, joins=(Move(KEY, "c1", "c1", until, how=How.SOFT),)))
        with pytest.raises(EffectHeldError):
            await commit(store, insert(a_call("c2"), joins=take("c2")))
        await commit(store, evolve(insert(a_call("c2"), joins=take("c2")), at=until))

    async def test_who_comes_second_with_one_id_hears_of_that_and_not_of_the_key(self, store: Store) -> None:
        await commit(store, insert(a_call("c1"), joins=take("c1")))
        with pytest.raises(ConflictError) as refused:
            await commit(store, insert(a_call("c1"), joins=take("c1")))
        assert not isinstance(refused.value, EffectHeldError)

    async def test_who_would_join_hears_of_the_key_and_not_of_a_rate(self, store: Store) -> None:
        rate = (Reservation(key="r", limit=1, window_s=60.0),)
        await commit(store, insert(a_call("c1"), joins=take("c1"), reservations=rate))
        with pytest.raises(EffectHeldError):
            await commit(store, insert(a_call("c2"), joins=take("c2"), reservations=rate))

    @pytest.mark.parametrize("race", [race_tasks, race_threads])
    async def test_one_of_many_at_once_gets_the_key(self, store: Store, race: Any) -> None:
        async def attempt(number: int) -> None:
            await commit(store, insert(a_call(f"c{number}"), joins=take(f"c{number}")))

        outcomes = await race(20, attempt)
        assert len(winners(outcomes)) == 1
        assert all(isinstance(error, EffectHeldError) for error in losers(outcomes))
