"""Who one is, sessions for browsers, tickets, and how the server is."""

from __future__ import annotations

from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie

from toolgate.errors import BadAnswerError
from toolgate.interfaces.client.base import Part
from toolgate.interfaces.client.connection import Request
from toolgate.wire.schemas import Done, Health
from toolgate.wire.session import SessionAnswer, TicketAnswer

COOKIE = "toolgate_session"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserSession:
    """A session to put into a browser: its cookie, and what its pages send as `X-Toolgate-Key`. Both are secrets."""

    account: str
    cookie: str = field(repr=False)
    key: str = field(repr=False)
    expires_in: float


class Sessions(Part):
    """Signing in, and how the server is."""

    async def session(self) -> SessionAnswer:
        """Who this client is to the server."""
        return await self._connection.ask(SessionAnswer, "GET", "/session", repeats=True)

    async def missing_project(self) -> str | None:
        """Where the account does not belong to this client's project, a sentence that says to which it does."""
        known = await self.session()
        if self.project in known.projects:
            return None
        there = f"it belongs to {', '.join(map(repr, known.projects))}" if known.projects else "it belongs to none"
        return f"The account {known.account!r} does not belong to a project {self.project!r} of this server; {there}."

    async def sign_in(self) -> BrowserSession:
        """Make a session for a browser out of this client's token. The client itself goes on with the token."""
        request = Request("POST", "/session", b"{}")
        reply = await self._connection.send(request)
        told = self._connection.read(SessionAnswer, request, reply)
        cookie = _cookie(reply.headers.get_list("set-cookie"))
        if cookie is None or told.key is None or told.expires_in is None:
            raise BadAnswerError(f"{self._connection.url} made no session. Check that it is a Toolgate server.")
        return BrowserSession(account=told.account, cookie=cookie, key=told.key, expires_in=told.expires_in)

    async def sign_out(self, session: BrowserSession) -> None:
        """End a browser's session."""
        headers = {"Cookie": f"{COOKIE}={session.cookie}", "X-Toolgate-Key": session.key}
        request = Request("DELETE", "/session", headers=headers)
        self._connection.read(Done, request, await self._connection.send(request))

    async def ticket(self) -> TicketAnswer:
        """A ticket for one stream or socket of the project, for what can send no header. Valid once and soon."""
        return await self._connection.ask(TicketAnswer, "POST", self._path("tickets"), body={})

    async def health(self) -> Health:
        """Whether the process is alive."""
        return await self._connection.ask(Health, "GET", "/healthz", repeats=True)

    async def ready(self) -> Health:
        """Whether the server can serve; raises ServerError where it cannot."""
        return await self._connection.ask(Health, "GET", "/readyz")

    async def metrics(self) -> str:
        """The server's numbers in Prometheus form."""
        reply = await self._connection.send(Request("GET", "/metrics"), repeats=True)
        return reply.content.decode(errors="replace")


def _cookie(headers: list[str]) -> str | None:
    for header in headers:
        try:
            found = SimpleCookie(header).get(COOKIE)
        except CookieError:
            continue
        if found is not None:
            return found.value
    return None
