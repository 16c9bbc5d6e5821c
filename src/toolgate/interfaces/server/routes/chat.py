"""Chat: messages to the agent, the conversations and runs they make, and the stream everything reaches a client by."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import uuid_utils

from toolgate.authority import Verb, may
from toolgate.errors import ConflictError
from toolgate.interfaces.server import frames
from toolgate.interfaces.server.operations import Ask, Operation
from toolgate.interfaces.server.problems import ProblemError, not_found
from toolgate.interfaces.server.services import Services
from toolgate.interfaces.server.streams import chat_stream
from toolgate.kernel.ids import check_id
from toolgate.ports.agent import Agent, ResidentAgent, Turn
from toolgate.ports.threads import Message, Run, RunQuery, RunStatus
from toolgate.wire.chat import (
    ChatRunAnswer,
    ChatRunList,
    ChatRunRecord,
    ChatRunsQuery,
    ConversationList,
    ConversationRecord,
    ConversationsQuery,
    MessageAnswer,
    MessageBody,
    MessageList,
    MessageRecord,
    MessagesQuery,
)
from toolgate.wire.schemas import StreamQuery

_BASE = "/my/projects/{project_id}/chat"
log = logging.getLogger("toolgate.server")
_turns: set[asyncio.Task[None]] = set()


async def message(ask: Ask) -> tuple[int, MessageAnswer]:
    """Hand a message to the agent, which answers on the stream."""
    agent = ask.services.agent
    if agent is None:
        raise ProblemError(501, "no_agent", "No agent is configured on this server.")
    body: MessageBody = ask.body
    session_id = body.session_id or str(uuid_utils.uuid7())
    check_id(session_id, "session id", ask.services.gate.host.masker)
    context = ask.by.context(ask.project, session_id=session_id, run_id=str(uuid_utils.uuid7()), behavior=None)
    await ask.services.naming.check(ask.services.gate, replace(context, run_id=None))
    turn = Turn(
        message_id=str(uuid_utils.uuid7()),
        session_id=session_id,
        content=body.content,
        context=context,
        account=_account(ask),
    )
    if isinstance(agent, ResidentAgent):
        await _accept(agent, turn)
        return 202, MessageAnswer(message_id=turn.message_id, session_id=session_id, run_id=context.run_id)
    task = asyncio.get_running_loop().create_task(_take(ask.services, agent, turn, _account(ask)), name="toolgate-turn")
    _turns.add(task)
    task.add_done_callback(_turns.discard)
    return 202, MessageAnswer(message_id=turn.message_id, session_id=session_id)


async def _accept(agent: ResidentAgent, turn: Turn) -> None:
    try:
        await agent.accept(turn)
    except ConflictError:
        text = "The agent still works on the message before, or waits for a person. Wait for it, or cancel its run."
        raise ProblemError(409, "conversation_busy", text) from None


async def _take(services: Services, agent: Agent, turn: Turn, account: str) -> None:
    project = turn.context.project

    async def say(name: str, data: Mapping[str, Any]) -> None:
        told = {"session_id": turn.session_id, "message_id": turn.message_id, "timestamp": frames.now_text(), **data}
        services.hub.tell(project, account, turn.session_id, frames.sse(name, frames.dumps(told)))

    try:
        await agent.take(turn, say)
    except Exception as error:  # noqa: BLE001  # an agent is somebody else's code: its failure is told, not raised
        log.error("the agent failed on message %s with %s", turn.message_id, type(error).__name__)
        await say("chat.error", {"error": "The agent failed; see the server's log."})


def _resident(ask: Ask) -> ResidentAgent:
    agent = ask.services.agent
    if not isinstance(agent, ResidentAgent):
        raise ProblemError(501, "no_agent", "No agent that keeps conversations is configured on this server.")
    return agent


def _account(ask: Ask) -> str:
    """Whose conversations the caller reads and writes: only their own, whoever they work for."""
    return ask.by.account.name


async def conversations(ask: Ask) -> ConversationList:
    threads, account, query = _resident(ask).threads, _account(ask), ask.query
    before = None if query.before is None else await threads.conversation(ask.project, account, query.before)
    if query.before is not None and before is None:
        raise not_found()
    found = await threads.conversations(ask.project, account, before=before, limit=query.limit)
    records = [
        ConversationRecord(
            session_id=one.id,
            title=one.title,
            messages=one.size,
            created_at=one.created_at,
            updated_at=one.updated_at,
        )
        for one in found
    ]
    return ConversationList(conversations=records, next=found[-1].id if len(found) == query.limit else None)


async def messages(ask: Ask) -> MessageList:
    threads, account, query = _resident(ask).threads, _account(ask), ask.query
    session_id = ask.params["session_id"]
    if await threads.conversation(ask.project, account, session_id) is None:
        raise not_found()
    found = await threads.messages(ask.project, account, session_id, after=query.after, limit=query.limit)
    last = found[-1].position if len(found) == query.limit else None
    return MessageList(session_id=session_id, messages=[_message(one) for one in found], next=last)


def _message(one: Message) -> MessageRecord:
    shown = dict(one.shown)
    return MessageRecord(
        message_id=one.id,
        run_id=one.run_id,
        position=one.position,
        role=one.role.value,
        content=shown.pop("text", ""),
        created_at=one.created_at,
        **shown,
    )


async def runs(ask: Ask) -> ChatRunList:
    threads, query = _resident(ask).threads, ask.query
    before = None if query.before is None else await _own(ask, query.before)
    wanted = RunQuery(
        project=ask.project,
        account=_account(ask),
        conversation_id=query.session_id,
        statuses=None if query.status is None else frozenset({RunStatus(query.status)}),
        before=before,
        limit=query.limit,
    )
    found = await threads.runs(wanted)
    return ChatRunList(runs=[_run(one) for one in found], next=found[-1].id if len(found) == query.limit else None)


async def run(ask: Ask) -> ChatRunAnswer:
    return ChatRunAnswer(run=_run(await _own(ask, ask.params["run_id"])))


async def cancel(ask: Ask) -> ChatRunAnswer:
    agent = _resident(ask)
    own = await _own(ask, ask.params["run_id"])
    return ChatRunAnswer(run=_run(await agent.cancel(ask.project, own.id, by=ask.who.name)))


async def _own(ask: Ask, run_id: str) -> Run:
    """A run of the caller's, or of anybody for an admin; what is not theirs is not there."""
    found = await _resident(ask).threads.run(ask.project, run_id)
    if found is None or (found.account != _account(ask) and not may(Verb.OVERSEE, ask.by, ask.project)):
        raise not_found()
    return found


def _run(one: Run) -> ChatRunRecord:
    return ChatRunRecord(
        run_id=one.id,
        session_id=one.conversation_id,
        message_id=one.message_id,
        status=one.status.value,
        steps=one.steps,
        waiting_for=list(one.waiting),
        input_tokens=one.usage.input_tokens,
        output_tokens=one.usage.output_tokens,
        cost=one.usage.cost,
        worked_seconds=round(one.worked_s, 3),
        error=one.error,
        created_at=one.created_at,
        updated_at=one.updated_at,
        ended_at=one.ended_at,
    )


OPERATIONS = (
    Operation(
        method="GET",
        path=_BASE + "/stream",
        summary="Follow the project: approval requests, execution signals, results and chat",
        stream=chat_stream,
        query=StreamQuery,
        takes_ticket=True,
        takes_bare=True,
        media="text/event-stream",
        tag="chat",
    ),
    Operation(
        method="POST",
        path=_BASE + "/messages",
        summary="Send a message to the agent",
        handler=message,
        verb=Verb.TALK,
        body=MessageBody,
        returns=MessageAnswer,
        status=202,
        problems=(409, 501),
        tag="chat",
    ),
    Operation(
        method="GET",
        path=_BASE + "/conversations",
        summary="List your conversations, the last one written to first",
        handler=conversations,
        query=ConversationsQuery,
        returns=ConversationList,
        problems=(501,),
        tag="chat",
    ),
    Operation(
        method="GET",
        path=_BASE + "/conversations/{session_id}/messages",
        summary="Read the messages of a conversation",
        handler=messages,
        query=MessagesQuery,
        returns=MessageList,
        problems=(501,),
        tag="chat",
    ),
    Operation(
        method="GET",
        path=_BASE + "/runs",
        summary="List the agent's runs on your messages, newest first",
        handler=runs,
        query=ChatRunsQuery,
        returns=ChatRunList,
        problems=(501,),
        tag="chat",
    ),
    Operation(
        method="GET",
        path=_BASE + "/runs/{run_id}",
        summary="Look at a run of the agent",
        handler=run,
        returns=ChatRunAnswer,
        problems=(501,),
        tag="chat",
    ),
    Operation(
        method="POST",
        path=_BASE + "/runs/{run_id}/cancel",
        summary="End a run of the agent and the calls it waits for",
        handler=cancel,
        verb=Verb.TALK,
        returns=ChatRunAnswer,
        problems=(501,),
        tag="chat",
    ),
)
