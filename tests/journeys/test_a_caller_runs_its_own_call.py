"""A tool placed at its caller has no handler: whoever made the call runs it once it is approved, and one time only."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.journeys.scene import Open, names, saying

import toolgate
from toolgate import Context, Gate, Result, ToolDefinition, ToolOutput
from toolgate.errors import (
    ConflictError,
    DefinitionError,
    NotAllowedError,
    NotFoundError,
    ToolDeniedError,
    UsageError,
)
from toolgate.kernel.approval import ApprovalStatus
from toolgate.kernel.call import Status
from toolgate.kernel.grant import Remember
from toolgate.kernel.policy import Policy
from toolgate.pipeline import steps
from toolgate.testing.patience import until

COUNTS = {"type": "object", "properties": {"n": {"type": "integer"}}}


def plain(**options: Any) -> ToolDefinition:
    return ToolDefinition("send", COUNTS, placement="caller", **options)


class Caller:
    """Notes what it was given, and returns it."""

    def __init__(self) -> None:
        self.given: list[Any] = []

    async def __call__(self, arguments: dict[str, Any]) -> Any:
        self.given.append(arguments)
        await asyncio.sleep(0)
        return {"sent": arguments.get("n")}


async def test_it_waits_approved_until_its_caller_runs_it(open_gate: Open) -> None:
    caller = Caller()
    async with open_gate(tools=[plain()]) as gate:
        parked = await gate.call("send", {"n": 1})
        assert (parked.status, parked.approved_by) == (Status.APPROVED, "policy:auto")
        assert (await gate.wait(parked.call_id)).status is Status.APPROVED
        result = await gate.run_here(parked.call_id, caller)
        assert (result.status, result.data, caller.given) == (Status.COMPLETED, {"sent": 1}, [{"n": 1}])
        told = names(await gate.events(call_id=parked.call_id))
        assert told == ["tool.invoked", "tool.started", "tool.completed"]


async def test_one_of_many_runs_it_and_all_get_what_it_recorded(open_gate: Open) -> None:
    caller = Caller()
    async with open_gate(tools=[plain()]) as gate:
        parked = await gate.call("send", {"n": 2})
        results = await asyncio.gather(*(gate.run_here(parked.call_id, caller) for _ in range(8)))
        assert {str(result.data) for result in results} == {"{'sent': 2}"}
        assert (await gate.run_here(parked.call_id, caller)).data == {"sent": 2}
        assert caller.given == [{"n": 2}]


async def test_it_runs_with_what_a_person_made_of_it_and_joins_who_asks_again(open_gate: Open) -> None:
    caller = Caller()
    async with open_gate(tools=[plain(requires_approval=True)]) as gate:
        parked = await gate.call("send", {"n": 1}, call_id="c1", wait=False)
        running = asyncio.ensure_future(gate.run_here("c1", caller))
        await gate.approvals.edit(str(parked.approval_id), {"n": 7}, by="ann")
        assert (await running).data == {"sent": 7}
        again = await gate.call("send", {"n": 1}, call_id="c1")
        assert (again.data, again.joined, caller.given) == ({"sent": 7}, True, [{"n": 7}])
        with pytest.raises(ConflictError, match="taken by another call"):
            await gate.call("send", {"n": 2}, call_id="c1")


async def test_another_agent_cannot_take_it(open_gate: Open) -> None:
    async with open_gate(tools=[plain()]) as gate:
        parked = await gate.call("send", {"n": 1}, context=Context(principal="agent:billing"))
        with pytest.raises(NotAllowedError, match="not made by agent:support"):
            await gate.remote.claim(parked.call_id, by="agent:support", fence="f1")
        taken = await gate.remote.claim(parked.call_id, by="agent:billing", fence="f2")
        assert (taken.status, taken.arguments) == (Status.EXECUTING, b'{"n":1}')


async def test_a_no_means_that_it_never_runs(open_gate: Open) -> None:
    caller = Caller()
    async with open_gate(tools=[plain(requires_approval=True)]) as gate:
        parked = await gate.call("send", wait=False)
        running = asyncio.ensure_future(gate.run_here(parked.call_id, caller))
        await gate.decide(str(parked.approval_id), "deny", by="ann")
        assert ((await running).status, caller.given) == (Status.REJECTED, [])


@pytest.mark.parametrize("asked", [True, False])
async def test_it_is_judged_again_when_it_is_taken(open_gate: Open, asked: bool) -> None:
    caller = Caller()
    async with open_gate(tools=[plain(requires_approval=asked)]) as gate:
        parked = await gate.call("send", wait=False)
        if asked:
            await gate.decide(str(parked.approval_id), "approve", by="ann")
        await gate.set_mode("LOCKDOWN", by="ann")
        result = await gate.run_here(parked.call_id, caller)
        assert (result.status, caller.given) == (Status.DENIED, [])


async def test_a_policy_that_asks_meanwhile_has_it_asked(open_gate: Open) -> None:
    caller = Caller()
    async with open_gate(tools=[plain()]) as gate:
        parked = await gate.call("send", {"n": 3})
        await gate.set_policy(saying("ask"), by="ann")
        running = asyncio.ensure_future(gate.run_here(parked.call_id, caller))
        await until(lambda: _asked(gate))
        [question] = await gate.pending()
        await gate.decide(question.id, "approve", by="ann")
        assert ((await running).data, (await running).approved_by) == ({"sent": 3}, "ann")


async def _asked(gate: Gate) -> bool:
    return bool(await gate.pending())


@pytest.mark.parametrize("asked", [True, False])
async def test_one_that_nobody_comes_for_times_out_and_its_approval_stays_what_it_is(
    open_gate: Open, asked: bool
) -> None:
    caller = Caller()
    async with open_gate(
        tools=[plain(requires_approval=asked)], policy=Policy(revision="r", approved_for_s=0.05)
    ) as gate:
        parked = await gate.call("send", wait=False)
        if asked:
            await gate.decide(str(parked.approval_id), "approve", by="ann")
        await until(lambda: _is(gate, parked.call_id, Status.TIMEOUT))
        result = await gate.run_here(parked.call_id, caller)
        assert (result.status, result.error_code, caller.given) == (Status.TIMEOUT, "unclaimed", [])
        assert names(await gate.events(call_id=parked.call_id))[-1] == "tool.denied"
        if asked:
            assert (await gate.approvals.get(str(parked.approval_id))).status is ApprovalStatus.APPROVED


async def _is(gate: Gate, call_id: str, status: Status) -> bool:
    return (await gate.get(call_id)).status is status


async def test_one_that_was_not_ended_in_time_cannot_be_taken_any_more(open_gate: Open) -> None:
    caller = Caller()
    async with open_gate(tools=[plain()]) as gate:
        here, elsewhere = [await gate.call("send", context=Context(principal="agent:a")) for _ in range(2)]
        gate._driver.on_due = None  # as if every process had been down meanwhile
        later = datetime.now(UTC) + timedelta(hours=2)
        gate._driver.now = lambda: later
        result = await gate.run_here(here.call_id, caller)
        assert (result.status, result.error_code, caller.given) == (Status.TIMEOUT, "unclaimed", [])
        with pytest.raises(ConflictError, match="is TIMEOUT"):
            await gate.remote.claim(elsewhere.call_id, by="agent:a", fence="f1")


async def test_one_that_ends_while_it_is_found_too_late_stays_as_it_ended() -> None:
    caller = Caller()
    async with toolgate.open("memory://", tools=[plain()]) as gate:
        parked = await gate.call("send")
        call, store, later = await gate.calls.get(parked.call_id), gate._driver.store, datetime.now(UTC)
        ended = steps.fail(call, now=later, status=Status.CANCELLED, code="cancelled", error="enough")
        gate._driver.on_due = None

        def cancel_first() -> datetime:
            if not gone:
                gone.append(store.commit(ended))
            return later + timedelta(hours=2)

        gone: list[Any] = []
        gate._driver.now = cancel_first
        assert (await gate.run_here(parked.call_id, caller)).status is Status.CANCELLED
        assert caller.given == []


async def test_a_claim_without_a_token_to_report_with_is_refused(open_gate: Open) -> None:
    async with open_gate(tools=[plain()]) as gate:
        parked = await gate.call("send")
        with pytest.raises(UsageError, match="names a token"):
            await gate.remote.claim(parked.call_id, by="agent:a", fence="")
        assert (await gate.get(parked.call_id)).status is Status.APPROVED


async def test_who_asks_again_joins_what_a_process_without_the_tool_edited(database: Path) -> None:
    caller, url = Caller(), f"sqlite:///{database}"
    async with toolgate.open(url, tools=[plain(requires_approval=True)]) as gate:
        parked = await gate.call("send", {"n": 1}, call_id="c1", wait=False)
        async with toolgate.open(url) as elsewhere:
            await elsewhere.approvals.edit(str(parked.approval_id), {"n": 7}, by="ann")
        again = await gate.call("send", {"n": 1}, call_id="c1", wait=False)
        assert (again.status, again.joined) == (Status.APPROVED, True)
        assert (await gate.run_here("c1", caller)).data == {"sent": 7}


async def test_what_its_function_raises_is_how_it_failed(open_gate: Open) -> None:
    def refuse(_arguments: dict[str, Any]) -> None:
        raise ValueError("no such account")

    async with open_gate(tools=[plain()]) as gate:
        result = await gate.run_here((await gate.call("send")).call_id, refuse)
        assert (result.status, result.error) == (Status.FAILED, "no such account")


async def test_a_function_may_be_plain_and_return_a_tool_output(open_gate: Open) -> None:
    async with open_gate(tools=[plain(output_schema={"type": "object", "required": ["id"]})]) as gate:
        good = await gate.run_here((await gate.call("send")).call_id, lambda _given: ToolOutput.ok({"id": 1}))
        assert good.data == {"id": 1}
        bad = await gate.run_here((await gate.call("send")).call_id, lambda _given: {"name": "x"})
        assert (bad.status, bad.error_code) == (Status.FAILED, "invalid_output")


async def test_one_that_does_not_stop_in_its_time_is_in_doubt(open_gate: Open) -> None:
    import threading

    go = threading.Event()
    async with open_gate(tools=[plain(timeout_seconds=0.5)]) as gate:
        result: Result = await gate.run_here((await gate.call("send")).call_id, lambda _given: go.wait())
        go.set()
        assert (result.status, result.timed_out) == (Status.UNKNOWN, True)


async def test_a_grant_is_used_when_it_runs(open_gate: Open) -> None:
    caller = Caller()
    async with open_gate(tools=[plain(requires_approval=True)]) as gate:
        first = await gate.call("send", {"n": 1}, wait=False)
        await gate.decide(str(first.approval_id), "approve", by="ann", remember=Remember(uses=1))
        parked = await gate.call("send", {"n": 1}, wait=False)
        assert str(parked.approved_by).startswith("grant:")
        covered = await gate.run_here(parked.call_id, caller)
        assert covered.success
        again = await gate.call("send", {"n": 1}, wait=False)
        assert again.status is Status.AWAITING_APPROVAL


async def test_its_undo_runs_where_the_undo_handler_is(open_gate: Open) -> None:
    kept: list[Any] = []
    tool = plain(undoable=True, undo_handler=lambda undo: kept.append(undo.undo_data))
    async with open_gate(tools=[tool]) as gate:
        parked = await gate.call("send", {"n": 1})
        await gate.run_here(parked.call_id, lambda _given: ToolOutput.ok("sent", undo_metadata={"message": 7}))
        undone = await gate.undo(parked.call_id)
        assert (undone.status, kept) == (Status.COMPLETED, [{"message": 7}])


async def test_who_cannot_run_it_is_told_why(open_gate: Open) -> None:
    async def inline(_given: Any) -> ToolOutput:
        return ToolOutput.ok()

    async with open_gate(tools=[plain(), ToolDefinition("here", {}, inline)]) as gate:
        parked = await gate.call("send")
        with pytest.raises(UsageError, match="takes a function"):
            await gate.run_here(parked.call_id, "send")  # type: ignore[arg-type]  # as somebody might
        done = await gate.call("here")
        with pytest.raises(UsageError, match="placement 'inline'"):
            await gate.run_here(done.call_id, Caller())
        with pytest.raises(NotFoundError):
            await gate.run_here("nobody", Caller())
        gate.registry.discard("send")
        with pytest.raises(ConflictError, match="needs the tool"):
            await gate.run_here(parked.call_id, Caller())
        await gate.cancel(parked.call_id)
        assert (await gate.run_here(parked.call_id, Caller())).status is Status.CANCELLED


def test_only_a_tool_placed_at_its_caller_needs_no_handler() -> None:
    assert plain().handler is None
    with pytest.raises(DefinitionError, match="needs a callable handler"):
        ToolDefinition("send", COUNTS)


async def test_a_guard_that_refuses_inside_denies(open_gate: Open) -> None:
    def refuse(_arguments: dict[str, Any]) -> None:
        raise ToolDeniedError("not that one", tool="send")

    async with open_gate(tools=[plain()]) as gate:
        result = await gate.run_here((await gate.call("send")).call_id, refuse)
        assert result.error_code == "denied"
