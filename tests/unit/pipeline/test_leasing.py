"""Calls that run elsewhere: taken once, reported once, and honest about what nobody reports."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from tests.unit.pipeline.rig import Rig

from toolgate import ToolDefinition, ToolOutput
from toolgate.errors import ConflictError, NotAllowedError, StaleFenceError
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change
from toolgate.kernel.context import DEFAULT_CONTEXT, Mode, Principal
from toolgate.kernel.undo import UndoMetadata, UndoState
from toolgate.pipeline.remote.leasing import MOST_ATTEMPTS
from toolgate.testing.clock import NOON
from toolgate.testing.conformance.rows import a_call, an_undo, commit, insert, set_mode

ANN, BOB = Principal(name="ann"), Principal(name="bob")


def a_tool(name: str, **options: Any) -> ToolDefinition:
    options.setdefault("placement", "client")
    return ToolDefinition(name=name, handler=lambda _given: ToolOutput.ok(), timeout_seconds=10, **options)


def no_undo(_undo: UndoMetadata) -> None:
    """Never runs here: the tool is a client's."""


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    rig = Rig(
        a_tool("far"),
        a_tool("look", effects="read"),
        a_tool("sized", output_schema={"type": "object", "required": ["size"]}),
        a_tool("kept", undoable=True, undo_handler=no_undo),
    )
    yield rig
    await rig.close()


async def claimed(rig: Rig, tool: str = "far") -> Call:
    await rig.pipeline.run(tool, {"key": "correct-horse-9"}, DEFAULT_CONTEXT, call_id="c1")
    return await rig.driver.read("default", "c1")


async def leased(rig: Rig, tool: str = "far") -> Call:
    await claimed(rig, tool)
    return await rig.leases.dispatch("default", "c1", to=ANN)


async def report(rig: Rig, output: ToolOutput, *, fence: str | None = None, by: Principal | None = None) -> Any:
    return await rig.leases.complete("default", "c1", output, fence=fence, by=by)


async def test_a_dispatched_call_names_its_runner_before_anything_is_sent(rig: Rig) -> None:
    await claimed(rig)
    rig.clock.advance(5)
    sent = await rig.leases.dispatch("default", "c1", to=ANN)
    assert (sent.runner, sent.due_at) == ("ann", NOON + timedelta(seconds=15))
    assert await rig.driver.read("default", "c1") == sent
    assert (await rig.names("c1"))[-1] == "tool.dispatched"


async def test_a_call_is_given_to_one_runner_only(rig: Rig) -> None:
    await leased(rig)
    with pytest.raises(ConflictError, match="waits for nobody"):
        await rig.leases.dispatch("default", "c1", to=BOB)


async def test_a_call_that_runs_here_is_given_to_nobody(rig: Rig) -> None:
    await commit(rig.store, insert(a_call(status=Status.EXECUTING)))
    with pytest.raises(ConflictError, match="waits for nobody"):
        await rig.leases.dispatch("default", "c1", to=BOB)


async def test_a_client_reports_success(rig: Rig) -> None:
    fence = (await claimed(rig)).fence
    rig.clock.advance(2)
    done = await report(rig, ToolOutput.ok({"password": "correct-horse-9"}), fence=fence)
    assert (done.status, done.data, done.duration_ms) == (Status.COMPLETED, {"password": "correct-horse-9"}, 2000)
    assert "correct-horse-9" not in repr((await rig.driver.read("default", "c1")).shown_result)


@pytest.mark.parametrize(("error", "told"), [("disk full", "disk full"), ("", "without saying why")])
async def test_a_client_reports_failure(rig: Rig, error: str, told: str) -> None:
    await claimed(rig)
    failed = await report(rig, ToolOutput.fail(error))
    assert failed.status is Status.FAILED
    assert told in str(failed.error)


async def test_a_result_that_breaks_the_output_schema_fails_the_call(rig: Rig) -> None:
    await claimed(rig, "sized")
    failed = await report(rig, ToolOutput.ok({"length": 1}))
    assert (failed.status, failed.error_code) == (Status.FAILED, "invalid_output")


async def test_undo_data_and_artifacts_of_a_client_are_kept(rig: Rig) -> None:
    await claimed(rig, "kept")
    done = await report(rig, ToolOutput.ok(1, undo_metadata={"old": "x"}, artifacts=["a"]))
    kept = await rig.store.undo("default", "c1")
    assert kept is not None
    assert (kept.data, kept.state, done.artifacts) == (b'{"old":"x"}', UndoState.AVAILABLE, ("a",))


@pytest.mark.parametrize(
    ("output", "state", "ends"),
    [
        (ToolOutput.ok(), UndoState.DONE, "tool.undone"),
        (ToolOutput.fail("x"), UndoState.AVAILABLE, "tool.undo_failed"),
    ],
)
async def test_a_client_reports_an_undo(rig: Rig, output: ToolOutput, state: UndoState, ends: str) -> None:
    undoing = a_call(status=Status.EXECUTING, placement="client", undo_of="c0", tool_name="kept")
    claimed_undo = an_undo("c0", state=UndoState.CLAIMED, claimed_by="c1")
    await commit(rig.store, insert(undoing, undo=claimed_undo))
    await report(rig, output)
    kept = await rig.store.undo("default", "c0")
    assert kept is not None
    assert kept.state is state
    assert (await rig.names("c1"))[-1] == ends


async def test_only_the_holder_of_the_claim_is_heard_and_only_once(rig: Rig) -> None:
    fence = (await claimed(rig)).fence
    with pytest.raises(StaleFenceError, match="another runner"):
        await report(rig, ToolOutput.ok(), fence="another")
    await report(rig, ToolOutput.ok(), fence=fence)
    with pytest.raises(StaleFenceError, match="COMPLETED"):
        await report(rig, ToolOutput.ok(), fence=fence)


async def test_without_a_fence_only_the_runner_itself_is_heard(rig: Rig) -> None:
    await leased(rig)
    with pytest.raises(NotAllowedError, match="does not run at bob"):
        await report(rig, ToolOutput.ok(), by=BOB)
    assert (await report(rig, ToolOutput.ok(), by=ANN)).status is Status.COMPLETED


async def test_a_result_of_a_call_that_was_sent_to_nobody_is_refused(rig: Rig) -> None:
    await claimed(rig)
    with pytest.raises(NotAllowedError):
        await report(rig, ToolOutput.ok(), by=ANN)


async def test_of_two_reports_at_once_the_first_counts(rig: Rig) -> None:
    await claimed(rig)

    async def before(_change: Change) -> None:
        rig.store.before = None
        await report(rig, ToolOutput.ok("first"))

    rig.store.before = before
    with pytest.raises(StaleFenceError, match="COMPLETED"):
        await report(rig, ToolOutput.ok("second"))
    assert (await rig.driver.read("default", "c1")).result == b'"first"'
    assert (await rig.names("c1"))[-1] == "tool.late_result"


def once(rig: Rig) -> None:
    """Let the row change, but not its lease, right before the next commit."""

    async def before(_change: Change) -> None:
        rig.store.before = None
        call = await rig.driver.read("default", "c1")
        await commit(rig.store, Change(project="default", at=NOON, call=call.stay(), expect=call.version))

    rig.store.before = before


async def test_a_row_that_changes_meanwhile_loses_no_report(rig: Rig) -> None:
    await claimed(rig)
    once(rig)
    await rig.leases.dispatch("default", "c1", to=ANN)
    once(rig)
    await rig.leases.progress("default", "c1", by=ANN, fence=None, fraction=None, message=None, data=None)
    once(rig)
    assert (await report(rig, ToolOutput.ok(), by=ANN)).status is Status.COMPLETED
    assert "tool.late_result" not in await rig.names("c1")


@pytest.mark.parametrize("by_fence", [True, False])
async def test_a_report_of_the_runner_that_comes_too_late_is_kept_as_evidence(rig: Rig, by_fence: bool) -> None:
    sent = await leased(rig)
    rig.clock.advance(11)
    await rig.sweeper.sweep()
    with pytest.raises(StaleFenceError, match="UNKNOWN"):
        await report(rig, ToolOutput.ok(), fence=sent.fence if by_fence else None, by=ANN)
    assert (await rig.names("c1"))[-1] == "tool.late_result"
    with pytest.raises(StaleFenceError):
        await report(rig, ToolOutput.ok(), by=BOB)
    assert (await rig.names("c1")).count("tool.late_result") == 1


async def test_a_call_that_runs_here_takes_no_result_from_elsewhere(rig: Rig) -> None:
    await commit(rig.store, insert(a_call(status=Status.EXECUTING)))
    with pytest.raises(StaleFenceError, match="does not wait for this result"):
        await report(rig, ToolOutput.ok())


async def test_a_result_for_a_tool_that_is_not_here_is_refused(rig: Rig) -> None:
    await commit(rig.store, insert(a_call(status=Status.EXECUTING, placement="client", tool_name="gone")))
    with pytest.raises(ConflictError, match="needs tool `gone`"):
        await report(rig, ToolOutput.ok())


async def test_progress_renews_the_lease(rig: Rig) -> None:
    await leased(rig)
    rig.clock.advance(8)
    told = {"fraction": 0.5, "message": "password=correct-horse-9", "data": [1]}
    await rig.leases.progress("default", "c1", by=ANN, fence=None, **told)  # type: ignore[arg-type]  # by name
    assert (await rig.driver.read("default", "c1")).due_at == NOON + timedelta(seconds=18)
    event = (await rig.store.events("default", call_id="c1"))[-1]
    assert event.type == "tool.progress"
    assert event.data["data"] == [1]
    assert "correct-horse-9" not in event.data["message"]


async def test_progress_that_comes_too_late_is_refused(rig: Rig) -> None:
    await leased(rig)

    async def before(_change: Change) -> None:
        rig.store.before = None
        await report(rig, ToolOutput.ok())

    rig.store.before = before
    with pytest.raises(StaleFenceError, match="COMPLETED"):
        await rig.leases.progress("default", "c1", by=ANN, fence=None, fraction=None, message=None, data=None)


async def test_the_lease_of_a_tool_that_is_gone_still_has_a_term(rig: Rig) -> None:
    await commit(rig.store, insert(a_call(status=Status.EXECUTING, placement="client", tool_name="gone")))
    sent = await rig.leases.dispatch("default", "c1", to=ANN)
    assert sent.due_at is not None


async def test_a_call_nobody_takes_in_time_fails_since_nothing_was_sent(rig: Rig) -> None:
    await claimed(rig)
    rig.clock.advance(11)
    await rig.sweeper.sweep()
    call = await rig.driver.read("default", "c1")
    assert (call.status, call.error_code) == (Status.FAILED, "no_runner")


async def test_a_lease_that_ends_leaves_effects_unknown(rig: Rig) -> None:
    await leased(rig)
    rig.clock.advance(11)
    await rig.sweeper.sweep()
    call = await rig.driver.read("default", "c1")
    assert (call.status, call.error_code) == (Status.UNKNOWN, "unknown")
    assert "timed out" in str(call.error)


async def test_a_read_whose_runner_was_lost_is_offered_again_with_another_fence(rig: Rig) -> None:
    lost = await leased(rig, "look")
    rig.clock.advance(11)
    await rig.sweeper.sweep()
    again = await rig.driver.read("default", "c1")
    assert (again.status, again.runner, again.attempt) == (Status.EXECUTING, None, 2)
    assert again.fence != lost.fence
    assert len(rig.client.jobs) == 2
    with pytest.raises(StaleFenceError):
        await report(rig, ToolOutput.ok(), fence=lost.fence)


async def test_a_read_is_not_offered_for_ever(rig: Rig) -> None:
    await claimed(rig, "look")
    for _ in range(MOST_ATTEMPTS):
        await rig.leases.dispatch("default", "c1", to=ANN)
        rig.clock.advance(11)
        await rig.sweeper.sweep()
    call = await rig.driver.read("default", "c1")
    assert (call.status, call.error_code) == (Status.FAILED, "timeout")


async def test_what_was_sent_to_nobody_is_offered_again_after_the_owner_died(rig: Rig) -> None:
    await claimed(rig)
    await rig.recovery._take_over(await rig.driver.read("default", "c1"))
    assert len(rig.client.jobs) == 2
    assert (await rig.driver.read("default", "c1")).attempt == 2


async def test_an_undo_that_was_sent_to_nobody_is_offered_again_with_its_record(rig: Rig) -> None:
    tool = rig.driver.registry.find("kept")
    assert tool is not None
    undoing = a_call(
        status=Status.EXECUTING, placement="client", undo_of="c0", tool_name="kept", definition_hash=tool.hash
    )
    await commit(rig.store, insert(a_call(id="c0", status=Status.COMPLETED, tool_name="kept")))
    await commit(rig.store, insert(undoing, undo=an_undo("c0", state=UndoState.CLAIMED, claimed_by="c1")))
    await rig.recovery._take_over(await rig.driver.read("default", "c1"))
    assert rig.client.jobs[0].undo is not None


async def test_what_a_runner_holds_stays_with_it_after_the_owner_died(rig: Rig) -> None:
    sent = await leased(rig)
    rig.driver.owner = "heir"
    await rig.recovery._take_over(sent)
    kept = await rig.driver.read("default", "c1")
    assert (kept.status, kept.owner, kept.due_at) == (Status.EXECUTING, "heir", sent.due_at)
    assert (await report(rig, ToolOutput.ok(), fence=sent.fence)).status is Status.COMPLETED


async def test_what_is_denied_meanwhile_is_not_offered_again(rig: Rig) -> None:
    await claimed(rig, "look")
    await commit(rig.store, set_mode(Mode.LOCKDOWN))
    await rig.recovery._take_over(await rig.driver.read("default", "c1"))
    assert (await rig.driver.read("default", "c1")).status is Status.FAILED


async def test_a_process_without_the_tool_leaves_the_call_alone(rig: Rig) -> None:
    await commit(rig.store, insert(a_call(status=Status.EXECUTING, placement="client", tool_name="gone")))
    await rig.recovery._take_over(await rig.driver.read("default", "c1"))
    assert (await rig.driver.read("default", "c1")).version == 1


async def test_a_call_that_was_sent_to_nobody_can_be_cancelled(rig: Rig) -> None:
    await claimed(rig)
    assert (await rig.answers.cancel("default", "c1", reason="x")).status is Status.CANCELLED


async def test_a_read_at_a_client_can_be_cancelled(rig: Rig) -> None:
    await leased(rig, "look")
    assert (await rig.answers.cancel("default", "c1", reason="x")).status is Status.CANCELLED


async def test_a_runner_is_asked_to_stop_and_its_report_counts(rig: Rig) -> None:
    await leased(rig)
    assert (await rig.answers.cancel("default", "c1", reason="x")).status is Status.EXECUTING
    assert rig.client.recalled == [("c1", "x")]
    await report(rig, ToolOutput.fail("stopped"), by=ANN)
    assert (await rig.driver.read("default", "c1")).status is Status.FAILED


async def test_where_nobody_can_be_asked_to_stop_the_call_goes_on(rig: Rig) -> None:
    await leased(rig)
    rig.driver.runners = {"client": rig.inline}
    assert (await rig.answers.cancel("default", "c1", reason="x")).status is Status.EXECUTING


@pytest.mark.parametrize(("tool", "ends"), [("far", Status.UNKNOWN), ("look", Status.FAILED)])
async def test_a_runner_that_cannot_say_what_it_did_says_so(rig: Rig, tool: str, ends: Status) -> None:
    fence = (await leased(rig, tool)).fence
    ended = await rig.leases.doubt("default", "c1", "it died; password=correct-horse-9", fence=fence, by=ANN)
    assert ended.status is ends
    assert "it died" in str(ended.error)
    assert "correct-horse-9" not in str(ended.error)
    with pytest.raises(StaleFenceError):
        await rig.leases.doubt("default", "c1", "again", fence=fence, by=ANN)


async def test_a_doubt_about_a_call_that_moves_meanwhile_looks_again(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    call = await leased(rig)
    looked = rig.leases._held

    async def outrun(*args: Any) -> Call:
        monkeypatch.undo()
        found = await looked(*args)
        await rig.leases.progress("default", "c1", by=ANN, fence=None, fraction=0.5, message=None, data=None)
        return found

    monkeypatch.setattr(rig.leases, "_held", outrun)
    ended = await rig.leases.doubt("default", "c1", "it died", fence=call.fence)
    assert ended.status is Status.UNKNOWN
