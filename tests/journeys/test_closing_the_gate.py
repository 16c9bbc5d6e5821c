from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from tests.journeys.scene import Open, park, standing

import toolgate
from toolgate import Gate, ToolDefinition, ToolInput, ToolOutput
from toolgate.errors import GateClosedError
from toolgate.kernel.approval import Approval
from toolgate.kernel.call import Status
from toolgate.testing.patience import PATIENCE_S, until, until_sync


async def write(_given: ToolInput) -> ToolOutput:
    return ToolOutput.ok("written")


ASKING = ToolDefinition(name="write", handler=write, requires_approval=True)


async def test_who_waits_for_a_person_is_told_and_the_call_stays_parked(open_gate: Open) -> None:
    gate = open_gate(tools=[ASKING])
    waiting = [asyncio.ensure_future(gate.call("write", call_id=f"c{number}")) for number in range(5)]
    await until(lambda: _parked(gate, 5))
    await gate.aclose()
    for one in waiting:
        with pytest.raises(GateClosedError, match="stays AWAITING_APPROVAL"):
            await one
    assert (await standing(gate, "c1")).status is Status.AWAITING_APPROVAL


async def _parked(gate: Gate, count: int) -> bool:
    return len(await gate.pending()) == count


def test_a_plain_thread_that_waits_is_told(open_gate: Open) -> None:
    gate = open_gate(tools=[ASKING])
    raised: list[Exception] = []

    def wait() -> None:
        try:
            gate.sync.call("write")
        except Exception as error:  # noqa: BLE001  # the test looks at what it is
            raised.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    until_sync(gate.sync.pending)
    gate.close()
    waiting.join(PATIENCE_S)
    assert [type(error) for error in raised] == [GateClosedError]


async def test_followers_come_to_an_end(open_gate: Open) -> None:
    gate = open_gate(tools=[ASKING])
    seen: list[str] = []

    async def follow() -> str:
        async for event in gate.follow():
            seen.append(event.type)  # noqa: PERF401  # one by one, as they come
        return "ended"

    following = asyncio.ensure_future(follow())
    await park(gate, "write")
    await until(lambda: len(seen) == 2)
    await gate.aclose()
    assert await following == "ended"


async def test_a_running_call_is_stopped_and_recorded(open_gate: Open) -> None:
    started = asyncio.Event()

    async def wait(_given: ToolInput) -> ToolOutput:
        started.set()
        await asyncio.Event().wait()
        return ToolOutput.ok()

    gate = open_gate(tools=[ToolDefinition(name="wait", handler=wait)])
    calling = asyncio.ensure_future(gate.call("wait", call_id="c1"))
    await started.wait()
    await gate.aclose()
    assert (await calling).status is Status.CANCELLED
    assert (await standing(gate, "c1")).status is Status.CANCELLED


def test_a_call_that_runs_for_a_plain_thread_is_stopped_and_told(open_gate: Open) -> None:
    started = threading.Event()

    async def wait(_given: ToolInput) -> ToolOutput:
        started.set()
        await asyncio.Event().wait()
        return ToolOutput.ok()

    gate = open_gate(tools=[ToolDefinition(name="wait", handler=wait)])
    ends: list[object] = []

    def call() -> None:
        try:
            ends.append(gate.sync.call("wait").status)
        except GateClosedError:
            ends.append("closed")

    calling = threading.Thread(target=call)
    calling.start()
    assert started.wait(PATIENCE_S)
    gate.close()
    calling.join(PATIENCE_S)
    assert ends in ([Status.CANCELLED], ["closed"])


@pytest.mark.parametrize(
    "use",
    [
        lambda gate: gate.call("write"),
        lambda gate: gate.wait("c1"),
        lambda gate: gate.decide("a1", "approve", by="ann"),
        lambda gate: gate.approvals.extend("a1", 60, by="ann"),
        lambda gate: gate.cancel("c1"),
        lambda gate: gate.undo("c1"),
        lambda gate: gate.undo_run("r1"),
        lambda gate: gate.complete("c1", ToolOutput.ok()),
        lambda gate: gate.settle("c1", happened=True, by="ann", reason="x"),
        lambda gate: gate.set_mode("ALERT", by="ann"),
        lambda gate: gate.set_policy(toolgate.Policy(), by="ann"),
    ],
    ids="call wait decide extend cancel undo undo_run complete settle set_mode set_policy".split(),
)
async def test_a_closed_gate_takes_nothing_more(open_gate: Open, use: Any) -> None:
    gate = open_gate(tools=[ASKING])
    await gate.aclose()
    with pytest.raises(GateClosedError):
        await use(gate)


async def test_a_gate_can_be_closed_twice(open_gate: Open) -> None:
    gate = open_gate(tools=[ASKING])
    await gate.aclose()
    await gate.aclose()


async def test_an_approver_that_never_answers_is_let_go(open_gate: Open) -> None:
    asked: list[Approval] = []

    async def silent(approval: Approval) -> bool:
        asked.append(approval)
        await asyncio.Event().wait()
        return True

    gate = open_gate(tools=[ASKING], approver=silent)
    await park(gate, "write")
    await until(lambda: asked)
    await gate.aclose()
    await until(lambda: not _tasks_named("toolgate"))


def _tasks_named(prefix: str) -> list[str]:
    return [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith(prefix)]


async def test_no_thread_or_task_is_left(open_gate: Open) -> None:
    def plain(_given: ToolInput) -> ToolOutput:
        return ToolOutput.ok()

    before = set(threading.enumerate())
    async with open_gate(tools=[ASKING, ToolDefinition(name="plain", handler=plain)], approver=lambda _: True) as gate:
        await asyncio.gather(*(gate.call(name) for name in ("write", "plain") for _ in range(10)))
        await asyncio.to_thread(gate.sync.pending)
    await until(lambda: not {t for t in threading.enumerate() if t.name.startswith("toolgate")} - before)
    assert _tasks_named("toolgate") == []


def test_opening_and_closing_starts_no_thread() -> None:
    before = threading.active_count()
    gate = toolgate.open(tools=[ASKING])
    assert threading.active_count() == before
    gate.close()


async def test_a_call_nobody_waits_for_stays_approved_when_the_gate_closes_first(open_gate: Open) -> None:
    gate = open_gate(tools=[ASKING])
    approval = await park(gate, "write")
    await gate.aclose()
    assert (await standing(gate, approval.call_id)).status is Status.AWAITING_APPROVAL
