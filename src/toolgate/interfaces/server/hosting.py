"""The server as the home of its agent: carries what it says to the streams of its account, and looks who may ask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolgate.authority import Verb, may
from toolgate.errors import NotAllowedError
from toolgate.interfaces.server import frames
from toolgate.interfaces.server.identity import Caller
from toolgate.interfaces.server.services import Services
from toolgate.kernel.context import Context
from toolgate.ports.threads import Run


class ChatHost:
    """Keeps the Host port of the agent."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def say(self, run: Run, name: str, data: Mapping[str, Any]) -> None:
        told = {
            "session_id": run.conversation_id,
            "message_id": run.message_id,
            "run_id": run.id,
            "timestamp": frames.now_text(),
            **data,
        }
        frame = frames.sse(name, frames.dumps(told))
        is_whole = name == "chat.message"
        self._services.hub.tell(run.project, run.account, run.conversation_id, frame, keep=is_whole)

    async def context_of(self, run: Run) -> Context | None:
        """What the account is now, not when it wrote: a run may wait for days."""
        account = await self._services.directory.account(run.account)
        if account is None or not may(Verb.ASK, account, run.project):
            return None
        try:
            return Caller(account).context(
                run.project, session_id=run.conversation_id, run_id=run.id, behavior=run.context.behavior
            )
        except NotAllowedError:  # the agent that wrote is not in that behavior any more
            return None
