"""The client of a Toolgate server."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from toolgate.interfaces.client.approvals import Approvals
from toolgate.interfaces.client.calling import Calling
from toolgate.interfaces.client.calls import Calls
from toolgate.interfaces.client.chat import Chat
from toolgate.interfaces.client.connection import Connection, Options
from toolgate.interfaces.client.delegations import Delegations
from toolgate.interfaces.client.governance import Governance
from toolgate.interfaces.client.grants import Grants
from toolgate.interfaces.client.history import History
from toolgate.interfaces.client.remote import Remote
from toolgate.interfaces.client.sessions import Sessions
from toolgate.interfaces.client.waiting import CallWaiters
from toolgate.kernel.context import DEFAULT_PROJECT


class Client(Calling, Chat, Governance, History, Sessions):
    """One account in one project of a server: `async with Client(url, token=..., project=...) as client:`.

    Its verbs are those of a `Gate`, over the network; `calls`, `approvals`, `grants`, `delegations` and
    `remote` are its parts.
    `timeout_s` is how long an answer may take, `retry_s` how long a request that can do no harm twice is tried again.
    A token is sent over https or to this machine; `allow_plain_http` lifts that. `ca_file` has the certificates to
    trust instead of the system's. An answer or event beyond `max_answer_bytes` is refused.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        project: str = DEFAULT_PROJECT,
        timeout_s: float = 30.0,
        retry_s: float = 10.0,
        ca_file: Path | str | None = None,
        allow_plain_http: bool = False,
        max_answer_bytes: int = 32 * 2**20,
    ) -> None:
        options = Options(
            timeout_s=timeout_s,
            retry_s=retry_s,
            ca_file=ca_file,
            allow_plain_http=allow_plain_http,
            max_answer_bytes=max_answer_bytes,
        )
        connection = Connection(url, token, options)
        super().__init__(connection, project)
        self._waiters = CallWaiters(self.follow)
        self.calls = Calls(connection, project)
        self.approvals = Approvals(connection, project)
        self.grants = Grants(connection, project)
        self.delegations = Delegations(connection, project)
        self.remote = Remote(connection, project)

    @property
    def url(self) -> str:
        """The server's address."""
        return self._connection.url

    def __repr__(self) -> str:
        return f"Client({self.url!r}, project={self.project!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close every connection. Calls that were made go on."""
        await self._connection.close()
        self._waiters.close()
