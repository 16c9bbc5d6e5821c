"""Who answers where the local policy asks: the person at this terminal, or a person who answered at the server."""

from __future__ import annotations

import getpass

from toolgate.adapters.channels.terminal import TerminalChannel
from toolgate.errors import ToolgateError
from toolgate.interfaces.client.client import Client
from toolgate.interfaces.runner.notices import View
from toolgate.kernel.approval import Approval
from toolgate.kernel.context import Principal
from toolgate.ports.channel import Answer, Decision

_NOBODY = ("policy:", "grant:", "agent:", "runner:")
"""How the names begin of what approves without a person having looked at this very call."""


class Prompt:
    """Asks at the terminal, which the view leaves to the question meanwhile."""

    def __init__(self, view: View, terminal: TerminalChannel | None = None) -> None:
        self._view = view
        self._terminal = terminal or TerminalChannel()

    async def ask(self, approval: Approval) -> Answer | None:
        self._view.pause()
        try:
            return await self._terminal.ask(approval)
        finally:
            self._view.resume()


class ServerSaid:
    """Takes a person's yes at the server for the answer here, where this machine's user said that it may.

    A server that lies can say yes to anything the local policy would ask about; it still cannot have what that
    denies.
    """

    def __init__(self, otherwise: Prompt | None = None) -> None:
        self.server: Client | None = None
        self._otherwise = otherwise
        self._by = Principal(name=getpass.getuser())

    async def ask(self, approval: Approval) -> Answer | None:
        who = await self._approver(approval.run_id)
        if who is None:
            return None if self._otherwise is None else await self._otherwise.ask(approval)
        return Answer(Decision.APPROVE, self._by, f"{who} approved it at the server (--trust-approvals)")

    async def _approver(self, tool_id: str | None) -> str | None:
        if self.server is None or tool_id is None:
            return None
        try:
            call = await self.server.calls.get(tool_id)
        except ToolgateError:
            return None  # nobody can say so now: whoever is here is asked
        who = call.approved_by
        is_person = call.approval_id is not None and who is not None and not who.startswith(_NOBODY)
        return who if is_person else None
