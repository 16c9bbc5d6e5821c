"""Calls that whoever made them runs: take one, and report what it did."""

from __future__ import annotations

import orjson

from toolgate.authority import Verb, is_same_maker
from toolgate.errors import NotAllowedError
from toolgate.interfaces.server.operations import Ask, Operation, plain_json
from toolgate.interfaces.server.problems import ProblemError
from toolgate.interfaces.server.routes import executions
from toolgate.wire.claims import ClaimAnswer, ClaimBody, ResultAnswer, ResultBody

_BASE = "/my/projects/{project_id}/tools/{tool_id}"


async def claim(ask: Ask) -> ClaimAnswer:
    gate, tool_id = ask.services.gate, ask.params["tool_id"]
    maker = ask.by.maker(ask.project)
    if not is_same_maker((await ask.call()).context, maker):
        raise NotAllowedError("This call was made for somebody else; only who made it runs it.")
    call = await gate.remote.claim(tool_id, by=maker.principal, fence=ask.body.claim_id, project=ask.project)
    assert call.due_at is not None
    assert call.started_at is not None
    return ClaimAnswer(
        tool_id=call.id,
        tool_name=call.tool_name,
        tool_params=orjson.loads(call.arguments),
        effect_key=call.effect_key,
        lease_seconds=(call.due_at - call.started_at).total_seconds(),
    )


async def report(ask: Ask) -> ResultAnswer:
    if ask.body.fence is None:
        raise ProblemError(400, "invalid_request", "A report names the `fence` its call was claimed with.")
    await ask.call()
    return await executions.report(ask)


OPERATIONS = (
    Operation(
        method="POST",
        path=_BASE + "/claim",
        summary="Take an approved call of one's own to run it",
        handler=claim,
        verb=Verb.CLAIM,
        body=ClaimBody,
        returns=ClaimAnswer,
        problems=(409,),
        tag="tools",
    ),
    Operation(
        method="POST",
        path=_BASE + "/report",
        summary="Report the result of a call that was claimed",
        handler=report,
        verb=Verb.CLAIM,
        body=ResultBody,
        returns=ResultAnswer,
        parse=plain_json,
        problems=(409,),
        tag="tools",
    ),
)
