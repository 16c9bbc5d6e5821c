"""What governs: the operator's mode, the policy, and remembered answers."""

from __future__ import annotations

from typing import Any

from toolgate.authority import Verb, may
from toolgate.errors import NotFoundError
from toolgate.interfaces.server import views
from toolgate.interfaces.server.operations import Ask, Operation
from toolgate.kernel.context import Mode
from toolgate.ports.store import GrantQuery
from toolgate.wire.brakes import BrakeBody, BrakesAnswer
from toolgate.wire.policy import ExplainAnswer, ExplainBody, PolicyAnswer
from toolgate.wire.schemas import (
    GrantAnswer,
    GrantList,
    GrantsQuery,
    ModeAnswer,
    ModeBody,
    RevokeBody,
)

_BASE = "/my/projects/{project_id}"


async def mode(ask: Ask) -> ModeAnswer:
    return ModeAnswer(mode=ask.services.gate.mode.value)


async def set_mode(ask: Ask) -> ModeAnswer:
    await ask.services.gate.set_mode(ask.body.mode, by=ask.who, reason=ask.body.reason)
    ask.services.hub.tell_mode()
    return await mode(ask)


async def brakes(ask: Ask) -> BrakesAnswer:
    return views.brakes(ask.services.gate, ask.project)


async def set_brake(ask: Ask) -> BrakesAnswer:
    """Set the mode of the project, or of an agent or a run in it; who may not set the mode only pulls."""
    body: BrakeBody = ask.body
    only_pull = not may(Verb.SET_MODE, ask.by, ask.project)
    await ask.services.gate.set_mode(
        body.mode,
        by=ask.who,
        reason=body.reason,
        project=ask.project,
        agent=body.agent,
        run=body.run,
        only_pull=only_pull,
    )
    ask.services.hub.tell_mode()
    return await brakes(ask)


async def policy(ask: Ask) -> PolicyAnswer:
    host = ask.services.gate.host
    held = await host.held_revision()
    followed = host.policy(ask.project)
    return PolicyAnswer(revision=followed.revision, default=followed.default.value, held=held)


async def explain(ask: Ask) -> ExplainAnswer:
    """Say what the policy makes of a call by the caller, without making it."""
    from toolgate.policy import explain as explaining

    body: ExplainBody = ask.body
    gate = ask.services.gate
    tool = gate.registry.find(body.tool_name)
    if tool is None:
        raise NotFoundError("There is no such tool.")
    context = ask.by.context(ask.project, session_id=None, run_id=None, behavior=body.behavior)
    modes = gate.brakes.over(context) if body.mode is None else (Mode(body.mode),)
    question = explaining.Question(
        tool=tool, arguments=body.tool_params, context=context, mode=modes[0], also=modes[1:]
    )
    told = explaining.explain(gate.host.policy(ask.project), question).as_json()
    masked: Any = gate.host.masker(told)
    return ExplainAnswer(explanation=masked)


async def grants(ask: Ask) -> GrantList:
    query: GrantsQuery = ask.query
    now = ask.services.now()
    found = await ask.services.gate.grants.list(
        GrantQuery(
            project=ask.project, tool_name=query.tool_name, live_at=now if query.live else None, limit=query.limit
        )
    )
    return GrantList(grants=[views.grant(one, now) for one in found])


async def grant(ask: Ask) -> GrantAnswer:
    found = await ask.services.gate.grants.list(GrantQuery(project=ask.project, id=ask.params["grant_id"]))
    if not found:
        raise NotFoundError("There is no such grant.")
    return GrantAnswer(grant=views.grant(found[0], ask.services.now()))


async def revoke(ask: Ask) -> GrantAnswer:
    revoked = await ask.services.gate.grants.revoke(
        ask.params["grant_id"], by=ask.who, reason=ask.body.reason, project=ask.project
    )
    return GrantAnswer(grant=views.grant(revoked, ask.services.now()))


OPERATIONS = (
    Operation(
        method="GET",
        path=_BASE + "/mode",
        summary="Show the operator's mode",
        handler=mode,
        returns=ModeAnswer,
        tag="governance",
    ),
    Operation(
        method="PUT",
        path=_BASE + "/mode",
        summary="Change the mode, for everybody",
        handler=set_mode,
        verb=Verb.SET_MODE,
        body=ModeBody,
        returns=ModeAnswer,
        tag="governance",
    ),
    Operation(
        method="GET",
        path=_BASE + "/brakes",
        summary="List the brakes over the project and in it",
        handler=brakes,
        returns=BrakesAnswer,
        tag="governance",
    ),
    Operation(
        method="PUT",
        path=_BASE + "/brakes",
        summary="Set the mode of the project, or of an agent or a run in it",
        handler=set_brake,
        verb=Verb.PULL,
        body=BrakeBody,
        returns=BrakesAnswer,
        tag="governance",
    ),
    Operation(
        method="GET",
        path=_BASE + "/policy",
        summary="Show which policy is followed",
        handler=policy,
        returns=PolicyAnswer,
        tag="governance",
    ),
    Operation(
        method="POST",
        path=_BASE + "/policy/explain",
        summary="Say what the policy makes of a call, without making it",
        handler=explain,
        body=ExplainBody,
        returns=ExplainAnswer,
        tag="governance",
    ),
    Operation(
        method="GET",
        path=_BASE + "/grants",
        summary="List remembered answers, oldest first",
        handler=grants,
        query=GrantsQuery,
        returns=GrantList,
        tag="governance",
    ),
    Operation(
        method="GET",
        path=_BASE + "/grants/{grant_id}",
        summary="Show one remembered answer",
        handler=grant,
        returns=GrantAnswer,
        tag="governance",
    ),
    Operation(
        method="POST",
        path=_BASE + "/grants/{grant_id}/revoke",
        summary="Take a remembered answer back",
        handler=revoke,
        verb=Verb.REVOKE,
        body=RevokeBody,
        returns=GrantAnswer,
        problems=(409,),
        tag="governance",
    ),
)
