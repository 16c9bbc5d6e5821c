"""The WebSocket: people decide and listen over one connection, with the messages of document 000.

A client sends `approval.decide`, `subscribe`, `unsubscribe` and `ping`; it hears events by their own names, `decided`,
`subscribed`, `pong` and `error`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from time import monotonic
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from toolgate.authority import Verb, may
from toolgate.errors import NotFoundError, ToolgateError, ToolInputError
from toolgate.interfaces.server import frames, views
from toolgate.interfaces.server.deciding import Reply, decide
from toolgate.interfaces.server.feed import Feed, Listener, skip_told
from toolgate.interfaces.server.identity import Caller, Headers, too_many
from toolgate.interfaces.server.operations import strict_json
from toolgate.interfaces.server.problems import ProblemError, not_found, problem_of
from toolgate.interfaces.server.services import Services
from toolgate.interfaces.server.waiting import riskiest
from toolgate.kernel.approval import Approval
from toolgate.ports.channel import Decision
from toolgate.ports.directory import EVERY_PROJECT
from toolgate.wire.schemas import Body, Id, Text

MAX_MESSAGE = 64 * 1024
MOST_SUBSCRIPTIONS = 50
GOING_AWAY, POLICY_VIOLATION = 1001, 1008
_CLOSE_CODES = {401: 4401, 429: 1013, 503: 1013}


class Decide(Body):
    type: Literal["approval.decide"]
    request_id: Id
    decision: Literal["approve", "deny", "reject"]
    reason: Text | None = None
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    project_id: Id | None = None


class Subscribe(Body):
    type: Literal["subscribe"]
    project_id: Id
    after: Annotated[int, Field(ge=0, lt=2**63)] | None = None


class Unsubscribe(Body):
    type: Literal["unsubscribe"]
    project_id: Id


class Ping(Body):
    type: Literal["ping"]


Message = Decide | Subscribe | Unsubscribe | Ping
_MESSAGES: TypeAdapter[Message] = TypeAdapter(Annotated[Message, Field(discriminator="type")])


class Bell(Listener):
    """A place in a feed whose wake-up rings the line it belongs to."""

    __slots__ = ("_ring",)

    def __init__(self, cursor: int, ring: asyncio.Event) -> None:
        super().__init__(cursor)
        self._ring = ring

    def wake(self) -> None:
        self._ring.set()


class Line:
    """One socket. Everything it sends goes through one task, so messages never mix."""

    project = EVERY_PROJECT

    def __init__(self, services: Services, socket: WebSocket, caller: Caller) -> None:
        self._services = services
        self._socket = socket
        self.caller = caller
        self._places: dict[str, tuple[Feed, Bell]] = {}
        self._outbox: deque[bytes] = deque()
        self._news = asyncio.Event()
        self._task = asyncio.current_task()
        self._is_closed = False
        self.sending_since: float | None = None
        self.heard_at = monotonic()

    def beat(self) -> None:
        self.heard_at = monotonic()  # the protocol has pings of its own

    def note_message(self, session_id: str, frame: bytes) -> bool:
        """Chat is for streams."""
        return False

    def note_mode(self, frame: bytes) -> None:
        """So is the mode."""

    def renew(self, caller: Caller) -> None:
        """Leave the projects the caller no longer belongs to; a socket of no project goes on, and may come to one."""
        self.caller = caller
        for project in tuple(self._places):
            if not may(Verb.STREAM, caller, project):
                self._leave(project)
                self.say({**not_found().content, "type": "error", "project_id": project})

    def finish(self) -> None:
        self._is_closed = True
        self._news.set()

    def cut(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def say(self, message: dict[str, Any]) -> None:
        self._outbox.append(frames.dumps(message))
        self._news.set()

    async def write(self) -> None:
        """Send what there is, in order, until the line is closed."""
        while not self._is_closed:
            self._news.clear()
            while self._outbox:
                await self._put(self._outbox.popleft())
            for feed, bell in tuple(self._places.values()):
                while chunk := await feed.after(bell):
                    for message in chunk.split(b"\n")[:-1]:
                        await self._put(message)
            if not self._outbox:
                await self._news.wait()

    async def _put(self, message: bytes) -> None:
        self.sending_since = monotonic()
        await self._socket.send_text(message.decode())
        self.sending_since = None
        self.heard_at = monotonic()

    async def read(self) -> None:
        """Take messages until the client goes; a bad one is answered and forgotten."""
        while not self._is_closed:
            text = await self._socket.receive_text()
            try:
                wait = await self._services.requests.take(self.caller.account.name)
                if wait:
                    raise too_many(wait)
                await self._take(_message(text))
            except ProblemError as error:
                self.say({**error.content, "type": "error"})
            except ToolgateError as error:
                self.say({**problem_of(error).content, "type": "error"})

    async def _take(self, message: Message) -> None:
        caller = await self._services.hub.renewed(self.caller)
        if caller is None:
            self.finish()
            return
        self.renew(caller)
        if isinstance(message, Decide):
            await self._decide(message)
        elif isinstance(message, Subscribe):
            await self.subscribe(message.project_id, message.after)
        elif isinstance(message, Unsubscribe):
            self._leave(message.project_id)
        else:
            self.say({"type": "pong"})

    async def _decide(self, message: Decide) -> None:
        gate = self._services.gate
        try:
            asked = await gate.approvals.get(message.request_id, project=message.project_id)
        except NotFoundError:
            raise _about(message, not_found()) from None
        try:
            who = self.caller.check(asked.project, Verb.DECIDE)
            reply = Reply(
                project=asked.project,
                approval_id=asked.id,
                by=who,
                reason=message.reason,
                digest=message.digest,
                is_plain=True,
            )
            result = await decide(self._services, reply, Decision(message.decision))
        except ToolgateError as error:
            raise _about(message, problem_of(error)) from None
        except ProblemError as error:
            raise _about(message, error) from None
        self.say(
            {
                "type": "decided",
                "request_id": asked.id,
                "decision": message.decision,
                "project_id": asked.project,
                "action_id": result.call_id,
                "status": views.ROW_STATUS[result.status],
            }
        )

    async def subscribe(self, project: str, after: int | None) -> None:
        """Listen to a project: from after an event, or from now with the questions that are open."""
        self.caller.check(project, Verb.STREAM)
        if len(self._places) >= MOST_SUBSCRIPTIONS:
            raise ProblemError(429, "too_many_streams", "This socket listens to too many projects.")
        self._leave(project)
        feed = self._services.hub.feed(project, frames.socket_frame)
        bell = Bell(0, self._news)
        await feed.join(bell)
        pending: list[Approval] = []
        if after is not None and after <= feed.head:
            bell.cursor = after
        else:
            bell.cursor = feed.head
            pending = (await riskiest(self._services.gate, project=project)).oldest_first
            await skip_told(self._services.gate, feed, bell, pending)
        self.say({"type": "subscribed", "project_id": project, "last_event_id": bell.cursor})
        for approval in pending:
            self._outbox.append(frames.asked_message(approval))
        self._places[project] = (feed, bell)
        self._news.set()

    def _leave(self, project: str) -> None:
        feed, bell = self._places.pop(project, (None, None))
        if feed is not None and bell is not None:
            feed.leave(bell)

    def close(self) -> None:
        for project in tuple(self._places):
            self._leave(project)


def _message(text: str) -> Message:
    if len(text) > MAX_MESSAGE:
        raise ProblemError(413, "too_large", f"A message is at most {MAX_MESSAGE:,} characters.")
    try:
        return _MESSAGES.validate_python(strict_json(text.encode(), MAX_MESSAGE * 4))
    except ToolInputError as error:
        raise ProblemError(400, "invalid_json", str(error)) from None
    except ValidationError as error:
        listed = "; ".join(
            f"{'.'.join(map(str, one['loc'])) or 'message'}: {one['msg']}"
            for one in error.errors(include_url=False, include_input=False, include_context=False)[:5]
        )
        raise ProblemError(400, "invalid_request", f"The message does not fit: {listed}.") from None


def _about(message: Decide, problem: ProblemError) -> ProblemError:
    problem.more["request_id"] = message.request_id
    return problem


class SocketEndpoint:
    """Serves `/ws`."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        services, socket = self._services, WebSocket(scope, receive, send)
        headers: Headers = dict(socket.scope["headers"])
        address = socket.client.host if socket.client is not None else ""
        try:
            caller = await services.authenticator.caller(
                headers, method="GET", address=address, ticket=socket.query_params.get("ticket")
            )
            services.hub.check_room(caller)
        except ProblemError as error:
            await socket.close(_CLOSE_CODES.get(error.status, POLICY_VIOLATION), error.code)
            return
        await socket.accept()
        line = Line(services, socket, caller)
        with services.hub.seated(line):
            await self._converse(socket, line)

    async def _converse(self, socket: WebSocket, line: Line) -> None:
        project = socket.query_params.get("project_id")
        reading = asyncio.ensure_future(self._read(line, project))
        writing = asyncio.ensure_future(line.write())
        try:
            await asyncio.wait({reading, writing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            reading.cancel()
            writing.cancel()
            ended = await asyncio.gather(reading, writing, return_exceptions=True)
            line.close()
        if not any(isinstance(end, WebSocketDisconnect) for end in ended):
            await socket.close(GOING_AWAY)

    @staticmethod
    async def _read(line: Line, project: str | None) -> None:
        if project is not None:
            try:
                await line.subscribe(project, None)
            except ProblemError as error:
                line.say({**error.content, "type": "error"})
        await line.read()
