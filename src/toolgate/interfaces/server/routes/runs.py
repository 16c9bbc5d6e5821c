"""Runs: which there were, the calls of one, and undoing them all."""

from __future__ import annotations

from collections import Counter

from toolgate.authority import Verb, is_own
from toolgate.errors import NotFoundError
from toolgate.gate import Gate
from toolgate.interfaces.server import searching, views
from toolgate.interfaces.server.operations import Ask, Operation
from toolgate.interfaces.server.problems import ProblemError, not_found
from toolgate.kernel.call import Call
from toolgate.ports.store import CallQuery
from toolgate.wire.history import RunList, RunListQuery, RunSummary
from toolgate.wire.schemas import RunAnswer, RunQuery, UndoRunAnswer, UndoRunBody

_ALL = "/my/projects/{project_id}/runs"
_BASE = _ALL + "/{run_id}"
COUNTED = 500
"""How many calls of a run are looked at for its summary."""
TOOLS = 6


async def index(ask: Ask) -> RunList:
    """Find runs by their newest calls. A run is on the page of its newest call, and on no later one."""
    query: RunListQuery = ask.query
    gate, project = ask.services.gate, ask.project
    after = None if query.after is None else await gate.calls.get(query.after, project=project)
    scanned = searching.scan(gate, CallQuery(project=project, newest_first=True, after=after))
    runs: list[RunSummary] = []
    seen: set[str] = set()
    last, looked_at = after, 0
    async for call in scanned:
        last, looked_at = call, looked_at + 1
        run_id = call.context.run_id
        if run_id is None or run_id in seen:
            continue
        seen.add(run_id)
        calls = await _calls_of(gate, project, run_id)
        if after is None or calls[0].created_at < after.created_at:
            runs.append(_summary(run_id, calls))
        if len(runs) == query.limit:
            break
    is_open = len(runs) == query.limit or looked_at == searching.MOST
    return RunList(runs=runs, next=last.id if is_open and last is not None else None)


async def _calls_of(gate: Gate, project: str, run_id: str) -> list[Call]:
    return await gate.calls.list(CallQuery(project=project, run_id=run_id, newest_first=True, limit=COUNTED))


def _summary(run_id: str, calls: list[Call]) -> RunSummary:
    first, last = calls[-1], calls[0]
    return RunSummary(
        run_id=run_id,
        calls=len(calls),
        is_partial=len(calls) == COUNTED,
        statuses=dict(Counter(call.status.value for call in calls)),
        tools=list(dict.fromkeys(call.tool_name for call in reversed(calls)))[:TOOLS],
        requester=first.context.principal,
        user=first.context.user,
        session_id=first.context.session_id,
        started_at=first.created_at,
        last_at=last.completed_at or last.created_at,
    )


async def _page(ask: Ask, after: str | None, limit: int) -> searching.Found:
    """A page of the run's calls; 404 where the run has none."""
    gate, project = ask.services.gate, ask.project
    seen = None if after is None else await gate.calls.get(after, project=project)
    query = CallQuery(project=project, run_id=ask.params["run_id"], after=seen, limit=limit)
    found = await searching.find(gate, query)
    if not found.calls and after is None:
        raise not_found()
    return found


async def show(ask: Ask) -> RunAnswer:
    found = await _page(ask, ask.query.after, ask.query.limit)
    shown = [views.record(call, is_own=is_own(ask.who, call)) for call in found.calls]
    return RunAnswer(run_id=ask.params["run_id"], tools=shown, next=found.next)


async def undo(ask: Ask) -> UndoRunAnswer:
    run_id, body = ask.params["run_id"], ask.body
    if body.force:
        ask.by.check(ask.project, Verb.FORCE)
    context = ask.by.context(ask.project, session_id=None, run_id=None, behavior=None)
    try:
        report = await ask.services.gate.undo_run(
            run_id, context=context, force=body.force, skip_failures=body.skip_failures, preview=body.preview
        )
    except NotFoundError as error:  # the runs it names are no secret from who may list them
        raise ProblemError(404, error.code, str(error)) from None
    return views.undo_report(report)


OPERATIONS = (
    Operation(
        method="GET",
        path=_ALL,
        summary="List runs, the one with the newest call first",
        handler=index,
        query=RunListQuery,
        returns=RunList,
        tag="runs",
    ),
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
        verb=Verb.UNDO_RUN,
        body=UndoRunBody,
        returns=UndoRunAnswer,
        tag="runs",
    ),
)
