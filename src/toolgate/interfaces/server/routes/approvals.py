"""Questions: list, look, approve, reject, edit, respond, extend, escalate, comment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from toolgate.authority import Verb
from toolgate.gate.drawing import draw, draw_all
from toolgate.interfaces.server import deciding, friction, views
from toolgate.interfaces.server.deciding import Reply
from toolgate.interfaces.server.operations import Ask, Handler, Operation
from toolgate.kernel.approval import Approval, ApprovalStatus
from toolgate.kernel.artifact import preview_parts
from toolgate.kernel.call import Status
from toolgate.kernel.grant import Remember
from toolgate.kernel.output import Result
from toolgate.ports.channel import Decision
from toolgate.ports.store import ApprovalQuery
from toolgate.wire.schemas import (
    ApprovalAnswer,
    ApprovalList,
    ApprovalsQuery,
    ApproveBody,
    Body,
    CommentBody,
    DecisionAnswer,
    EditBody,
    EscalateBody,
    ExtendBody,
    RejectBody,
    RememberBody,
    RespondBody,
)

_BASE = "/my/projects/{project_id}/approvals"
_STATUSES = {shown: status for status, shown in views.APPROVAL_STATUS.items()}


def reply_of(ask: Ask) -> Reply:
    """What the body says about the question the path names.

    The console sends a digest from a session: that, a `remember`, somebody else's vote and an edit are more than
    document 004's client says.
    """
    body = ask.body
    remember: RememberBody | None = getattr(body, "remember", None)
    on_behalf_of: str | None = getattr(body, "on_behalf_of", None)
    network: bool = getattr(body, "network", False)
    if remember is not None:
        ask.by.check(ask.project, Verb.REMEMBER)
    if network:
        ask.by.check(ask.project, Verb.EDIT)
    is_console = ask.by.is_session and getattr(body, "digest", None) is not None
    return Reply(
        is_plain=isinstance(body, ApproveBody)
        and remember is None
        and on_behalf_of is None
        and not (is_console or network),
        network=network,
        on_behalf_of=on_behalf_of,
        project=ask.project,
        approval_id=ask.params["approval_id"],
        by=ask.who,
        reason=getattr(body, "reason", None),
        digest=getattr(body, "digest", None),
        remember=None
        if remember is None
        else Remember(uses=remember.uses, seconds=remember.seconds, pattern=remember.pattern),
    )


def _decided(ask: Ask, status: Any, result: Result) -> DecisionAnswer:
    is_open = result.status is Status.AWAITING_APPROVAL  # more people must approve, or an edit must be looked at
    return DecisionAnswer(
        approval_id=result.approval_id or ask.params["approval_id"] if is_open else ask.params["approval_id"],
        status="pending" if is_open else status,
        tool_id=result.call_id,
        tool_status=views.ROW_STATUS[result.status],
    )


async def approve(ask: Ask) -> DecisionAnswer:
    return _decided(ask, "approved", await deciding.decide(ask.services, reply_of(ask), Decision.APPROVE))


async def reject(ask: Ask) -> DecisionAnswer:
    return _decided(ask, "rejected", await deciding.decide(ask.services, reply_of(ask), Decision.DENY))


async def edit(ask: Ask) -> DecisionAnswer:
    return _decided(ask, "approved", await deciding.edit(ask.services, reply_of(ask), ask.body.tool_params))


async def respond(ask: Ask) -> DecisionAnswer:
    async def say(reply: Reply) -> Result:
        return await ask.services.gate.approvals.respond(
            reply.approval_id, ask.body.response, by=reply.by, digest=reply.digest, project=reply.project
        )

    return _decided(ask, "rejected", await deciding.answer(ask.services, reply_of(ask), say))


def _changes(change: Callable[[Ask, Reply], Awaitable[Approval]]) -> Handler:
    """A handler that changes a question without answering it."""

    async def handler(ask: Ask) -> ApprovalAnswer:
        changed = await deciding.answer(ask.services, reply_of(ask), lambda reply: change(ask, reply))
        return ApprovalAnswer(approval=await draw(views.approval, changed))

    return handler


async def _extend(ask: Ask, reply: Reply) -> Approval:
    return await ask.services.gate.approvals.extend(
        reply.approval_id, ask.body.seconds, by=reply.by, project=reply.project
    )


async def _escalate(ask: Ask, reply: Reply) -> Approval:
    return await ask.services.gate.approvals.escalate(
        reply.approval_id, *ask.body.roles, by=reply.by, project=reply.project
    )


async def _comment(ask: Ask, reply: Reply) -> Approval:
    return await ask.services.gate.approvals.comment(
        reply.approval_id, ask.body.text, by=reply.by, project=reply.project
    )


async def show(ask: Ask) -> ApprovalAnswer:
    found = await ask.services.gate.approvals.get(ask.params["approval_id"], project=ask.project)
    shown = await draw(views.approval, found)
    await _served(ask, found)
    return ApprovalAnswer(approval=shown)


async def _served(ask: Ask, shown: Approval) -> None:
    """Remember that the whole of a question went to who asks."""
    if friction.needs_preview(shown):
        await ask.services.served.note(ask.by.account.name, shown.id, preview_parts(shown.preview))


async def index(ask: Ask) -> ApprovalList:
    query: ApprovalsQuery = ask.query
    status: ApprovalStatus | None = None if query.status is None else _STATUSES[query.status]
    gate = ask.services.gate
    after = None if query.after is None else await gate.approvals.get(query.after, project=ask.project)
    found = await gate.approvals.list(
        ApprovalQuery(project=ask.project, call_id=query.tool_id, status=status, after=after, limit=query.limit)
    )
    last = found[-1].id if len(found) == query.limit else None
    for one in found:
        await _served(ask, one)
    return ApprovalList(approvals=await draw_all(views.approval, found), next=last)


def _verb(name: str, verb: Verb, summary: str, handler: Handler, body: type[Body], returns: Any) -> Operation:
    return Operation(
        method="POST",
        path=f"{_BASE}/{{approval_id}}/{name}",
        summary=summary,
        handler=handler,
        verb=verb,
        body=body,
        returns=returns,
        problems=(409,),
        tag="approvals",
    )


OPERATIONS = (
    _verb("approve", Verb.DECIDE, "Approve a call", approve, ApproveBody, DecisionAnswer),
    _verb("reject", Verb.DECIDE, "Reject a call", reject, RejectBody, DecisionAnswer),
    _verb("deny", Verb.DECIDE, "The same as `reject`", reject, RejectBody, DecisionAnswer),
    _verb("edit", Verb.EDIT, "Approve a call with other arguments", edit, EditBody, DecisionAnswer),
    _verb(
        "respond", Verb.RESPOND, "Answer the agent instead of running the call", respond, RespondBody, DecisionAnswer
    ),
    _verb("extend", Verb.EXTEND, "Give people more time to decide", _changes(_extend), ExtendBody, ApprovalAnswer),
    _verb(
        "escalate",
        Verb.ESCALATE,
        "Ask the people the policy names for it, too",
        _changes(_escalate),
        EscalateBody,
        ApprovalAnswer,
    ),
    _verb("comment", Verb.COMMENT, "Put words beside a question", _changes(_comment), CommentBody, ApprovalAnswer),
    Operation(
        method="GET",
        path=_BASE,
        summary="List approvals, oldest first",
        handler=index,
        query=ApprovalsQuery,
        returns=ApprovalList,
        tag="approvals",
    ),
    Operation(
        method="GET",
        path=_BASE + "/{approval_id}",
        summary="Show one approval",
        handler=show,
        returns=ApprovalAnswer,
        tag="approvals",
    ),
)
