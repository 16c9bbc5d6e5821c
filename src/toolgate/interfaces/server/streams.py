"""Server-sent events as raw ASGI: one task per client, shared frames, and execution signals for it alone."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from time import monotonic
from typing import Any

from starlette.types import Receive, Send

from toolgate.adapters.runners.client import Offer, Seat
from toolgate.authority import Verb, may
from toolgate.errors import ConflictError, NotFoundError, ToolgateError
from toolgate.gate.drawing import draw_all
from toolgate.interfaces.server import cards, frames
from toolgate.interfaces.server.feed import Feed, Listener, skip_told
from toolgate.interfaces.server.frames import Encoder
from toolgate.interfaces.server.identity import Caller, key_needed
from toolgate.interfaces.server.operations import Ask
from toolgate.interfaces.server.problems import ProblemError
from toolgate.interfaces.server.services import Services
from toolgate.interfaces.server.shield import secured
from toolgate.interfaces.server.waiting import riskiest
from toolgate.kernel.approval import Approval
from toolgate.kernel.context import Principal, PrincipalKind
from toolgate.kernel.ids import check_id
from toolgate.wire.schemas import StreamQuery

HEADERS = secured(
    [
        (b"content-type", b"text/event-stream; charset=utf-8"),
        (b"cache-control", b"no-store"),
        (b"x-accel-buffering", b"no"),
    ]
)
RETRY = b"retry: 2000\n\n"
log = logging.getLogger("toolgate.server")

Letter = Callable[[], Awaitable[bytes]]
"""Something for one client alone, written when it is sent."""
Asked = Callable[[Approval], bytes]
"""How a question that was open before a client came is put to it."""


class Stream:
    """One client. Frames come from the feed, letters from its own box; both leave through one `send`.

    There may be thousands: what one rarely needs is made when it does.
    """

    __slots__ = (
        "_feed",
        "_is_cut",
        "_is_silent",
        "_letters",
        "_listener",
        "_send",
        "_session_id",
        "_task",
        "caller",
        "heard_at",
        "project",
        "sending_since",
        "tells_mode",
    )

    def __init__(
        self,
        feed: Feed,
        listener: Listener,
        send: Send,
        caller: Caller,
        session_id: str | None = None,
        tells_mode: bool = False,
    ) -> None:
        self.caller = caller
        self.tells_mode = tells_mode
        self._session_id = session_id
        self.project = feed.project
        self._feed = feed
        self._listener = listener
        self._send = send
        self._letters: deque[Letter] | None = None
        self._task: asyncio.Task[Any] | None = asyncio.current_task()
        self.sending_since: float | None = None
        self.heard_at = monotonic()
        self._is_silent = False
        self._is_cut = False

    async def put(self, data: bytes) -> None:
        """Send now. How long it takes is watched by the hub."""
        self.sending_since = monotonic()
        await self._send({"type": "http.response.body", "body": data, "more_body": True})
        self.sending_since = None
        self.heard_at = monotonic()

    def post(self, letter: Letter) -> None:
        """Send something to this client alone, in its turn. Call on the stream's loop."""
        if self._letters is None:
            self._letters = deque()
        self._letters.append(letter)
        self._listener.wake()

    def note_message(self, session_id: str, frame: bytes) -> bool:
        is_heard = self._session_id in (None, session_id) and not self._listener.is_closed and not self.caller.is_bare
        if is_heard:
            self.post(lambda: _ready(frame))
        return is_heard

    def note_mode(self, frame: bytes) -> None:
        if self.tells_mode:
            self.post(lambda: _ready(frame))

    def beat(self) -> None:
        self._is_silent = True
        self._listener.wake()

    def renew(self, caller: Caller) -> None:
        """End where the caller may do something else than when it began: their client comes back with that."""
        if caller.abilities_in(self.project) != self.caller.abilities_in(self.project):
            self.finish()

    def finish(self) -> None:
        self._listener.close()

    def cut(self) -> None:
        self._is_cut = True
        if self._task is not None:
            self._task.cancel()

    async def run(self) -> None:
        """Send what there is until the client goes or is sent away."""
        try:
            while not self._listener.is_closed:
                data = await self._next()
                if data:
                    await self.put(data)
                elif not self._listener.is_closed:
                    await self._listener.wait()
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        except ToolgateError as error:
            log.info("a stream ended: %s", error.code)
        except asyncio.CancelledError:
            if not self._is_cut:
                raise
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()

    async def _next(self) -> bytes:
        if self._letters:
            return await self._letters.popleft()()
        data = await self._feed.after(self._listener)
        if not data and self._is_silent:
            data = frames.HEARTBEAT
        self._is_silent = False
        return data


class SignalSender:
    """Sends a stream the signals of the calls it is offered: leased before they are sent, sent once, kept nowhere."""

    def __init__(self, services: Services, stream: Stream, project: str, who: Principal, query: StreamQuery) -> None:
        self._services = services
        self._stream = stream
        self._project = project
        self._loop = asyncio.get_running_loop()
        names = frozenset(name.strip() for name in (query.tools or "").split(",") if name.strip())
        self.seat = Seat(
            project=project,
            principal=who.name,
            tools=names,
            session_id=query.session_id,
            can_undo=query.undo,
            is_runner=who.kind is PrincipalKind.RUNNER,
            offer=self._on_offer,
            recall=self._on_recall,
        )

    def _on_offer(self, offer: Offer) -> None:
        self._on_loop(lambda: self._take(offer))

    def _on_recall(self, call_id: str, reason: str) -> None:
        self._on_loop(lambda: _ready(frames.cancel_frame(call_id, reason)))

    def _on_loop(self, letter: Letter) -> None:
        try:
            self._loop.call_soon_threadsafe(self._stream.post, letter)
        except RuntimeError:  # the loop is closed: what was offered is offered again when the seat is left
            return

    async def _take(self, offer: Offer) -> bytes:
        """Lease a call and return its signal; nothing where it is not to be had any more."""
        services, project = self._services, self._project
        caller = await services.hub.renewed(self._stream.caller)
        if caller is None or not may(Verb.DISPATCH, caller, project):
            self._stream.finish()  # what was offered is offered to others when the seat is left
            return b""
        try:
            wanted = await services.gate.calls.get(offer.call_id, project=project)
            who = caller.check(project, Verb.DISPATCH, wanted)
            call = await services.gate.remote.dispatch(offer.call_id, to=who, project=project)
            tool = services.gate.registry.find(call.tool_name)
            timeout_s = tool.timeout_seconds if tool is not None else 0.0
        except (ConflictError, NotFoundError, ProblemError):
            services.clients.dropped(self.seat, offer.call_id)
            return b""
        services.clients.took(self.seat, offer.call_id)
        return frames.signal_frame(call, timeout_s)


async def _ready(frame: bytes) -> bytes:
    return frame


async def _serve(
    ask: Ask,
    receive: Receive,
    send: Send,
    *,
    encode: Encoder,
    asked: Asked | None,
    takes_calls: bool = False,
    tells_mode: bool = False,
) -> None:
    services, project, who, caller = ask.services, ask.project, ask.who, ask.by
    services.hub.check_room(caller)
    last_id = _last_id(ask, ask.query)
    query: StreamQuery | None = ask.query if takes_calls else None
    if query is not None and query.tools:
        caller.check(project, Verb.DISPATCH)
        if caller.is_bare:
            raise key_needed()
    if query is not None and query.tools and query.listen:
        raise ProblemError(400, "invalid_request", "A stream that only listens runs nothing: leave out `tools`.")
    if query is not None and query.session_id is not None:
        check_id(query.session_id, "session id", services.gate.host.masker)
        services.naming.note(caller.maker(project, session_id=query.session_id))
    feed = services.hub.feed(project, encode)
    listener = Listener(0)
    await feed.join(listener)
    stream = Stream(feed, listener, send, caller, None if query is None else query.session_id, tells_mode)
    gone = asyncio.ensure_future(_until_gone(receive))
    gone.add_done_callback(lambda _done: listener.close())
    runs_calls = query is not None and not query.listen and not caller.is_bare and may(Verb.DISPATCH, caller, project)
    seat = SignalSender(services, stream, project, who, query).seat if query is not None and runs_calls else None
    del ask, query, caller, who  # a stream lasts for hours, and there may be thousands
    try:
        with services.hub.seated(stream):
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            await stream.put(RETRY + await _opening(services, feed, listener, last_id, asked))
            if seat is not None:
                services.clients.join(seat)
                services.foreign.joined(project)
            services.hub.tell_unheard(stream)
            await stream.run()
    finally:
        if seat is not None:
            services.clients.leave(seat)
        feed.leave(listener)
        gone.cancel()


chat_stream = partial(_serve, encode=frames.chat_frame, asked=frames.request_frame, takes_calls=True)
"""Serve `chat/stream`: events as document 004 names them, and calls to run.

Who shows a session's cookie alone gets the events, in which secrets are masked, and neither chat nor calls."""

event_stream = partial(_serve, encode=frames.event_frame, asked=None)
"""Serve `events` to who accepts an event stream: every event with its exact body."""

inbox_stream = partial(_serve, encode=cards.card_frame, asked=cards.card_sse, tells_mode=True)
"""Serve `inbox`: every event with its exact body, questions as cards, and the mode whenever it changes."""


def _last_id(ask: Ask, query: Any) -> int | None:
    header = ask.headers.get(b"last-event-id")
    if header is None or not header.strip():
        found: int | None = query.after
        return found
    if not header.isdigit() or len(header) > 18:
        raise ProblemError(400, "invalid_request", "Last-Event-ID must be the number of an event.")
    return int(header)


async def _opening(
    services: Services, feed: Feed, listener: Listener, last_id: int | None, asked: Asked | None
) -> bytes:
    """Where a client begins: after the last event it saw, or now, with the questions that are open."""
    is_inbox = asked is cards.card_sse
    state = await _policy(services, feed.project) if is_inbox else b""
    if last_id is not None and last_id <= feed.head:
        listener.cursor = last_id
        return frames.mode_frame(services.gate, feed.project) + state if is_inbox else b""
    listener.cursor = feed.head
    waiting = None if asked is None else await riskiest(services.gate, project=feed.project)
    pending = [] if waiting is None else waiting.approvals if is_inbox else waiting.oldest_first
    await skip_told(services.gate, feed, listener, pending)
    ready = {
        "project_id": feed.project,
        "last_event_id": listener.cursor,
        "mode": services.gate.mode.value,
        "timestamp": frames.now_text(),
    }
    if waiting is not None and is_inbox:
        ready |= frames.brakes_data(services.gate, feed.project)
        ready |= {"waiting": waiting.total, "next": None if waiting.next is None else waiting.next.id}
    told = [] if asked is None else await draw_all(asked, pending)
    return state + b"".join(told) + frames.sse("stream.ready", frames.dumps(ready), id=listener.cursor)


async def _policy(services: Services, project: str) -> bytes:
    held = await services.gate.host.held_revision()
    return frames.policy_frame(services.gate, project, held)


async def _until_gone(receive: Receive) -> None:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
