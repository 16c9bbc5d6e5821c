"""A question that was put to people and not answered is put to them again by the next process that can."""

from __future__ import annotations

import asyncio
from pathlib import Path

import toolgate
from toolgate.kernel.approval import Approval
from toolgate.kernel.call import Status
from toolgate.kernel.context import Principal
from toolgate.kernel.tool import ToolDefinition
from toolgate.ports.channel import Answer, Decision
from toolgate.testing.patience import until

PAID: list[int] = []


@toolgate.tool(requires_approval=True)
async def pay(amount: int) -> str:
    """Pay somebody."""
    PAID.append(amount)
    return f"paid {amount}"


TOOL: ToolDefinition = pay


class RecordingChannel:
    """A channel that notes what it is asked, and approves or never answers."""

    def __init__(self, *, approves: bool = False) -> None:
        self.asked: list[str] = []
        self._approves = approves

    async def ask(self, approval: Approval) -> Answer | None:
        self.asked.append(approval.call_id)
        if not self._approves:
            await asyncio.Event().wait()
        return Answer(decision=Decision.APPROVE, by=Principal.of("ann"))


def _open(path: Path, channel: RecordingChannel | None) -> toolgate.Gate:
    return toolgate.open(f"sqlite:///{path}", tools=[TOOL], approver=channel)


async def test_a_question_of_a_closed_gate_is_asked_again_by_the_next(database: Path) -> None:
    PAID.clear()
    gone, back = RecordingChannel(), RecordingChannel(approves=True)
    async with _open(database, gone) as gate:
        asked = await gate.call("pay", {"amount": 5}, wait=False)
    async with _open(database, back) as gate:
        await gate.recover()
        result = await gate.wait(asked.call_id)
    assert (result.data, PAID) == ("paid 5", [5])
    assert gone.asked == back.asked == [asked.call_id]


async def test_a_question_somebody_alive_carries_is_not_asked_by_others(database: Path) -> None:
    first, second = RecordingChannel(), RecordingChannel()
    async with _open(database, first) as one, _open(database, second) as two:
        asked = await one.call("pay", {"amount": 5}, wait=False)
        await two.recover()
        await two.recover()
        assert second.asked == []
        assert (await one.get(asked.call_id)).status is Status.AWAITING_APPROVAL


async def test_a_question_nobody_carried_stays_with_whoever_decides(database: Path) -> None:
    channel = RecordingChannel()
    async with _open(database, None) as gate:
        asked = await gate.call("pay", {"amount": 5}, wait=False)
    async with _open(database, channel) as gate:
        await gate.recover()
        assert channel.asked == []
        await gate.cancel(asked.call_id)


async def test_one_of_many_takes_a_question_over(database: Path) -> None:
    async with _open(database, RecordingChannel()) as gate:
        await gate.call("pay", {"amount": 5}, wait=False)
    channels = [RecordingChannel(), RecordingChannel(), RecordingChannel()]
    gates = [_open(database, channel) for channel in channels]
    await asyncio.gather(*(gate.recover() for gate in gates for _ in range(3)))
    await until(lambda: any(channel.asked for channel in channels))
    await asyncio.gather(*(gate.recover() for gate in gates))
    assert sum(len(channel.asked) for channel in channels) == 1
    for gate in gates:  # whoever closes first leaves it to the next
        await gate.aclose()


async def test_a_call_for_a_worker_approved_while_nobody_was_there_is_offered_to_workers_later(database: Path) -> None:
    PAID.clear()
    url = f"sqlite:///{database}"

    @toolgate.tool(name="pay", requires_approval=True, placement="worker")
    async def far(amount: int) -> str:
        """Pay somebody, at a worker."""
        PAID.append(amount)
        return f"paid {amount}"

    async with toolgate.open(url, tools=[far], workers=True) as gate:
        asked = await gate.call("pay", {"amount": 5}, wait=False)
    async with toolgate.open(url) as other:
        await other.decide(str(asked.approval_id), "approve", by="ann")
    async with toolgate.open(url, tools=[far], workers=True) as gate:

        async def is_offered() -> bool:
            return (await gate.get(asked.call_id)).status is Status.EXECUTING

        await until(is_offered)
        assert PAID == []
        result = await gate.remote.work(asked.call_id, by="worker:1")
    assert (result.data, PAID) == ("paid 5", [5])
