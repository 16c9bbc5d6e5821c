"""The same request sent again is answered alike: what a key of the caller's own was answered with, for a while.

A server keeps its own answers, in memory. Where another server gets the repetition, or this one was started again, a
call is still asked for once, since its id comes from the key; every other request is carried out like any other, and a
second decision is told which one stands.
"""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from toolgate.interfaces.server.problems import ProblemError
from toolgate.ports.directory import Ability

if TYPE_CHECKING:
    from toolgate.interfaces.server.operations import Ask

HEADER: Final = b"idempotency-key"
REPLAYED: Final = (b"idempotency-replayed", b"true")
MOST_CHARACTERS: Final = 200
MOST_KEYS: Final = 1_000
"""How many keys of one account are kept; the oldest go first."""
MOST_BYTES: Final = 4 * 2**20
"""How large the kept answers to one account are together."""
MOST_BYTES_IN_ALL: Final = 256 * 2**20
KEPT_S: Final = 3600.0


@dataclass(slots=True)
class Kept:
    """A key that was used: for which request, until when, and what came of it."""

    fingerprint: bytes
    until: datetime
    is_over: asyncio.Event = field(default_factory=asyncio.Event)
    answer: Response | None = None
    is_too_large: bool = False

    @property
    def size(self) -> int:
        return 0 if self.answer is None else len(self.answer.body)


@dataclass(slots=True)
class Shelf:
    """The keys of one account: those whose request is under way, and those that were answered, the oldest first."""

    running: dict[str, Kept] = field(default_factory=dict)
    answered: OrderedDict[str, Kept] = field(default_factory=OrderedDict)
    size: int = 0
    """How large the answers are together."""

    def __len__(self) -> int:
        return len(self.running) + len(self.answered)

    def drop_oldest(self) -> int:
        """Forget the oldest answer; return how large it was."""
        _, kept = self.answered.popitem(last=False)
        self.size -= kept.size
        return kept.size


class Repeats:
    """What was answered to whom. One request per key and account is carried out at a time."""

    def __init__(
        self,
        *,
        now: Callable[[], datetime],
        wait_s: float,
        kept_s: float = KEPT_S,
        most_keys: int = MOST_KEYS,
        most_bytes: int = MOST_BYTES,
        most_bytes_in_all: int = MOST_BYTES_IN_ALL,
    ) -> None:
        self._now, self._wait_s, self._kept_for = now, wait_s, timedelta(seconds=kept_s)
        self._most_keys, self._most_bytes, self._most_in_all = most_keys, most_bytes, most_bytes_in_all
        self._shelves: OrderedDict[str, Shelf] = OrderedDict()
        self._size = 0

    async def once(
        self, account: str, key: str, fingerprint: bytes, run: Callable[[], Awaitable[Response]]
    ) -> Response:
        """Return what `run` answers, or answered before; raise a problem where the key stands for another request."""
        while True:
            shelf = self._shelf(account)
            found = shelf.running.get(key) or shelf.answered.get(key)
            if found is None:
                return await self._first(shelf, key, fingerprint, run)
            if found.fingerprint != fingerprint:
                raise ProblemError(
                    422,
                    "key_reused",
                    "This `Idempotency-Key` was used for another request. Take a new key for every request, and the "
                    "same one only to send exactly the same again.",
                )
            await self._finished(found)
            if found.answer is not None:
                return _again(found.answer)
            if found.is_too_large:
                raise ProblemError(
                    409,
                    "answer_not_kept",
                    "This request was carried out, but its answer was too large to be kept. Read what it is about.",
                )

    def _shelf(self, account: str) -> Shelf:
        """The keys of an account that still count."""
        shelf = self._shelves.setdefault(account, Shelf())
        self._shelves.move_to_end(account)
        now = self._now()
        while shelf.answered and next(iter(shelf.answered.values())).until <= now:
            self._size -= shelf.drop_oldest()
        return shelf

    async def _first(
        self, shelf: Shelf, key: str, fingerprint: bytes, run: Callable[[], Awaitable[Response]]
    ) -> Response:
        while len(shelf) >= self._most_keys and shelf.answered:
            self._size -= shelf.drop_oldest()
        if len(shelf) >= self._most_keys:
            raise ProblemError(
                429,
                "too_many_keys",
                "Too many requests with an `Idempotency-Key` are under way; wait for some of them.",
            )
        kept = shelf.running[key] = Kept(fingerprint, self._now() + self._kept_for)
        try:
            answer = await run()
            if not _is_passing(answer.status_code):
                self._keep(shelf, key, kept, answer)
            return answer
        finally:
            del shelf.running[key]
            kept.is_over.set()  # where nothing was kept, whoever waited for it carries it out

    def _keep(self, shelf: Shelf, key: str, kept: Kept, answer: Response) -> None:
        """Keep an answer; the oldest of the account go for it, or of whoever asked longest ago."""
        kept.is_too_large = len(answer.body) > self._most_bytes
        kept.answer = None if kept.is_too_large else answer
        kept.until = self._now() + self._kept_for
        shelf.answered[key] = kept
        shelf.size += kept.size
        self._size += kept.size
        while shelf.size > self._most_bytes:
            self._size -= shelf.drop_oldest()
        for other in self._shelves.values() if self._size > self._most_in_all else ():
            while other.answered and self._size > self._most_in_all:
                self._size -= other.drop_oldest()

    async def _finished(self, kept: Kept) -> None:
        try:
            async with asyncio.timeout(self._wait_s):
                await kept.is_over.wait()
        except TimeoutError:
            raise ProblemError(
                409,
                "in_progress",
                "A request with this `Idempotency-Key` is still being carried out; send it again in a moment.",
                headers={"Retry-After": "1"},
            ) from None


def key_of(headers: dict[bytes, bytes]) -> str | None:
    """The key a request has, if it has one; a problem where it cannot be one."""
    shown = headers.get(HEADER)
    if shown is None:
        return None
    key = shown.decode("latin-1").strip()
    if not (0 < len(key) <= MOST_CHARACTERS and key.isascii() and key.isprintable()):
        raise ProblemError(
            400,
            "invalid_key",
            f"An `Idempotency-Key` has from 1 to {MOST_CHARACTERS} printable ASCII characters, as a UUID has.",
        )
    return key


def fingerprint_of(ask: Ask, *, makes_credentials: bool) -> bytes:
    """What two requests have in common that are the same: method, path, query, body, and what the token may do.

    Credentials are given again only to the token they were made with.
    """
    token = ask.by.token
    scope = "" if token is None else f"{_listed(token.projects)} {_listed(token.abilities)}"
    if token is not None and makes_credentials:
        scope = token.id
    parts = (ask.scope["method"].encode(), ask.scope["path"].encode(), ask.scope["query_string"], scope.encode())
    digest = hashlib.sha256(ask.body_digest)
    for part in parts:
        digest.update(hashlib.sha256(part).digest())
    return digest.digest()


def call_id_of(ask: Ask) -> str | None:
    """The id of the call that a request with a key asks for, so that no server makes it twice; None without a key."""
    key = key_of(ask.headers)
    if key is None:
        return None
    parts = (ask.by.account.name, ask.project, key)
    digest = hashlib.sha256(b"".join(hashlib.sha256(part.encode()).digest() for part in parts))
    return str(uuid.UUID(bytes=digest.digest()[:16], version=5))


def _listed(names: frozenset[str] | frozenset[Ability] | None) -> str:
    return "all" if names is None else str(sorted(map(str, names)))


def _is_passing(status: int) -> bool:
    """Whether the request was not carried out for a reason that passes."""
    return status >= 500 or status == 429


def _again(answer: Response) -> Response:
    response = Response(answer.body, answer.status_code)
    response.raw_headers = [*answer.raw_headers, REPLAYED]
    return response
