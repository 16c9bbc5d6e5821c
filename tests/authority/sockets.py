"""The messages of a socket, each with the verb it is, and a client that says them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, get_args

from tests.unit.interfaces.server.house import House
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from toolgate.authority import Verb
from toolgate.interfaces.server.socket import Decide, Ping, Subscribe, Unsubscribe
from toolgate.testing.patience import PATIENCE_S
from toolgate.wire.schemas import Body

CLOSED = 401
"""What it is to a client that its socket was closed: it is not signed in any more."""


@dataclass(frozen=True, kw_only=True)
class Said:
    """A message, the verb it is, None where it does nothing, and what it is answered with."""

    kind: type[Body]
    verb: Verb | None
    fields: dict[str, Any]
    answer: str | None

    def about(self, project: str, approval_id: str) -> dict[str, Any]:
        filled = {
            name: {"project": project, "approval": approval_id}.get(text, text) for name, text in self.fields.items()
        }
        [word] = get_args(self.kind.model_fields["type"].annotation)
        return {"type": word, **filled}


MESSAGES = (
    Said(kind=Subscribe, verb=Verb.STREAM, fields={"project_id": "project"}, answer="subscribed"),
    Said(kind=Decide, verb=Verb.DECIDE, fields={"request_id": "approval", "decision": "approve"}, answer="decided"),
    Said(
        kind=Decide,
        verb=Verb.DECIDE,
        fields={"request_id": "approval", "decision": "deny", "project_id": "project"},
        answer="decided",
    ),
    Said(kind=Ping, verb=None, fields={}, answer="pong"),
    Said(kind=Unsubscribe, verb=None, fields={"project_id": "project"}, answer=None),
)


class Talk:
    """One socket, and everything heard on it."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self.heard: list[dict[str, Any]] = []

    async def until(self, *kinds: str) -> dict[str, Any] | None:
        """The next message of one of these kinds; None where the socket is closed before it comes."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    self.heard.append(json.loads(await self._connection.recv()))
                    if self.heard[-1]["type"] in kinds or ("error" in kinds and self.heard[-1].get("success") is False):
                        return self.heard[-1]
        except ConnectionClosed:
            return None

    async def status(self, said: dict[str, Any], answer: str | None) -> int:
        """Say something and return how it was answered: 200, or the status of the problem."""
        try:
            await self._connection.send(json.dumps(said))
            if answer is None:
                await self._connection.send('{"type": "ping"}')
        except ConnectionClosed:
            return CLOSED
        told = await self.until(answer or "pong", "error")
        return CLOSED if told is None else told.get("status", 200) if told["type"] == "error" else 200


@asynccontextmanager
async def talk(house: House, who: str) -> AsyncIterator[Talk]:
    headers = {"Authorization": f"Bearer {house.tokens[who]}"}
    async with connect(house.url.replace("http", "ws") + "/ws", additional_headers=headers, proxy=None) as connection:
        yield Talk(connection)
