"""Signing in from a browser: a session in a cookie and a key, and tickets for what can send no header."""

from __future__ import annotations

from starlette.responses import Response

from toolgate.authority import Verb
from toolgate.interfaces.server import sessions
from toolgate.interfaces.server.identity import BROWSER
from toolgate.interfaces.server.operations import Ask, Operation, response_of
from toolgate.interfaces.server.problems import ProblemError
from toolgate.interfaces.server.tokens import new_token
from toolgate.ports.directory import TokenUse
from toolgate.wire.schemas import Body, Done
from toolgate.wire.session import SessionAnswer, TicketAnswer


class NoBody(Body):
    """Nothing need be said."""


async def sign_in(ask: Ask) -> Response:
    """Make a session of the bearer token that was shown."""
    token = ask.by.token
    if token is None or token.use is not TokenUse.BEARER:
        raise ProblemError(403, "not_allowed", "A session is made with a bearer token.")
    begun = await sessions.begin(ask.services, token)
    lifetime_s = ask.services.settings.session_ttl_s
    answer = SessionAnswer(account=token.account, kind=ask.by.account.kind.value, key=begun.key, expires_in=lifetime_s)
    response = response_of(201, answer)
    sessions.put_cookie(response, ask.services, begun.cookie, scope=ask.scope)
    return response


async def whoami(ask: Ask) -> SessionAnswer:
    account = ask.by.account
    return SessionAnswer(
        account=account.name,
        kind=account.kind.value,
        projects=[one.project for one in await sessions.memberships(ask.services, ask.by)],
    )


async def sign_out(ask: Ask) -> Response:
    token = ask.by.token
    if token is None or not ask.by.is_session:
        raise ProblemError(403, "not_allowed", "There is no session to end; a token is revoked by an admin.")
    await ask.services.directory.revoke(token.id, now=ask.services.now(), by=token.account)
    response = response_of(200, Done())
    sessions.drop_cookie(response, ask.services, scope=ask.scope)
    return response


async def ticket(ask: Ask) -> tuple[int, TicketAnswer]:
    """A ticket opens one stream or socket of this project, once and soon."""
    caller, services = ask.by, ask.services
    lifetime_s = services.settings.ticket_ttl_s
    own = caller.token
    text, made = new_token(
        caller.account.name,
        now=services.now(),
        use=TokenUse.TICKET,
        lifetime_s=lifetime_s,
        label=BROWSER if caller.is_session else "",
        projects=frozenset({ask.project}),
        abilities=None if own is None else own.abilities,
        parent=None if own is None else own.id,
    )
    await services.directory.put_token(made, by=caller.name)
    return 201, TicketAnswer(ticket=text, expires_in=lifetime_s)


OPERATIONS = (
    Operation(
        method="POST",
        path="/session",
        summary="Sign in a browser",
        handler=sign_in,
        body=NoBody,
        returns=SessionAnswer,
        status=201,
        tag="session",
    ),
    Operation(
        method="GET",
        path="/session",
        summary="Show who is signed in",
        handler=whoami,
        returns=SessionAnswer,
        tag="session",
    ),
    Operation(
        method="DELETE",
        path="/session",
        summary="Sign out a browser",
        handler=sign_out,
        returns=Done,
        tag="session",
    ),
    Operation(
        method="POST",
        path="/my/projects/{project_id}/tickets",
        summary="Make a ticket for one stream or socket",
        handler=ticket,
        verb=Verb.SIGN_IN,
        body=NoBody,
        returns=TicketAnswer,
        status=201,
        tag="session",
    ),
)
