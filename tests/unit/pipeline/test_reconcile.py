from __future__ import annotations

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
