"""Calls that another server claimed and a client here can run: found by hints, and by looking now and then.

Whoever is offered such a call takes it with `Gate.dispatch`, as any other; the commit lets one connection have it,
whichever server it is at.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging

from toolgate.adapters.runners.client import ClientRunner, offer_of
from toolgate.errors import NotFoundError, ToolgateError
from toolgate.gate import Gate
from toolgate.kernel.call import Call, Status
from toolgate.kernel.tool import Placement
from toolgate.ports.bus import LOOK_AGAIN, Hint
from toolgate.ports.store import CallQuery

LOOK_EVERY_S = 2.0
"""How long a call may wait unseen where its hint was lost."""
PAGE = 200
log = logging.getLogger("toolgate.server")


class Foreign:
    """Watches for calls of other servers for as long as somebody is connected here."""

    def __init__(self, gate: Gate, clients: ClientRunner) -> None:
        self._gate, self._clients = gate, clients
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news = asyncio.Event()
        self._hinted: set[tuple[str, str]] = set()
        self._look_at: set[str] = set()
        self._task: asyncio.Task[None] | None = None
        self._leave = gate.host.on_hint(self._on_hint)

    def joined(self, project: str) -> None:
        """Somebody came who can run calls of a project: look what waits for them."""
        self._look_at.add(project)
        self._news.set()
        if self._task is None:
            self._loop = asyncio.get_running_loop()
            self._task = self._loop.create_task(self._watch(), name="toolgate-foreign-calls")

    def _on_hint(self, hint: Hint) -> None:
        if hint is LOOK_AGAIN:
            self._wake(None)
        elif hint.status is Status.EXECUTING and self._clients.has_seats(hint.project):
            self._wake((hint.project, hint.call_id))

    def _wake(self, key: tuple[str, str] | None) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._note, key)

    def _note(self, key: tuple[str, str] | None) -> None:
        if key is None:
            self._look_at.update(self._clients.projects)
        else:
            self._hinted.add(key)
        self._news.set()

    async def _watch(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY_S):
                    await self._news.wait()
            if not self._news.is_set():
                self._look_at.update(self._clients.projects)
            self._news.clear()
            try:
                await self._look()
            except ToolgateError as error:
                log.warning("calls of other servers cannot be looked for now: %s", error.code)

    async def _look(self) -> None:
        hinted, self._hinted = self._hinted, set()
        projects, self._look_at = self._look_at, set()
        for project, call_id in hinted:
            with contextlib.suppress(NotFoundError):
                self._consider(await self._gate.calls.get(call_id, project=project))
        for project in projects:
            await self._look_through(project)

    async def _look_through(self, project: str) -> None:
        query = CallQuery(project=project, statuses=frozenset({Status.EXECUTING}), limit=PAGE)
        while self._clients.has_seats(project):
            calls = await self._gate.calls.list(query)
            for call in calls:
                self._consider(call)
            if len(calls) < PAGE:
                return
            query = CallQuery(project=project, statuses=query.statuses, limit=PAGE, after=calls[-1])

    def _consider(self, call: Call) -> None:
        if call.placement != Placement.CLIENT or call.status is not Status.EXECUTING:
            return
        if call.recalled is not None:
            self._clients.recall(call, call.recalled)
        elif call.runner is None and call.owner != self._gate.host.owner:
            self._clients.place_foreign(offer_of(call))

    async def close(self) -> None:
        self._leave()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
