"""All streams and sockets of the server: their feeds, heartbeats, limits, and the cutting off of slow ones."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from time import monotonic
from typing import NamedTuple, Protocol

from toolgate.errors import ToolgateError
from toolgate.gate import Gate
from toolgate.interfaces.server.feed import Feed
from toolgate.interfaces.server.frames import Encoder, mode_frame, policy_frame
from toolgate.interfaces.server.identity import Caller
from toolgate.interfaces.server.problems import ProblemError
from toolgate.interfaces.server.settings import ServerSettings
from toolgate.kernel.policy import Policy
from toolgate.ports.directory import Account, Directory, Token, TokenUse

CHECK_S = 10.0
"""How often those who are connected are looked up again."""
UNHEARD_S = 60.0
"""How long a chat message that nobody heard waits for a stream to come back."""
MOST_UNHEARD = 200
IDLE_S = 60.0
"""How long a feed nobody listens to is kept for those who come back."""
log = logging.getLogger("toolgate.server")


class Connection(Protocol):
    """What the hub can do with a stream or socket."""

    caller: Caller
    project: str
    sending_since: float | None
    heard_at: float

    def beat(self) -> None:
        """Send a heartbeat soon."""
        ...

    def note_message(self, session_id: str, frame: bytes) -> bool:
        """Send a chat message of a session, if this connection listens to it; say whether it does."""
        ...

    def note_mode(self, frame: bytes) -> None:
        """Send the new mode or policy, if this connection wants to know."""
        ...

    def renew(self, caller: Caller) -> None:
        """Go on as what the caller is now, and end what they may no longer hear."""
        ...

    def cut(self) -> None:
        """End now, whatever is unsent."""
        ...

    def finish(self) -> None:
        """End as soon as what is there is sent."""
        ...


class _Known:
    """What accounts and tokens are now, each looked up once."""

    def __init__(self, directory: Directory, now: datetime) -> None:
        self._directory, self._now = directory, now
        self._accounts: dict[str, Account | None] = {}
        self._tokens: dict[str, Token | None] = {}

    async def caller(self, was: Caller) -> Caller | None:
        """Return a caller as what they are now; None where what they showed, or what it was made with, has ended."""
        token, name = was.token, was.account.name
        if token is not None and not await self._lasts(token):
            return None
        if name not in self._accounts:
            self._accounts[name] = await self._directory.account(name)
        account = self._accounts[name]
        return None if account is None else replace(was, account=account)

    async def _lasts(self, token: Token) -> bool:
        """Whether a token is valid, and all it hangs on. A ticket is spent by being shown: what made it counts."""
        above = token.parent if token.use is TokenUse.TICKET else token.id
        while above is not None:
            if above not in self._tokens:
                self._tokens[above] = await self._directory.token(above)
            found = self._tokens[above]
            if found is None or not found.is_valid(self._now):
                return False
            above = found.parent
        return True


class _Unheard(NamedTuple):
    """A chat message that nobody was there to hear, and since when."""

    project: str
    account: str
    session_id: str
    frame: bytes
    at: float


class Hub:
    """Feeds by project and encoding, and who is connected."""

    def __init__(
        self, gate: Gate, directory: Directory, settings: ServerSettings, *, now: Callable[[], datetime]
    ) -> None:
        self._gate = gate
        self._directory = directory
        self._now = now
        self._checked_at = monotonic()
        self._settings = settings
        self._feeds: dict[tuple[str, Encoder], Feed] = {}
        self._idle_since: dict[tuple[str, Encoder], float] = {}
        self.connections: set[Connection] = set()
        self._by_account: Counter[str] = Counter()
        self._task: asyncio.Task[None] | None = None
        self.drained = asyncio.Event()
        self.cut_count = 0
        self._told_brakes = gate.brakes
        self._told_policy: tuple[Policy, str | None] = (gate.policy, None)
        self._revision: int | None = None
        self._fresh: set[Connection] = set()
        self._unheard: deque[_Unheard] = deque(maxlen=MOST_UNHEARD)
        self._next_end: datetime | None = None

    @property
    def is_draining(self) -> bool:
        return self.drained.is_set()

    def feed(self, project: str, encode: Encoder) -> Feed:
        """The feed of a project in an encoding, made at first use."""
        key = (project, encode)
        if key not in self._feeds:
            self._feeds[key] = Feed(
                self._gate, project, encode, frames=self._settings.ring_frames, renew=self._renew_changed
            )
        return self._feeds[key]

    def check_room(self, caller: Caller) -> None:
        """Refuse one connection too many, before it is answered."""
        if self.is_draining:
            raise ProblemError(503, "draining", "The server is shutting down; connect again soon.")
        settings, name = self._settings, caller.account.name
        if len(self.connections) >= settings.max_streams or self._by_account[name] >= settings.max_streams_per_account:
            raise ProblemError(429, "too_many_streams", "Too many streams are open.", headers={"Retry-After": "5"})

    @contextmanager
    def seated(self, connection: Connection) -> Iterator[None]:
        """Count a connection in for as long as it lasts."""
        name = connection.caller.account.name
        self.connections.add(connection)
        self._fresh.add(connection)
        self._by_account[name] += 1
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._look_after(), name="toolgate-hub")
        try:
            yield
        finally:
            self.connections.discard(connection)
            self._fresh.discard(connection)
            self._by_account[name] -= 1
            if not self._by_account[name]:
                del self._by_account[name]

    async def _look_after(self) -> None:
        """Send heartbeats into silence, cut off who takes nothing, and let go of feeds nobody listens to."""
        settings = self._settings
        while True:
            await asyncio.sleep(min(settings.heartbeat_s, settings.slow_s) / 4)
            now = monotonic()
            for connection in tuple(self.connections):
                since = connection.sending_since
                if since is not None and now - since > settings.slow_s:
                    self.cut_count += 1
                    connection.cut()
                elif now - connection.heard_at > settings.heartbeat_s:
                    connection.beat()
            self.tell_mode()
            await self.tell_policy()
            await self._let_go(now)
            if now - self._checked_at > CHECK_S:
                self._checked_at = now
                await self._check_callers(self.connections)

    async def _renew_changed(self) -> None:
        """Renew every connection where an account was changed, or a token was revoked or ran out, since last time.

        Those that came since are looked at once: what they may do was found out a moment before they were here.
        """
        fresh, self._fresh = self._fresh, set()
        revision, now = await self._directory.revision(), self._now()
        if revision != self._revision or (self._next_end is not None and now >= self._next_end):
            await self._check_callers(self.connections)
            self._revision = revision
        elif fresh:
            await self._check_callers(fresh)

    async def _check_callers(self, connections: set[Connection]) -> None:
        """Renew connections, and end those of callers whose token or account ended."""
        tokens = [one.caller.token for one in self.connections if one.caller.token is not None]
        ends = [token.expires_at for token in tokens if token.expires_at is not None]
        self._next_end = min((end for end in ends if end > self._now()), default=None)
        known = _Known(self._directory, self._now())
        for connection in tuple(connections):
            caller = await known.caller(connection.caller)
            if caller is None:
                connection.finish()
            else:
                connection.renew(caller)

    async def renewed(self, caller: Caller) -> Caller | None:
        """Return a caller with the rights of now; None where their token or account ended."""
        return await _Known(self._directory, self._now()).caller(caller)

    async def _let_go(self, now: float) -> None:
        for key, feed in tuple(self._feeds.items()):
            if feed.listeners:
                self._idle_since.pop(key, None)
            elif now - self._idle_since.setdefault(key, now) > IDLE_S:
                del self._feeds[key], self._idle_since[key]
                await feed.close()

    def tell(self, project: str, account: str, session_id: str, frame: bytes, *, keep: bool = False) -> None:
        """Send a chat message to an account's own streams: those of the session, and those of no session.

        One to `keep` that nobody hears is told to the first of them that comes, if one comes soon: a client that lost
        its connection is on its way back.
        """
        streams = [one for one in self.connections if one.project == project and one.caller.account.name == account]
        heard = [one.note_message(session_id, frame) for one in streams]
        if keep and not any(heard):
            self._unheard.append(_Unheard(project, account, session_id, frame, monotonic()))

    def tell_unheard(self, connection: Connection) -> None:
        """Send to a stream that came what its account missed just now."""
        now, left = monotonic(), deque[_Unheard](maxlen=MOST_UNHEARD)
        for one in self._unheard:
            is_theirs = (one.project, one.account) == (connection.project, connection.caller.account.name)
            is_told = is_theirs and connection.note_message(one.session_id, one.frame)
            if not is_told and now - one.at < UNHEARD_S:
                left.append(one)
        self._unheard = left

    def tell_mode(self) -> None:
        """Tell who wants to know of a mode that changed, here or in another process."""
        brakes = self._gate.brakes
        if brakes is self._told_brakes:
            return
        self._told_brakes = brakes
        frames: dict[str, bytes] = {}
        for connection in tuple(self.connections):
            frame = frames.get(connection.project) or mode_frame(self._gate, connection.project)
            frames[connection.project] = frame
            connection.note_mode(frame)

    async def tell_policy(self) -> None:
        """Tell who wants to know of a policy that changed, or that waits for a person, here or in another process."""
        try:
            held = await self._gate.host.held_revision()
        except ToolgateError as error:
            log.warning("whether a policy waits cannot be read now: %s", error.code)
            return
        policy, before = self._gate.policy, self._told_policy
        if policy is before[0] and held == before[1]:
            return
        self._told_policy = (policy, held)
        for connection in tuple(self.connections):
            connection.note_mode(policy_frame(self._gate, connection.project, held))

    def drain(self) -> None:
        """Take no more connections and end those that are there; their clients come back elsewhere or later."""
        self.drained.set()
        for connection in tuple(self.connections):
            connection.finish()

    async def close(self) -> None:
        self.drain()
        for feed in self._feeds.values():
            await feed.close()
        self._feeds.clear()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
