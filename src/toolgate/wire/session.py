"""What the wire looks like for signing in: sessions and tickets."""

from __future__ import annotations

from pydantic import Field

from toolgate.wire.schemas import Answer


class TicketAnswer(Answer):
    success: bool = True
    ticket: str
    expires_in: float


class SessionAnswer(Answer):
    """Who is signed in. `key` goes into the header `X-Toolgate-Key` of requests made with the cookie; told once."""

    success: bool = True
    account: str
    kind: str
    key: str | None = None
    expires_in: float | None = None
    projects: list[str] = Field(default_factory=list, description="`GET` alone: the projects the account can see.")
