"""Everything that can reach one call at the same moment does, from many threads, many times."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from time import monotonic
from typing import Any

import pytest

import toolgate
from toolgate import Gate, ToolDefinition, ToolInput, ToolOutput
from toolgate.errors import ConflictError, DecisionConflictError
from toolgate.kernel.approval import ApprovalStatus
from toolgate.kernel.call import TRANSITIONS, Status
from toolgate.kernel.event import verify
from toolgate.kernel.undo import UndoMetadata
from toolgate.ports.store import ApprovalQuery
from toolgate.testing.conformance.rows import losers, race_threads
from toolgate.testing.patience import until

ROUNDS = 10
LAST_WORDS = {"tool.completed", "tool.failed", "tool.denied", "tool.cancelled"}


class Counting:
    """A tool that counts how often each call ran."""

    def __init__(self) -> None:
        self.ran: Counter[str] = Counter()
        self.undone: Counter[str] = Counter()

    async def write(self, given: ToolInput) -> ToolOutput:
        self.ran[str(given.action_id)] += 1
        await asyncio.sleep(0)
        return ToolOutput.ok(undo_metadata={})

    async def put_back(self, undo: UndoMetadata) -> None:
        self.undone[str(undo.action_id)] += 1
        await asyncio.sleep(0)

    def tool(self) -> ToolDefinition:
        return ToolDefinition(
            name="write", handler=self.write, requires_approval=True, undoable=True, undo_handler=self.put_back
        )


async def history(gate: Gate, call_id: str) -> list[str]:
    return [event.type for event in await gate.events(call_id=call_id)]


async def check(gate: Gate, counting: Counting, call_id: str) -> Status:
    """What must hold of a call that ended, however it did."""
    result = await gate.wait(call_id)
    told = await history(gate, call_id)
    ran = counting.ran[call_id]
    assert ran <= 1
    assert (ran == 1) == (told.count("tool.started") == 1)
    assert sum(name in LAST_WORDS for name in told) == 1
    assert told[-1] in LAST_WORDS
    approval = (await gate._driver.store.approvals(ApprovalQuery(call_id=call_id)))[0]
    assert not approval.is_pending
    if result.status is Status.COMPLETED:
        assert (approval.status, ran) == (ApprovalStatus.APPROVED, 1)
    return result.status


@pytest.mark.parametrize("seed", range(ROUNDS))
async def test_deciders_cancellers_waiters_and_the_operator_at_once(seed: int) -> None:
    counting, chance = Counting(), random.Random(seed)
    async with toolgate.open(tools=[counting.tool()]) as gate:
        parked = await gate.call("write", wait=False)
        deeds = ["approve", "deny", "cancel", "wait", "mode", "extend"] * 3
        chance.shuffle(deeds)

        async def act(number: int) -> None:
            await _do(gate, deeds[number], parked.call_id, str(parked.approval_id), f"person {number}")

        trouble = losers(await race_threads(len(deeds), act))
        assert {type(error) for error in trouble} <= {ConflictError, DecisionConflictError}
        if (await gate.get(parked.call_id)).is_pending:
            await gate.cancel(parked.call_id)
        assert await check(gate, counting, parked.call_id) in {
            Status.COMPLETED,
            Status.REJECTED,
            Status.CANCELLED,
        }
        assert verify(await gate.events(limit=10_000)) > 0


async def _do(gate: Gate, deed: str, call_id: str, approval_id: str, who: str) -> None:
    if deed in ("approve", "deny"):
        await gate.decide(approval_id, deed, by=who, reason="a race")
    elif deed == "cancel":
        await gate.cancel(call_id, wait=False)
    elif deed == "mode":
        await gate.set_mode("ALERT", by=who)
        await gate.set_mode("NORMAL", by=who)
    elif deed == "extend":
        await gate.approvals.extend(approval_id, 60, by=who)
    else:
        waiting = asyncio.ensure_future(gate.wait(call_id))
        await asyncio.wait({waiting}, timeout=0.005)
        waiting.cancel()
        await asyncio.wait({waiting})


@pytest.mark.parametrize("seed", range(ROUNDS))
async def test_lockdown_and_approval_at_once_never_run_in_lockdown(seed: int) -> None:
    counting = Counting()
    async with toolgate.open(tools=[counting.tool()]) as gate:
        parked = [await gate.call("write", wait=False) for _ in range(10)]

        async def act(number: int) -> None:
            if number == seed:
                await gate.set_mode("LOCKDOWN", by="ann")
            elif number < len(parked):
                await gate.decide(str(parked[number].approval_id), "approve", by="bob")

        trouble = losers(await race_threads(len(parked) + 1, act))
        assert {type(error) for error in trouble} <= {DecisionConflictError}
        approved = [one for one in parked if (await gate.get(one.call_id)).status is not Status.AWAITING_APPROVAL]
        results = [await gate.wait(one.call_id) for one in approved]
        assert {result.status for result in results} <= {Status.COMPLETED, Status.DENIED, Status.CANCELLED}
        for result in results:
            if result.status is Status.CANCELLED:  # it ran when the brake came, and was stopped
                assert counting.ran[result.call_id] <= 1
            else:
                assert counting.ran[result.call_id] == (result.status is Status.COMPLETED)


@pytest.mark.parametrize("seed", range(ROUNDS))
async def test_expiry_and_approval_at_once_agree(seed: int) -> None:
    counting, chance = Counting(), random.Random(seed)
    async with toolgate.open(tools=[counting.tool()]) as gate:
        parked = [await gate.call("write", wait=False, approval_timeout_s=0.02) for _ in range(20)]
        moments = [monotonic() + chance.uniform(0.0, 0.03) for _ in parked]

        async def decide(number: int) -> None:
            await until(lambda: monotonic() > moments[number])
            await gate.decide(str(parked[number].approval_id), "approve", by="ann")

        trouble = losers(await race_threads(len(parked), decide))
        assert {type(error) for error in trouble} <= {DecisionConflictError}
        for one in parked:
            assert await check(gate, counting, one.call_id) in {Status.COMPLETED, Status.TIMEOUT}


async def test_many_undos_and_calls_at_once_leave_one_verifiable_history() -> None:
    counting = Counting()
    async with toolgate.open(tools=[counting.tool()], approver=lambda _approval: True) as gate:

        async def live(number: int) -> None:
            for turn in range(5):
                done = await gate.call("write", call_id=f"c{number % 4}-{turn}")
                await gate.undo(done.call_id)

        assert losers(await race_threads(12, live)) == []
        assert set(counting.ran.values()) == {1}
        assert set(counting.undone.values()) == {1}
        events = await gate.events(limit=100_000)
        assert verify(events) == len(events)


async def test_every_step_ever_taken_is_in_the_table() -> None:
    counting = Counting()
    steps: list[tuple[Status, Status]] = []
    async with toolgate.open(tools=[counting.tool()], approver=lambda _approval: True) as gate:
        seen: dict[str, Status] = {}

        def watch(change: Any) -> None:
            if change.call is not None:
                steps.append((seen.get(change.call.id, Status.PENDING), change.call.status))
                seen[change.call.id] = change.call.status

        gate._driver.listeners.append(watch)
        await asyncio.gather(*(gate.call("write") for _ in range(20)))
        await until(lambda: len(seen) == 20)
    assert all(after in TRANSITIONS[before] or after is before for before, after in steps)
