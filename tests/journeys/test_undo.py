from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from tests.journeys.scene import Open, names, saying

from toolgate import Context, Gate, Result, ToolDefinition, ToolInput, ToolOutput
from toolgate.errors import NotAllowedError, NotFoundError, ToolUndoError
from toolgate.kernel.call import Status
from toolgate.kernel.tool import Prepared
from toolgate.kernel.undo import UndoMetadata
from toolgate.ports.store import CallQuery
from toolgate.testing.conformance.rows import losers, race_tasks, race_threads, winners
from toolgate.testing.patience import PATIENCE_S, until

SCHEMA = {"type": "object", "required": ["value"], "properties": {"value": {"type": "integer"}}}


class Register:
    """One value, a tool that sets it and an undo that puts the old one back."""

    def __init__(self) -> None:
        self.value = 0
        self.undone = 0
        self.trouble: Exception | None = None

    async def write(self, given: ToolInput) -> ToolOutput:
        old, self.value = self.value, given.payload["value"]
        return ToolOutput.ok(self.value, undo_metadata={"old": old})

    async def put_back(self, undo: UndoMetadata) -> None:
        await asyncio.sleep(0)
        if self.trouble is not None:
            raise self.trouble
        self.undone += 1
        self.value = undo.undo_data["old"]

    async def look(self, _undo: UndoMetadata) -> int:
        await asyncio.sleep(0)
        return self.value

    def tool(self, **options: Any) -> ToolDefinition:
        standard: dict[str, Any] = {"undoable": True, "undo_handler": self.put_back, "input_schema": SCHEMA}
        return ToolDefinition(name="write", handler=self.write, **{**standard, **options})


@pytest.fixture
def register() -> Register:
    return Register()


async def write(gate: Gate, value: int = 5, **options: Any) -> Result:
    result = await gate.call("write", {"value": value}, **options)
    assert result.success
    return result


async def test_an_undo_restores_what_was_there(open_gate: Open, register: Register) -> None:
    async with open_gate(tools=[register.tool()]) as gate:
        written = await write(gate)
        undone = await gate.undo(written.call_id)
        assert (undone.status, undone.undo_of, register.value) == (Status.COMPLETED, written.call_id, 0)
        events = await gate.events(call_id=undone.call_id)
        assert names(events) == ["tool.undo_started", "tool.undone"]
        assert events[1].data["action_id"] == written.call_id


async def test_a_call_is_undone_once(open_gate: Open, register: Register) -> None:
    async with open_gate(tools=[register.tool()]) as gate:
        written = await write(gate)
        await gate.undo(written.call_id)
        again = await gate.undo(written.call_id)
        assert (again.status, again.error_code) == (Status.FAILED, "undo_failed")
        assert "undone already" in str(again.error)
        assert register.undone == 1
        with pytest.raises(ToolUndoError):
            again.unwrap()


@pytest.mark.parametrize("race", [race_tasks, race_threads])
@pytest.mark.parametrize("watched", [False, True])
async def test_of_many_undos_at_once_one_runs(open_gate: Open, register: Register, race: Any, watched: bool) -> None:
    options = {"fingerprint": register.look} if watched else {}
    async with open_gate(tools=[register.tool(**options)]) as gate:
        written = await write(gate)
        outcomes = await race(20, lambda _: gate.undo(written.call_id))
        assert losers(outcomes) == []
        results = winners(outcomes)
        assert sum(result.success for result in results) == 1
        assert {result.error_code for result in results if not result.success} <= {"undo_failed", "undo_conflict"}
        assert (register.undone, register.value) == (1, 0)


async def test_a_failed_undo_can_be_tried_again(open_gate: Open, register: Register) -> None:
    async with open_gate(tools=[register.tool()]) as gate:
        written = await write(gate)
        register.trouble = OSError("disk is away")
        failed = await gate.undo(written.call_id)
        assert (failed.status, failed.error_code, failed.error) == (Status.FAILED, "undo_failed", "disk is away")
        assert names(await gate.events(call_id=failed.call_id))[-1] == "tool.undo_failed"
        register.trouble = None
        assert (await gate.undo(written.call_id)).success
        assert register.value == 0


async def test_an_undo_handler_may_report_failure_by_returning_it(open_gate: Open, register: Register) -> None:
    def refuse(_undo: UndoMetadata) -> ToolOutput:
        return ToolOutput.fail("locked by somebody")

    async with open_gate(tools=[register.tool(undo_handler=refuse)]) as gate:
        written = await write(gate)
        failed = await gate.undo(written.call_id)
        assert (failed.error_code, failed.error) == ("undo_failed", "locked by somebody")


async def test_an_undo_is_refused_when_the_world_changed_since(open_gate: Open, register: Register) -> None:
    async with open_gate(tools=[register.tool(fingerprint=register.look)]) as gate:
        written = await write(gate)
        register.value = 77
        refused = await gate.undo(written.call_id)
        assert refused.error_code == "undo_conflict"
        assert register.value == 77
        assert (await gate.undo(written.call_id, force=True)).success
        assert register.value == 0


async def test_a_fingerprint_that_cannot_be_taken_makes_undo_need_force(open_gate: Open, register: Register) -> None:
    def broken(_undo: UndoMetadata) -> int:
        raise OSError

    async with open_gate(tools=[register.tool(fingerprint=broken)]) as gate:
        written = await write(gate)
        assert (await gate.undo(written.call_id)).error_code == "undo_conflict"
        assert (await gate.undo(written.call_id, force=True)).success


async def test_a_denied_call_cannot_be_undone(open_gate: Open, register: Register) -> None:
    async with open_gate(tools=[register.tool()], policy=saying("deny")) as gate:
        denied = await gate.call("write", {"value": 5})
        refused = await gate.undo(denied.call_id)
        assert (refused.status, refused.error_code) == (Status.FAILED, "undo_failed")
        assert "DENIED" in str(refused.error)


async def test_an_unknown_call_cannot_be_undone(open_gate: Open, register: Register) -> None:
    async with open_gate(tools=[register.tool()]) as gate:
        with pytest.raises(NotFoundError):
            await gate.undo("nobody")


async def test_an_undo_cannot_be_undone(open_gate: Open, register: Register) -> None:
    async with open_gate(tools=[register.tool()]) as gate:
        undone = await gate.undo((await write(gate)).call_id)
        with pytest.raises(NotAllowedError, match="run the tool again"):
            await gate.undo(undone.call_id)


async def test_a_call_cannot_be_undone_after_its_time(open_gate: Open, register: Register) -> None:
    async with open_gate(tools=[register.tool()], undo_ttl_seconds=0.000001) as gate:
        written = await write(gate)
        refused = await gate.undo(written.call_id)
        assert "its time is over" in str(refused.error)
        assert register.value == 5


async def test_a_tool_without_undo_leaves_nothing_to_undo(open_gate: Open, register: Register) -> None:
    async with open_gate(tools=[register.tool(undoable=False)]) as gate:
        refused = await gate.undo((await write(gate)).call_id)
        assert "no undo data" in str(refused.error)


async def test_a_tool_whose_undo_handler_or_self_is_gone_is_not_undone(open_gate: Open, register: Register) -> None:
    async with open_gate(tools=[register.tool()]) as gate:
        written = await write(gate)
        gate.register(register.tool(undo_handler=None))
        assert "no undo handler" in str((await gate.undo(written.call_id)).error)
        gate.registry.discard("write")
        assert "not registered" in str((await gate.undo(written.call_id)).error)


async def test_an_undo_is_denied_in_lockdown(open_gate: Open, register: Register) -> None:
    async with open_gate(tools=[register.tool()]) as gate:
        written = await write(gate)
        await gate.set_mode("LOCKDOWN", by="ann")
        denied = await gate.undo(written.call_id)
        assert denied.status is Status.DENIED
        assert register.value == 5
        await gate.set_mode("NORMAL", by="ann")
        assert (await gate.undo(written.call_id)).success


async def test_undoing_never_asks_because_the_tool_requires_approval(open_gate: Open, register: Register) -> None:
    async with open_gate(tools=[register.tool(requires_approval=True)], approver=lambda _: True) as gate:
        written = await write(gate)
        undone = await gate.undo(written.call_id)
        assert (undone.success, undone.approval_id) == (True, None)


async def test_an_undo_asks_where_the_policy_says_so(open_gate: Open, register: Register) -> None:
    async with open_gate(tools=[register.tool()], policy=saying("allow", undo_asks=True)) as gate:
        written = await write(gate)
        undoing = asyncio.ensure_future(gate.undo(written.call_id))
        await until(gate.pending)
        approval = (await gate.pending())[0]
        assert approval.message == f"Undo write ({written.call_id})?"
        await gate.decide(approval.id, "approve", by="ann")
        assert (await undoing).success
        assert register.value == 0


async def test_an_undo_that_is_rejected_changes_nothing(open_gate: Open, register: Register) -> None:
    async with open_gate(tools=[register.tool()], policy=saying("allow", undo_asks=True)) as gate:
        written = await write(gate)
        undoing = asyncio.ensure_future(gate.undo(written.call_id))
        await until(gate.pending)
        await gate.decide((await gate.pending())[0].id, "deny", by="ann")
        rejected = await undoing
        assert rejected.status is Status.REJECTED
        assert names(await gate.events(call_id=rejected.call_id))[-1] == "tool.undo_failed"
        assert register.value == 5


async def test_a_world_that_changes_while_people_think_stops_the_undo(open_gate: Open, register: Register) -> None:
    tool = register.tool(fingerprint=register.look)
    async with open_gate(tools=[tool], policy=saying("allow", undo_asks=True)) as gate:
        written = await write(gate)
        undoing = asyncio.ensure_future(gate.undo(written.call_id))
        await until(gate.pending)
        register.value = 77
        await gate.decide((await gate.pending())[0].id, "approve", by="ann")
        refused = await undoing
        assert (refused.status, refused.error_code) == (Status.FAILED, "undo_conflict")
        assert register.value == 77


async def test_two_approved_undos_of_one_call_run_once(open_gate: Open, register: Register) -> None:
    async with open_gate(tools=[register.tool()], policy=saying("allow", undo_asks=True)) as gate:
        written = await write(gate)
        undoing = [asyncio.ensure_future(gate.undo(written.call_id)) for _ in range(2)]
        await until(lambda: _are_open(gate, 2))
        for approval in await gate.pending():
            await gate.decide(approval.id, "approve", by="ann")
        results = await asyncio.gather(*undoing)
        assert sorted(str(result.error_code) for result in results) == ["None", "undo_failed"]
        assert register.undone == 1


async def _are_open(gate: Gate, count: int) -> bool:
    return len(await gate.pending()) == count


async def test_undo_data_of_prepare_is_used_when_the_handler_gives_none(open_gate: Open, register: Register) -> None:
    async def prepare(_given: ToolInput) -> Prepared:
        return Prepared(undo_data={"old": register.value})

    async def handler(given: ToolInput) -> ToolOutput:
        register.value = given.payload["value"]
        return ToolOutput.ok()

    tool = ToolDefinition(name="write", handler=handler, undoable=True, undo_handler=register.put_back, prepare=prepare)
    async with open_gate(tools=[tool]) as gate:
        written = await write(gate)
        assert (await gate.undo(written.call_id)).success
        assert register.value == 0


async def test_a_run_is_undone_last_call_first(open_gate: Open, register: Register) -> None:
    run = Context(run_id="r1")
    async with open_gate(tools=[register.tool()]) as gate:
        first, second = await write(gate, 5, context=run), await write(gate, 6, context=run)
        await write(gate, 7)
        report = await gate.undo_run("r1")
        assert [result.undo_of for result in report.results] == [second.call_id, first.call_id]
        assert (report.success, register.value) == (True, 0)
        assert (await gate.undo_run("r1")).skipped == (second.call_id, first.call_id)


@pytest.mark.parametrize(("skip", "tried"), [(False, 1), (True, 2)])
async def test_a_run_stops_at_the_first_undo_that_fails(
    open_gate: Open, register: Register, skip: bool, tried: int
) -> None:
    run = Context(run_id="r1")
    async with open_gate(tools=[register.tool()]) as gate:
        await write(gate, 5, context=run)
        await write(gate, 6, context=run)
        register.trouble = OSError("no")
        report = await gate.undo_run("r1", skip_failures=skip)
        assert (len(report.results), report.success) == (tried, False)


async def test_an_undo_that_cannot_be_stopped_leaves_the_record_claimed(open_gate: Open, register: Register) -> None:
    started, release = threading.Event(), threading.Event()

    def stuck(_undo: UndoMetadata) -> None:
        started.set()
        release.wait(PATIENCE_S)

    async with open_gate(tools=[register.tool(undo_handler=stuck)]) as gate:
        written = await write(gate)
        undoing = asyncio.ensure_future(gate.undo(written.call_id))
        await until(started.is_set)
        undo_call = next(call for call in await gate.calls.list(CallQuery()) if call.undo_of is not None)
        await gate.cancel(undo_call.id)
        assert (await undoing).status is Status.UNKNOWN
        assert "another undo" in str((await gate.undo(written.call_id)).error)
        release.set()


async def test_a_parked_undo_is_cancelled_like_any_call(open_gate: Open, register: Register) -> None:
    async with open_gate(tools=[register.tool()], policy=saying("allow", undo_asks=True)) as gate:
        written = await write(gate)
        undoing = asyncio.ensure_future(gate.undo(written.call_id))
        await until(gate.pending)
        await gate.cancel((await gate.pending())[0].call_id)
        assert (await undoing).status is Status.CANCELLED
        assert await gate.pending() == []


async def test_an_undo_that_cannot_see_foreign_changes_says_so(open_gate: Open, register: Register) -> None:
    async with open_gate(tools=[register.tool()]) as gate:
        result = await gate.undo((await write(gate)).call_id)
        assert (result.status, result.unchecked) == (Status.COMPLETED, True)
        assert (await gate.wait(result.call_id)).unchecked
        told = {event.type: event.data for event in await gate.events(call_id=result.call_id)}
        assert told["tool.undo_started"]["unchecked"] is told["tool.undone"]["unchecked"] is True


async def test_an_undo_that_looked_first_is_not_unchecked(open_gate: Open, register: Register) -> None:
    tool = register.tool(fingerprint=register.look)
    async with open_gate(tools=[tool], policy=saying("allow", refuses_unchecked_undo=True)) as gate:
        result = await gate.undo((await write(gate)).call_id)
        assert (result.success, result.unchecked) == (True, False)
        assert "unchecked" not in (await gate.events())[-1].data


async def test_an_unchecked_undo_is_refused_where_the_policy_says_so(open_gate: Open, register: Register) -> None:
    async with open_gate(tools=[register.tool()], policy=saying("allow", refuses_unchecked_undo=True)) as gate:
        written = await write(gate)
        refused = await gate.undo(written.call_id)
        assert (refused.status, refused.rule, register.value) == (Status.DENIED, "undo", 5)
        forced = await gate.undo(written.call_id, force=True)
        assert (forced.success, forced.unchecked, register.value) == (True, True, 0)
        last = (await gate.events())[-1].data
        assert (last["forced"], last["unchecked"]) == (True, True)


async def test_who_is_asked_about_an_unchecked_undo_is_told(open_gate: Open, register: Register) -> None:
    async with open_gate(tools=[register.tool()], policy=saying("allow", undo_asks=True)) as gate:
        undoing = asyncio.ensure_future(gate.undo((await write(gate)).call_id))
        await until(gate.pending)
        (question,) = await gate.pending()
        assert question.arguments["unchecked"] is True
        assert any("unchecked" in reason for reason in question.reasons)
        await gate.decide(question.id, "approve", by="ann")
        assert (await undoing).unchecked
