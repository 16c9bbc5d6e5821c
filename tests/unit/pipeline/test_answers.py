from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.unit.pipeline.rig import Rig

from toolgate import ToolDefinition, ToolOutput
from toolgate.errors import ConflictError
from toolgate.kernel.approval import ApprovalStatus
from toolgate.kernel.call import Status
from toolgate.kernel.change import Change
from toolgate.kernel.context import DEFAULT_CONTEXT, Mode, Principal
from toolgate.kernel.undo import UndoState
from toolgate.ports.store import ApprovalQuery
from toolgate.testing.clock import NOON
from toolgate.testing.conformance.rows import a_call, an_undo, commit, insert, set_mode

ANN = Principal(name="ann")


def a_tool(name: str, **options: Any) -> ToolDefinition:
    return ToolDefinition(name=name, handler=lambda _given: ToolOutput.ok(), **options)


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    rig = Rig(a_tool("ask", requires_approval=True), a_tool("far", placement="client", timeout_seconds=10))
    yield rig
    await rig.close()


async def parked(rig: Rig) -> str:
    return str((await rig.pipeline.run("ask", {}, DEFAULT_CONTEXT, call_id="c1")).approval_id)


def once(rig: Rig, meanwhile: Any) -> None:
    """Let something happen right before the next commit."""

    async def before(_change: Change) -> None:
        rig.store.before = None
        await meanwhile()

    rig.store.before = before


async def _extended(rig: Rig, approval_id: str) -> None:
    await rig.extend(approval_id, seconds=500, by=ANN)


async def test_a_decision_is_tried_again_when_the_row_changed_meanwhile(rig: Rig) -> None:
    approval_id = await parked(rig)
    once(rig, lambda: _extended(rig, approval_id))
    assert (await rig.decide(approval_id, approve_it=True, by=ANN)).status is Status.APPROVED


async def test_a_decision_is_tried_again_when_the_mode_changed_meanwhile(rig: Rig) -> None:
    approval_id = await parked(rig)
    once(rig, lambda: commit(rig.store, set_mode(Mode.ALERT)))
    assert (await rig.decide(approval_id, approve_it=True, by=ANN)).status is Status.APPROVED


async def test_an_extension_is_tried_again_when_the_row_changed_meanwhile(rig: Rig) -> None:
    approval_id = await parked(rig)
    once(rig, lambda: _extended(rig, approval_id))
    longer = await rig.extend(approval_id, seconds=900, by=ANN)
    assert (longer.expires_at - NOON).total_seconds() == 900


async def test_a_cancellation_is_tried_again_when_the_row_changed_meanwhile(rig: Rig) -> None:
    approval_id = await parked(rig)
    once(rig, lambda: _extended(rig, approval_id))
    assert (await rig.answers.cancel("default", "c1", reason="x")).status is Status.CANCELLED


async def test_a_call_that_is_approved_but_not_run_can_be_cancelled(rig: Rig) -> None:
    await rig.decide(await parked(rig), approve_it=True, by=ANN)
    assert (await rig.answers.cancel("default", "c1", reason="x")).status is Status.CANCELLED
    assert (await rig.names("c1"))[-1] == "tool.cancelled"


async def test_a_call_decided_between_two_reads_is_cancelled_all_the_same(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    approval_id = await parked(rig)
    read, first = rig.store.approvals, [True]

    async def decided_first(query: ApprovalQuery) -> Any:
        if first and first.pop():
            await rig.decide(approval_id, approve_it=True, by=ANN)
        return await read(query)

    monkeypatch.setattr(rig.store, "approvals", decided_first)
    assert (await rig.answers.cancel("default", "c1", reason="x")).status is Status.CANCELLED
    kept = (await rig.store.approvals(ApprovalQuery(id=approval_id)))[0]
    assert kept.status is ApprovalStatus.APPROVED


async def test_of_two_who_settle_at_once_the_first_counts(rig: Rig) -> None:
    await commit(rig.store, insert(a_call(status=Status.UNKNOWN)))
    once(rig, lambda: rig.answers.settle("default", "c1", happened=True, by=ANN, reason="seen"))
    with pytest.raises(ConflictError, match="somebody else"):
        await rig.answers.settle("default", "c1", happened=False, by=ANN, reason="not seen")
    assert (await rig.driver.read("default", "c1")).status is Status.COMPLETED


@pytest.mark.parametrize(("happened", "state"), [(True, UndoState.DONE), (False, UndoState.AVAILABLE)])
async def test_settling_an_undo_settles_what_it_undid(rig: Rig, happened: bool, state: UndoState) -> None:
    claimed = an_undo("c0", state=UndoState.CLAIMED, claimed_by="c1")
    await commit(rig.store, insert(a_call(status=Status.UNKNOWN, undo_of="c0"), undo=claimed))
    await rig.answers.settle("default", "c1", happened=happened, by=ANN, reason="seen")
    kept = await rig.store.undo("default", "c0")
    assert kept is not None
    assert kept.state is state


@pytest.mark.parametrize("happened", [True, False])
async def test_settling_leaves_an_undo_record_of_somebody_else_alone(rig: Rig, happened: bool) -> None:
    claimed = an_undo("c0", state=UndoState.CLAIMED, claimed_by="another")
    await commit(rig.store, insert(a_call(status=Status.UNKNOWN, undo_of="c0"), undo=claimed))
    await rig.answers.settle("default", "c1", happened=happened, by=ANN, reason="seen")
    assert await rig.store.undo("default", "c0") == claimed


async def test_who_does_not_know_yet_is_heard_and_settles_nothing(rig: Rig) -> None:
    await commit(rig.store, insert(a_call(status=Status.UNKNOWN)))
    result = await rig.answers.settle("default", "c1", happened=None, by=ANN, reason="the bank answers tomorrow")
    assert result.status is Status.UNKNOWN
    assert (await rig.driver.read("default", "c1")).status is Status.UNKNOWN
    told = (await rig.store.events(project="default", after=0, limit=10))[-1]
    assert (told.type, told.data["said_by"]) == ("tool.still_unknown", ANN.name)
    assert (await rig.answers.settle("default", "c1", happened=True, by=ANN, reason="it is there")).success
    with pytest.raises(ConflictError, match="only an UNKNOWN"):
        await rig.answers.settle("default", "c1", happened=None, by=ANN, reason="hm")
