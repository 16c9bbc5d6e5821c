"""Chat: messages to the agent, and the stream everything reaches a client by."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import uuid_utils

from toolgate.interfaces.server import frames
from toolgate.interfaces.server.operations import Ask, Operation
from toolgate.interfaces.server.problems import ProblemError
from toolgate.interfaces.server.schemas import MessageAnswer, MessageBody, StreamQuery
from toolgate.interfaces.server.services import Services
from toolgate.interfaces.server.streams import chat_stream
from toolgate.ports.agent import Agent, Turn
from toolgate.ports.directory import Ability

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
    context = ask.by.context(ask.project, session_id=session_id, run_id=str(uuid_utils.uuid7()), behavior=None)
    turn = Turn(message_id=str(uuid_utils.uuid7()), session_id=session_id, content=body.content, context=context)
    task = asyncio.get_running_loop().create_task(_take(ask.services, agent, turn), name="toolgate-turn")
    _turns.add(task)
    task.add_done_callback(_turns.discard)
    return 202, MessageAnswer(message_id=turn.message_id, session_id=session_id)


async def _take(services: Services, agent: Agent, turn: Turn) -> None:
    project, account = turn.context.project, turn.context.user or turn.context.principal

    async def say(name: str, data: Mapping[str, Any]) -> None:
        told = {"session_id": turn.session_id, "message_id": turn.message_id, "timestamp": frames.now_text(), **data}
        services.hub.tell(project, account, turn.session_id, frames.sse(name, frames.dumps(told)))

    try:
        await agent.take(turn, say)
    except Exception as error:  # noqa: BLE001  # an agent is somebody else's code: its failure is told, not raised
        log.error("the agent failed on message %s with %s", turn.message_id, type(error).__name__)
        await say("chat.error", {"error": "The agent failed; see the server's log."})


OPERATIONS = (
    Operation(
        method="GET",
        path=_BASE + "/stream",
        summary="Follow the project: approval requests, execution signals, results and chat",
        stream=chat_stream,
        query=StreamQuery,
        takes_ticket=True,
        media="text/event-stream",
        tag="chat",
    ),
    Operation(
        method="POST",
        path=_BASE + "/messages",
        summary="Send a message to the agent",
        handler=message,
        ability=Ability.ASK,
        body=MessageBody,
        returns=MessageAnswer,
        status=202,
        problems=(501,),
        tag="chat",
    ),
)
