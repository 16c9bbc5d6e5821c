"""Votes that people lend to others for a while: give one's own, see them, end one."""

from __future__ import annotations

from toolgate.authority import Verb
from toolgate.interfaces.server import views
from toolgate.interfaces.server.operations import Ask, Operation
from toolgate.ports.store import DelegationQuery
from toolgate.wire.delegations import (
    DelegateBody,
    DelegationAnswer,
    DelegationList,
    DelegationsQuery,
    EndBody,
)

_BASE = "/my/projects/{project_id}/delegations"


async def index(ask: Ask) -> DelegationList:
    query: DelegationsQuery = ask.query
    now = ask.services.now()
    wanted = DelegationQuery(
        project=ask.project,
        giver=query.giver,
        delegate=query.delegate,
        live_at=now if query.live else None,
        limit=query.limit,
    )
    found = await ask.services.gate.delegations.list(wanted)
    return DelegationList(delegations=[views.delegation(one, now) for one in found])


async def give(ask: Ask) -> DelegationAnswer:
    body: DelegateBody = ask.body
    given = await ask.services.gate.delegations.give(
        body.to, by=ask.who, seconds=body.seconds, tools=body.tools, reason=body.reason, project=ask.project
    )
    return DelegationAnswer(delegation=views.delegation(given, ask.services.now()))


async def end(ask: Ask) -> DelegationAnswer:
    ended = await ask.services.gate.delegations.end(
        ask.params["delegation_id"], by=ask.who, reason=ask.body.reason, project=ask.project
    )
    return DelegationAnswer(delegation=views.delegation(ended, ask.services.now()))


OPERATIONS = (
    Operation(
        method="GET",
        path=_BASE,
        summary="List lent votes, oldest first",
        handler=index,
        query=DelegationsQuery,
        returns=DelegationList,
        tag="delegations",
    ),
    Operation(
        method="POST",
        path=_BASE,
        summary="Lend one's vote to another person for a while",
        handler=give,
        verb=Verb.DELEGATE,
        body=DelegateBody,
        returns=DelegationAnswer,
        problems=(409,),
        tag="delegations",
    ),
    Operation(
        method="POST",
        path=_BASE + "/{delegation_id}/end",
        summary="End a delegation before its time",
        handler=end,
        verb=Verb.END_DELEGATION,
        body=EndBody,
        returns=DelegationAnswer,
        problems=(409,),
        tag="delegations",
    ),
)
