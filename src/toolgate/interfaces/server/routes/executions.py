"""Tools and their calls: which there are, call one, look, report, cancel, undo, settle."""

from __future__ import annotations

import asyncio
from typing import Any

from toolgate.authority import Verb, is_own
from toolgate.errors import ConflictError, StaleFenceError
from toolgate.interfaces.server import searching, views
from toolgate.interfaces.server.idempotency import call_id_of
from toolgate.interfaces.server.operations import Ask, Operation, plain_json
from toolgate.interfaces.server.problems import ProblemError, problem_of
from toolgate.kernel.output import Result, ToolOutput
from toolgate.kernel.record import evolve
from toolgate.wire.claims import ProgressBody, ResultAnswer, ResultBody
from toolgate.wire.schemas import (
    CallsQuery,
    CancelBody,
    ExecuteAnswer,
    ExecuteBody,
    Execution,
    ExecutionList,
    ExecutionRecord,
    SettleBody,
    ToolList,
    UndoAnswer,
    UndoBody,
)

_BASE = "/my/projects/{project_id}/tools"


async def available(ask: Ask) -> ToolList:
    gate, context = ask.services.gate, ask.by.maker(ask.project)
    tools = [views.tool_info(tool, gate.host.asks(tool, context)) for tool in gate.registry]
    return ToolList(tools=tools, total_count=len(tools))


async def execute(ask: Ask) -> tuple[int, ExecuteAnswer]:
    """Answer when the call is final; 202 with where it stands when nobody waits or the wait is over."""
    body: ExecuteBody = ask.body
    gate, limit_s = ask.services.gate, ask.services.settings.wait_limit_s
    context = ask.by.context(
        ask.project, session_id=body.session_id, run_id=body.run_id, step_id=body.step_id, behavior=body.behavior
    )
    call_id = body.tool_id or call_id_of(ask)
    await ask.services.naming.check(gate, context)
    result = await gate.call(
        body.tool_name,
        body.tool_params,
        context=context,
        call_id=call_id,
        wait=False,
        approval_timeout_s=body.approval_timeout_seconds,
        claim=body.claim,
        repeat_of=body.repeat_of,
        distinct=body.distinct,
    )
    if not result.is_final and body.wait:
        wait_s = limit_s if body.wait_seconds is None else min(body.wait_seconds, limit_s)
        result = await _wait(ask, result, wait_s)
    return (200 if result.is_final else 202), views.executed(result, call_id)


async def _wait(ask: Ask, result: Result, seconds: float) -> Result:
    """The final result, or where the call stands when time or the server is over. The call goes on either way."""
    gate, drained = ask.services.gate, ask.services.hub.drained
    final = asyncio.ensure_future(gate.wait(result.call_id, project=ask.project))
    ending = asyncio.ensure_future(drained.wait())
    try:
        await asyncio.wait({final, ending}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        stands = final.result() if final.done() else await gate.get(result.call_id, project=ask.project)
        return evolve(stands, joined=result.joined)
    finally:
        final.cancel()
        ending.cancel()


async def show(ask: Ask) -> ExecutionRecord:
    call = await ask.call()
    return views.record(call, is_own=is_own(ask.who, call))


async def index(ask: Ask) -> ExecutionList:
    found = await searching.search(ask.services.gate, ask.project, ask.query)
    shown = [views.record(call, is_own=is_own(ask.who, call)) for call in found.calls]
    return ExecutionList(tools=shown, next=found.next, reached=found.reached)


async def report(ask: Ask) -> ResultAnswer:
    body: ResultBody = ask.body
    tool_id = ask.params["tool_id"]
    try:
        result = await _take_result(ask, tool_id, body)
    except StaleFenceError as error:
        raise await _stale(ask, tool_id, error) from None
    ended = views.ROW_STATUS[result.status]
    if body.status == "unknown":
        return ResultAnswer(success=True, tool_id=tool_id, status=ended, message="Unknown outcome recorded")
    message = "Tool result processed" if ended == body.status else f"Tool result not usable: {result.error}"
    return ResultAnswer(success=ended == body.status, tool_id=tool_id, status=ended, message=message)


async def _take_result(ask: Ask, tool_id: str, body: ResultBody) -> Result:
    """Record what a runner reports: what its run gave, or that it cannot say."""
    gate = ask.services.gate
    if body.status == "unknown":
        reason = body.error or "it did not say why"
        return await gate.remote.doubt(
            tool_id, reason, raised=body.raised, fence=body.fence, by=ask.who, project=ask.project
        )
    output = ToolOutput(
        success=body.status == "completed",
        data=body.result,
        error=body.error,
        undo_metadata=body.undo,
        artifacts=body.artifacts,
    )
    return await gate.complete(tool_id, output, fence=body.fence, by=ask.who, project=ask.project)


async def _stale(ask: Ask, tool_id: str, error: ConflictError) -> ProblemError:
    """The 409 of a report nobody waits for, with where the call stands."""
    problem = problem_of(error)
    call = await ask.services.gate.calls.get(tool_id, project=ask.project)
    problem.more["tool_id"] = call.id
    problem.more["tool_status"] = views.ROW_STATUS[call.status]
    return problem


async def progress(ask: Ask) -> ResultAnswer:
    body: ProgressBody = ask.body
    tool_id = ask.params["tool_id"]
    try:
        result = await ask.services.gate.remote.progress(
            tool_id,
            body.progress,
            body.message,
            body.data,
            by=ask.who,
            fence=body.fence,
            project=ask.project,
        )
    except StaleFenceError as error:
        raise await _stale(ask, tool_id, error) from None
    return ResultAnswer(success=True, tool_id=tool_id, status=views.ROW_STATUS[result.status], message="Lease renewed")


async def cancel(ask: Ask) -> tuple[int, Execution]:
    """End a call of one's own; anybody's for who decides here."""
    await ask.call()
    reason = ask.body.reason
    result = await ask.services.gate.cancel(ask.params["tool_id"], reason=reason, project=ask.project, wait=False)
    return (200 if result.is_final else 202), views.execution(result)


async def undo(ask: Ask) -> UndoAnswer:
    if ask.body.force:
        ask.by.check(ask.project, Verb.FORCE)
    undone = await ask.call()
    maker = ask.by.maker(ask.project)
    behavior = undone.context.behavior if maker.claimed else None  # an agent's is the one it was made in
    context = ask.by.context(ask.project, session_id=None, run_id=None, behavior=behavior)
    result = await ask.services.gate.undo(ask.params["tool_id"], context=context, force=ask.body.force)
    return UndoAnswer(**dict(views.execution(result)), unchecked=result.unchecked)


async def settle(ask: Ask) -> Execution:
    result: Any = await ask.services.gate.settle(
        ask.params["tool_id"], happened=ask.body.happened, by=ask.who, reason=ask.body.reason, project=ask.project
    )
    return views.execution(result)


OPERATIONS = (
    Operation(
        method="POST",
        path=_BASE + "/{tool_id}/result",
        summary="Report the result of a call that ran at the client",
        handler=report,
        verb=Verb.REPORT,
        body=ResultBody,
        returns=ResultAnswer,
        parse=plain_json,
        problems=(409,),
        tag="tools",
    ),
    Operation(
        method="POST",
        path=_BASE + "/execute",
        summary="Call a tool",
        handler=execute,
        verb=Verb.ASK,
        body=ExecuteBody,
        returns=ExecuteAnswer,
        also=(202,),
        problems=(409,),
        tag="tools",
    ),
    Operation(
        method="GET",
        path=_BASE + "/available",
        summary="List the tools that can be called",
        handler=available,
        returns=ToolList,
        tag="tools",
    ),
    Operation(
        method="GET",
        path=_BASE,
        summary="List and search calls, oldest or newest first",
        handler=index,
        query=CallsQuery,
        returns=ExecutionList,
        tag="tools",
    ),
    Operation(
        method="GET",
        path=_BASE + "/{tool_id}",
        summary="Show one call",
        handler=show,
        returns=ExecutionRecord,
        tag="tools",
    ),
    Operation(
        method="POST",
        path=_BASE + "/{tool_id}/progress",
        summary="Report progress of a call at the client and renew its lease",
        handler=progress,
        verb=Verb.PROGRESS,
        body=ProgressBody,
        returns=ResultAnswer,
        parse=plain_json,
        problems=(409,),
        tag="tools",
    ),
    Operation(
        method="POST",
        path=_BASE + "/{tool_id}/cancel",
        summary="Cancel a call",
        handler=cancel,
        verb=Verb.CANCEL,
        body=CancelBody,
        returns=Execution,
        also=(202,),
        problems=(409,),
        tag="tools",
    ),
    Operation(
        method="POST",
        path=_BASE + "/{tool_id}/undo",
        summary="Undo a call",
        handler=undo,
        verb=Verb.UNDO,
        body=UndoBody,
        returns=UndoAnswer,
        problems=(409,),
        tag="tools",
    ),
    Operation(
        method="POST",
        path=_BASE + "/{tool_id}/settle",
        summary="Say what a call of unknown outcome really did",
        handler=settle,
        verb=Verb.SETTLE,
        body=SettleBody,
        returns=Execution,
        problems=(409,),
        tag="tools",
    ),
)
