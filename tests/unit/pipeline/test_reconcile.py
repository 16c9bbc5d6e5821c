from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.unit.pipeline.rig import Rig

from toolgate.kernel.call import Status
from toolgate.kernel.context import Principal
from toolgate.kernel.input import ToolInput
from toolgate.kernel.output import ToolOutput
from toolgate.kernel.tool import ToolDefinition
from toolgate.testing.conformance.rows import a_call, commit, insert


def _knows_nothing(_given: ToolInput) -> Any:
    return None


def _says_something_else(_given: ToolInput) -> Any:
    return "it worked"


def _fails(_given: ToolInput) -> Any:
    raise OSError("no route")


@pytest.mark.parametrize("reconcile", [_knows_nothing, _says_something_else, _fails])
async def test_what_a_tool_does_not_know_is_left_to_a_person(reconcile: Any) -> None:
    tool = ToolDefinition(name="pay", handler=_knows_nothing, reconcile=reconcile)
    rig = Rig(tool)
    await commit(rig.store, insert(a_call(tool_name="pay", status=Status.UNKNOWN)))
    await rig.recovery.recover()
    call = await rig.store.call("default", "c1")
    assert call is not None
    assert call.status is Status.UNKNOWN
    await rig.close()


async def test_what_a_tool_knows_settles_its_call() -> None:
    async def reconcile(_given: ToolInput) -> ToolOutput:
        return ToolOutput.ok("paid")

    rig = Rig(ToolDefinition(name="pay", handler=_knows_nothing, reconcile=reconcile))
    await commit(rig.store, insert(a_call(tool_name="pay", status=Status.UNKNOWN)))
    await rig.recovery.recover()
    call = await rig.store.call("default", "c1")
    assert call is not None
    assert call.status is Status.COMPLETED
    await rig.close()


async def test_a_person_who_settles_first_is_left_alone() -> None:
    async def reconcile(_given: ToolInput) -> ToolOutput:
        by = Principal(name="ann")
        await rig.answers.settle("default", "c1", happened=False, by=by, reason="the bank knows nothing of it")
        return ToolOutput.ok("paid")

    rig = Rig(ToolDefinition(name="pay", handler=_knows_nothing, reconcile=reconcile))
    await commit(rig.store, insert(a_call(tool_name="pay", status=Status.UNKNOWN)))
    await rig.recovery.recover()
    call = await rig.store.call("default", "c1")
    assert call is not None
    assert call.status is Status.FAILED
    await rig.close()


async def test_whoever_recovers_at_the_same_time_waits_for_the_answer() -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    async def reconcile(_given: ToolInput) -> ToolOutput:
        assert not asked.is_set(), "asked twice"
        asked.set()
        await answer.wait()
        return ToolOutput.ok("paid")

    rig = Rig(ToolDefinition(name="pay", handler=_knows_nothing, reconcile=reconcile))
    await commit(rig.store, insert(a_call(tool_name="pay", status=Status.UNKNOWN)))
    first = asyncio.ensure_future(rig.recovery.recover())
    await asked.wait()
    second = asyncio.ensure_future(rig.recovery.recover())
    impatient = asyncio.ensure_future(rig.recovery.recover())
    await asyncio.sleep(0.01)
    impatient.cancel()
    assert not second.done()
    answer.set()
    await asyncio.gather(first, second)
    call = await rig.store.call("default", "c1")
    assert call is not None
    assert call.status is Status.COMPLETED
    await rig.close()


async def test_a_recovery_that_is_cut_short_leaves_its_question_to_the_next() -> None:
    asked = asyncio.Event()

    async def reconcile(_given: ToolInput) -> ToolOutput:
        if not asked.is_set():
            asked.set()
            await asyncio.Event().wait()
        return ToolOutput.ok("paid")

    rig = Rig(ToolDefinition(name="pay", handler=_knows_nothing, reconcile=reconcile))
    await commit(rig.store, insert(a_call(tool_name="pay", status=Status.UNKNOWN)))
    first = asyncio.ensure_future(rig.recovery.recover())
    await asked.wait()
    first.cancel()
    await asyncio.wait({first})
    await rig.recovery.recover()
    call = await rig.store.call("default", "c1")
    assert call is not None
    assert call.status is Status.COMPLETED
    await rig.close()
