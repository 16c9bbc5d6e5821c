from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import pytest
from tests.unit.pipeline.rig import Rig

from toolgate import Context, Policy, ToolDefinition, ToolInput, ToolOutput
from toolgate.errors import StoreError
from toolgate.kernel.approval import Approval
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change
from toolgate.kernel.context import DEFAULT_CONTEXT, Mode, Principal
from toolgate.kernel.policy import Default
from toolgate.kernel.record import evolve
from toolgate.kernel.tool import Prepared
from toolgate.kernel.undo import UndoMetadata, UndoState
from toolgate.pipeline.lockdown import Lockdown
from toolgate.pipeline.people import undoing
from toolgate.ports.store import ApprovalQuery
from toolgate.testing.clock import NOON
from toolgate.testing.conformance.rows import a_call, an_undo, commit, insert, set_mode

ANN = Principal(name="ann")


def a_tool(name: str = "write", **options: Any) -> ToolDefinition:
    return ToolDefinition(name=name, handler=lambda _given: ToolOutput.ok("done"), **options)


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    rig = Rig(a_tool(), a_tool("ask", requires_approval=True))
    yield rig
    await rig.close()


async def approved(rig: Rig, name: str = "ask") -> Any:
    asked = await rig.pipeline.run(name, {}, DEFAULT_CONTEXT, call_id="c1")
    await rig.decide(str(asked.approval_id), approve_it=True, by=ANN)
    return await rig.driver.read("default", "c1")


async def test_silence_is_denied_where_the_policy_says_so(rig: Rig) -> None:
    rig.driver.policy = Policy(default=Default.DENY)
    result = await rig.pipeline.run("write", {}, DEFAULT_CONTEXT)
    assert result.status is Status.DENIED
    assert "no rule of the policy allows it (rule `default`)" in str(result.error)


async def test_silence_is_asked_about_where_the_policy_says_so(rig: Rig) -> None:
    rig.driver.policy = Policy(default=Default.ASK)
    result = await rig.pipeline.run("write", {}, DEFAULT_CONTEXT)
    assert result.status is Status.AWAITING_APPROVAL


async def test_whoever_wants_to_know_is_told_that_somebody_is_asked(rig: Rig) -> None:
    told: list[Approval] = []
    rig.driver.on_asked = told.append
    result = await rig.pipeline.run("ask", {}, DEFAULT_CONTEXT)
    assert [approval.id for approval in told] == [result.approval_id]


async def test_an_approval_that_covers_something_else_does_not_run_the_call(rig: Rig) -> None:
    call = await approved(rig)
    tampered = evolve(call.stay(), arguments=b'{"path":"/etc/passwd"}')
    await commit(rig.store, Change(project="default", at=NOON, call=tampered, expect=call.version))
    result = await rig.pipeline.resume(tampered)
    assert (result.status, result.error_code) == (Status.DENIED, "approval_mismatch")


async def test_a_call_without_its_approval_does_not_run(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    call = await approved(rig)

    async def nothing(_query: ApprovalQuery) -> list[Approval]:
        return []

    monkeypatch.setattr(rig.store, "approvals", nothing)
    assert (await rig.pipeline.resume(call)).error_code == "approval_mismatch"


async def test_a_call_whose_tool_is_elsewhere_is_left_to_who_has_it(rig: Rig) -> None:
    call = await approved(rig)
    rig.driver.registry.discard("ask")
    assert (await rig.pipeline.resume(call)).status is Status.APPROVED


async def test_a_mode_that_changes_before_the_claim_is_looked_at_again(rig: Rig) -> None:
    async def lock_first(_change: Change) -> None:
        rig.store.before = None
        await commit(rig.store, set_mode(Mode.LOCKDOWN))

    rig.store.before = lock_first
    result = await rig.pipeline.run("write", {}, DEFAULT_CONTEXT)
    assert result.status is Status.DENIED
    assert "LOCKDOWN" in str(result.error)


async def test_a_mode_that_changes_while_asking_is_looked_at_again(rig: Rig) -> None:
    async def alert_first(_change: Change) -> None:
        rig.store.before = None
        await commit(rig.store, set_mode(Mode.ALERT))

    rig.store.before = alert_first
    result = await rig.pipeline.run("ask", {}, DEFAULT_CONTEXT)
    assert result.status is Status.AWAITING_APPROVAL


async def test_a_refusal_that_comes_second_gives_what_stands(rig: Rig) -> None:
    await rig.pipeline.run("write", {}, DEFAULT_CONTEXT, call_id="c1")
    await commit(rig.store, set_mode(Mode.LOCKDOWN))
    again = await rig.pipeline.run("write", {}, DEFAULT_CONTEXT, call_id="c1")
    assert (again.status, again.data) == (Status.COMPLETED, "done")


async def test_a_store_that_cannot_write_stops_the_call_before_its_effect(rig: Rig) -> None:
    ran: list[str] = []

    async def handler(_given: ToolInput) -> ToolOutput:
        ran.append("handler")
        return ToolOutput.ok()

    async def refuse(_change: Change) -> None:
        raise StoreError("disk full")

    rig.driver.registry.add(ToolDefinition(name="effect", handler=handler))
    rig.store.before = refuse
    with pytest.raises(StoreError):
        await rig.pipeline.run("effect", {}, DEFAULT_CONTEXT)
    assert ran == []


async def test_an_end_that_cannot_be_recorded_is_loud(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    async def refuse_the_end(change: Change) -> None:
        if change.call is not None and change.call.is_final:
            raise StoreError("disk full")

    rig.store.before = refuse_the_end
    with pytest.raises(StoreError):
        await rig.pipeline.run("write", {}, DEFAULT_CONTEXT, call_id="c1")
    assert "call c1 ended COMPLETED but it could not be recorded" in caplog.text


def _broken(_given: ToolInput) -> Prepared:
    raise OSError("no access")


def _wrong(_given: ToolInput) -> Prepared:
    return {"preview": 1}  # type: ignore[return-value]


async def _slow(_given: ToolInput) -> Prepared:
    await asyncio.Event().wait()
    return Prepared()


@pytest.mark.parametrize(
    ("prepare", "told", "allowed_s"),
    [(_broken, "no access", 30), (_wrong, "dict instead of Prepared", 30), (_slow, "TimeoutError", 0.01)],
)
async def test_a_preparation_that_fails_ends_the_call_before_anybody_is_asked(
    rig: Rig, prepare: Any, told: str, allowed_s: float
) -> None:
    rig.driver.registry.add(a_tool("plan", requires_approval=True, prepare=prepare, timeout_seconds=allowed_s))
    result = await rig.pipeline.run("plan", {}, DEFAULT_CONTEXT)
    assert (result.status, result.error_code) == (Status.FAILED, "prepare_failed")
    assert told in str(result.error)


async def test_a_preparation_without_undo_data_leaves_no_undo_record(rig: Rig) -> None:
    rig.driver.registry.add(a_tool("plan", prepare=lambda _given: Prepared(preview=1)))
    result = await rig.pipeline.run("plan", {}, DEFAULT_CONTEXT, call_id="c1")
    assert result.success
    assert await rig.store.undo("default", "c1") is None


async def test_prepared_undo_data_is_written_before_the_effect(rig: Rig) -> None:
    seen: list[Any] = []

    async def handler(given: ToolInput) -> ToolOutput:
        seen.append(await rig.store.undo("default", str(given.action_id)))
        return ToolOutput.ok()

    rig.driver.registry.add(
        ToolDefinition(
            name="plan",
            handler=handler,
            undoable=True,
            undo_handler=lambda _undo: None,
            prepare=lambda _given: Prepared(undo_data={"old": 1}),
        )
    )
    await rig.pipeline.run("plan", {}, DEFAULT_CONTEXT)
    assert (seen[0].state, seen[0].data) == (UndoState.PREPARED, b'{"old":1}')


async def test_an_undo_approved_too_late_is_refused(rig: Rig) -> None:
    rig.driver.policy = Policy(undo_asks=True, undo_ttl_s=100)
    rig.driver.registry.add(a_tool("plan", undoable=True, undo_handler=lambda _undo: None))
    await rig.pipeline.run("plan", {}, DEFAULT_CONTEXT, call_id="c1")
    asked = await rig.undoing.undo("default", "c1", DEFAULT_CONTEXT)
    await rig.decide(str(asked.approval_id), approve_it=True, by=ANN)
    rig.clock.advance(100)
    refused = await rig.pipeline.resume(await rig.driver.read("default", asked.call_id))
    assert (refused.status, refused.error_code) == (Status.FAILED, "undo_failed")


async def test_an_approved_undo_that_lost_to_another_is_refused(rig: Rig) -> None:
    rig.driver.policy = Policy(undo_asks=True)
    rig.driver.registry.add(a_tool("plan", undoable=True, undo_handler=lambda _undo: None))
    await rig.pipeline.run("plan", {}, DEFAULT_CONTEXT, call_id="c1")
    asked = await rig.undoing.undo("default", "c1", DEFAULT_CONTEXT)
    await rig.decide(str(asked.approval_id), approve_it=True, by=ANN)

    async def claim_first(_change: Change) -> None:
        rig.store.before = None
        taken = an_undo("c1", state=UndoState.CLAIMED, claimed_by="another")
        await commit(rig.store, insert(a_call("another"), undo=taken))

    rig.store.before = claim_first
    refused = await rig.pipeline.resume(await rig.driver.read("default", asked.call_id))
    assert (refused.status, refused.error_code) == (Status.FAILED, "undo_failed")
    assert "came first" in str(refused.error)


async def test_an_undo_that_was_cancelled_meanwhile_gives_what_stands(rig: Rig) -> None:
    rig.driver.policy = Policy(undo_asks=True)
    rig.driver.registry.add(a_tool("plan", undoable=True, undo_handler=lambda _undo: None))
    await rig.pipeline.run("plan", {}, DEFAULT_CONTEXT, call_id="c1")
    asked = await rig.undoing.undo("default", "c1", DEFAULT_CONTEXT)
    await rig.decide(str(asked.approval_id), approve_it=True, by=ANN)

    async def cancel_first(_change: Change) -> None:
        rig.store.before = None
        await rig.answers.cancel("default", asked.call_id, reason="x")

    rig.store.before = cancel_first
    result = await rig.pipeline.resume(await rig.driver.read("default", asked.call_id))
    assert result.status is Status.CANCELLED


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_fingerprint_may_be_taken_by_a_plain_or_an_async_hook(rig: Rig, is_async: bool) -> None:
    async def look_async(_undo: UndoMetadata) -> int:
        return 1

    def look(_undo: UndoMetadata) -> int:
        return 1

    hook = look_async if is_async else look
    rig.driver.registry.add(a_tool("plan", undoable=True, undo_handler=lambda _undo: None, fingerprint=hook))
    await rig.pipeline.run("plan", {}, DEFAULT_CONTEXT, call_id="c1")
    kept = await rig.store.undo("default", "c1")
    assert kept is not None
    assert kept.fingerprint == b"1"
    assert (await rig.undoing.undo("default", "c1", DEFAULT_CONTEXT)).success


async def test_a_long_run_is_undone_page_by_page(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undoing, "PAGE", 2)
    rig.driver.registry.add(a_tool("plan", undoable=True, undo_handler=lambda _undo: None))
    context = Context(run_id="r1")
    for number in range(5):
        await rig.pipeline.run("plan", {}, context, call_id=f"c{number}")

    async def undo_one(call_id: str, *, context: Context, force: bool) -> Any:
        return await rig.undoing.undo("default", call_id, context, force=force)

    report = await rig.undoing.undo_run("r1", context, undo_one, force=False, skip_failures=False)
    assert [result.undo_of for result in report.results] == ["c4", "c3", "c2", "c1", "c0"]
    again = await rig.undoing.undo_run("r1", context, undo_one, force=False, skip_failures=False)
    assert again.skipped == ("c4", "c3", "c2", "c1", "c0")


@pytest.mark.parametrize("odd", [{"context": Context(run_id="\ud800")}, {"call_id": "\ud800"}])
async def test_a_call_whose_events_cannot_be_written_is_refused_before_it_runs(rig: Rig, odd: dict[str, Any]) -> None:
    ran: list[object] = []
    rig.driver.registry.add(ToolDefinition(name="write", handler=ran.append))
    with pytest.raises(TypeError):
        await rig.pipeline.run("write", {}, **{"context": DEFAULT_CONTEXT, **odd})
    assert (ran, await rig.store.events("default")) == ([], [])


@pytest.mark.parametrize("run_id", ["r1", "räksmörgås"])
async def test_events_quote_the_context_whatever_its_script(rig: Rig, run_id: str) -> None:
    result = await rig.pipeline.run("write", {}, Context(run_id=run_id))
    events = await rig.store.events("default", call_id=result.call_id)
    assert [event.type for event in events] == ["tool.invoked", "tool.started", "tool.completed"]
    assert {event.data["pipeline_run_id"] for event in events} == {run_id}


class Looks:
    """An inspector that remembers the threads it was called on."""

    name = "looks"

    def __init__(self) -> None:
        self.threads: list[int] = []

    def __call__(self, _call: Call, _tool: ToolDefinition, _arguments: Mapping[str, Any], /) -> dict[str, Any]:
        self.threads.append(threading.get_ident())
        return {}

    def shown(self, finding: Any, _mask: Callable[[str], str], /) -> Any:
        return finding


async def test_what_opens_files_to_judge_a_call_runs_off_the_loop_and_as_often_as_rules_are_judged(rig: Rig) -> None:
    looks = Looks()
    rig.driver.policy = Policy(revision="looks", inspectors=(looks,))
    assert (await rig.pipeline.run("write", {}, DEFAULT_CONTEXT)).success
    assert len(looks.threads) == 1
    assert threading.get_ident() not in looks.threads


async def test_lockdown_judges_what_runs_off_the_loop_as_well(rig: Rig) -> None:
    looks, begun, go = Looks(), asyncio.Event(), asyncio.Event()

    async def work(_given: ToolInput) -> ToolOutput:
        begun.set()
        await go.wait()
        return ToolOutput.ok()

    rig.driver.registry.add(ToolDefinition("work", {}, work, allowed_modes=("NORMAL", "LOCKDOWN")))
    rig.driver.policy = Policy(revision="looks", inspectors=(looks,))
    running = asyncio.ensure_future(rig.pipeline.run("work", {}, DEFAULT_CONTEXT))
    await begun.wait()
    await commit(rig.store, set_mode(Mode.LOCKDOWN))
    assert await Lockdown(rig.driver, rig.flights).enforce() == ((), ())
    go.set()
    assert (await running).success
    assert len(looks.threads) == 2
    assert threading.get_ident() not in looks.threads
