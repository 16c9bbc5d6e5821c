from __future__ import annotations

import asyncio
import threading

import pytest
from tests.journeys.scene import Open, names, park

from toolgate import Context, Principal, tool
from toolgate.errors import DecisionConflictError, NotAllowedError, NotFoundError
from toolgate.kernel.call import Status
from toolgate.kernel.context import PrincipalKind
from toolgate.testing.conformance.rows import losers, race_tasks, race_threads, winners
from toolgate.testing.patience import until

ran: list[str] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


@tool(requires_approval=True)
async def send() -> str:
    ran.append("send")
    await asyncio.sleep(0)
    return "sent"


@tool(requires_approval=True)
def send_plainly() -> str:
    ran.append("send")
    return "sent"


@pytest.mark.parametrize("name", ["send", "send_plainly"])
async def test_an_approved_call_runs_and_says_who_approved(open_gate: Open, name: str) -> None:
    async with open_gate(tools=[send, send_plainly]) as gate:
        waiting = asyncio.ensure_future(gate.call(name, call_id="c1"))
        await until(gate.pending)
        approval = (await gate.pending())[0]
        await gate.decide(approval.id, "approve", by="ann")
        result = await waiting
        assert (result.data, result.approved_by, result.approval_id) == ("sent", "ann", approval.id)
        events = await gate.events(call_id="c1")
        assert names(events) == [
            "tool.invoked",
            "approval.requested",
            "approval.decided",
            "tool.started",
            "tool.completed",
        ]
        assert events[3].data["approved_by"] == "ann"


@pytest.mark.parametrize("race", [race_tasks, race_threads])
async def test_of_a_hundred_deciders_one_is_heard(open_gate: Open, race: object) -> None:
    async with open_gate(tools=[send]) as gate:
        approval = await park(gate, "send")

        async def decide(number: int) -> None:
            await gate.decide(approval.id, "approve", by=f"person {number}")

        outcomes = await race(100, decide)  # type: ignore[operator]  # one of the two races
        assert len(winners(outcomes)) == 1
        assert {type(error) for error in losers(outcomes)} == {DecisionConflictError}
        assert (await gate.wait(approval.call_id)).data == "sent"
        assert ran == ["send"]


@pytest.mark.parametrize("race", [race_tasks, race_threads])
async def test_many_who_wait_for_one_call_run_it_once(open_gate: Open, race: object) -> None:
    async with open_gate(tools=[send_plainly]) as gate:
        approval = await park(gate, "send_plainly")
        everybody = asyncio.ensure_future(race(20, lambda _: gate.wait(approval.call_id)))  # type: ignore[operator]
        await asyncio.wait({everybody}, timeout=0.05)
        await gate.decide(approval.id, "approve", by="ann")
        results = winners(await everybody)
        assert [result.data for result in results] == ["sent"] * 20
        assert ran == ["send"]


async def test_a_decision_from_another_thread_and_loop_wakes_the_waiter(open_gate: Open) -> None:
    async with open_gate(tools=[send]) as gate:
        waiting = asyncio.ensure_future(gate.call("send"))
        await until(gate.pending)
        approval = (await gate.pending())[0]
        decided = threading.Thread(target=lambda: asyncio.run(_approve(gate.decide(approval.id, "approve", by="ann"))))
        decided.start()
        assert (await waiting).data == "sent"
        await asyncio.to_thread(decided.join)


async def _approve(deciding: object) -> None:
    await deciding  # type: ignore[misc]  # the coroutine of gate.decide


async def test_the_requester_cannot_approve_its_own_call(open_gate: Open) -> None:
    async with open_gate(tools=[send]) as gate:
        approval = await park(gate, "send", context=Context(principal="ann"))
        with pytest.raises(NotAllowedError, match="asked for this call"):
            await gate.decide(approval.id, "approve", by="ann")
        assert (await gate.get(approval.call_id)).status is Status.AWAITING_APPROVAL


@pytest.mark.parametrize("kind", [PrincipalKind.AGENT, PrincipalKind.RUNNER, PrincipalKind.POLICY])
async def test_only_people_decide(open_gate: Open, kind: PrincipalKind) -> None:
    async with open_gate(tools=[send]) as gate:
        approval = await park(gate, "send")
        with pytest.raises(NotAllowedError, match="only people decide"):
            await gate.decide(approval.id, "approve", by=Principal(name="robot", kind=kind))
        with pytest.raises(NotAllowedError):
            await gate.approvals.extend(approval.id, 60, by=Principal(name="robot", kind=kind))


async def test_a_decision_about_something_else_than_was_shown_is_refused(open_gate: Open) -> None:
    async with open_gate(tools=[send]) as gate:
        approval = await park(gate, "send")
        with pytest.raises(DecisionConflictError, match="review it again"):
            await gate.decide(approval.id, "approve", by="ann", digest="0" * 64)
        await gate.decide(approval.id, "approve", by="ann", digest=approval.digest)
        assert (await gate.wait(approval.call_id)).success


async def test_an_unknown_approval_and_one_of_another_project_look_the_same(open_gate: Open) -> None:
    async with open_gate(tools=[send]) as gate:
        approval = await park(gate, "send")
        for approval_id, project in (("nobody", None), (approval.id, "other")):
            with pytest.raises(NotFoundError):
                await gate.decide(approval_id, "approve", by="ann", project=project)
            with pytest.raises(NotFoundError):
                await gate.approvals.get(approval_id, project=project)


async def test_a_call_nobody_waits_for_runs_once_approved(open_gate: Open) -> None:
    async with open_gate(tools=[send]) as gate:
        approval = await park(gate, "send")
        await gate.decide(approval.id, "approve", by="ann")
        await until(lambda: ran)
        assert (await gate.wait(approval.call_id)).data == "sent"
        assert ran == ["send"]


def test_a_call_whose_loop_is_gone_runs_on_the_gates_own(open_gate: Open) -> None:
    with open_gate(tools=[send]) as gate:
        approval = asyncio.run(park(gate, "send"))
        gate.sync.decide(approval.id, "approve", by="ann")
        assert gate.sync.wait(approval.call_id).data == "sent"
        assert ran == ["send"]
