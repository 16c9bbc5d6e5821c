"""Runs: the calls of one, and undoing them all."""

from __future__ import annotations

from toolgate.interfaces.server.operations import Ask, Operation
from toolgate.interfaces.server.problems import not_found
from toolgate.interfaces.server.routes.executions import check_force, page_of
from toolgate.interfaces.server.schemas import RunAnswer, RunQuery, UndoRunAnswer, UndoRunBody, UndoStepRecord
from toolgate.ports.directory import Ability

_BASE = "/my/projects/{project_id}/runs/{run_id}"


async def show(ask: Ask) -> RunAnswer:
    run_id = ask.params["run_id"]
    found, last = await page_of(ask, run_id, ask.query.after, ask.query.limit)
    if not found and ask.query.after is None:
        raise not_found()
    return RunAnswer(run_id=run_id, tools=found, next=last)


async def undo(ask: Ask) -> UndoRunAnswer:
    run_id, body = ask.params["run_id"], ask.body
    check_force(ask, body.force)
    if not (await page_of(ask, run_id, None, 1))[0]:
        raise not_found()
    context = ask.by.context(ask.project, session_id=None, run_id=None, behavior=None)
    report = await ask.services.gate.undo_run(
        run_id, context=context, force=body.force, skip_failures=body.skip_failures, preview=body.preview
    )
    steps = [
        UndoStepRecord(tool_id=one.call_id, tool_name=one.tool_name, step=one.step.value, reason=one.reason)
        for one in report.steps
    ]
    return UndoRunAnswer(success=report.success, run_id=run_id, steps=steps)


OPERATIONS = (
    Operation(
        method="GET",
        path=_BASE,
        summary="List the calls of a run",
        handler=show,
        query=RunQuery,
        returns=RunAnswer,
        tag="runs",
    ),
    Operation(
        method="POST",
        path=_BASE + "/undo",
        summary="Undo the calls of a run, last first",
        handler=undo,
        ability=Ability.DECIDE,
        body=UndoRunBody,
        returns=UndoRunAnswer,
        tag="runs",
    ),
)
