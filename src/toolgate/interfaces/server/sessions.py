"""Sessions of browsers: begun with a token or a login link, kept in a cookie that no script can read, and in two keys.

The keys are told once, when the session begins: one for the scripts of a page, one for the path of pages without a
script. What a session may do takes the cookie and a key.

A login link carries a ticket behind the `#` of its address, which browsers send to nobody: the page posts it. It works
once, and soon. The session hangs on a bearer token, so revoking that token ends it.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from starlette.responses import Response
from starlette.types import Scope

from toolgate.interfaces.server.identity import COOKIE, PAGE_KEY, PATH_KEY, Caller
from toolgate.interfaces.server.services import Services
from toolgate.interfaces.server.shield import prefix_of
from toolgate.interfaces.server.tokens import new_token
from toolgate.kernel.context import SYSTEM_PROJECT
from toolgate.ports.directory import EVERY_PROJECT, HOST, Directory, Token, TokenUse

LINK = "login link"
"""The label of what may begin a session: a ticket without it opens a stream and no more."""
LINK_S = 600.0


class Membership(NamedTuple):
    """A project somebody can see, and what they may do in it."""

    project: str
    abilities: list[str]


class Begun(NamedTuple):
    """The secrets of a new session: the text of its cookie, and those of its keys."""

    cookie: str
    key: str
    path: str


async def begin(services: Services, token: Token) -> Begun:
    """Begin a session with what was shown."""
    now, lifetime_s = services.now(), services.settings.session_ttl_s
    cookie, session = new_token(
        token.account,
        now=now,
        use=TokenUse.SESSION,
        lifetime_s=lifetime_s,
        projects=token.projects,
        abilities=token.abilities,
        parent=token.parent or token.id,
    )
    await services.directory.put_token(session, by=token.account)
    keys = []
    for label in (PAGE_KEY, PATH_KEY):
        text, key = new_token(
            token.account, now=now, use=TokenUse.KEY, lifetime_s=lifetime_s, label=label, parent=session.id
        )
        await services.directory.put_token(key, by=token.account)
        keys.append(text)
    return Begun(cookie, *keys)


def put_cookie(response: Response, services: Services, text: str, *, scope: Scope) -> None:
    """Have the browser keep a session."""
    response.set_cookie(
        COOKIE,
        text,
        max_age=int(services.settings.session_ttl_s),
        path=prefix_of(scope) or "/",
        httponly=True,
        samesite="strict",
        secure=_is_https(services, scope["scheme"]),
    )


def drop_cookie(response: Response, services: Services, *, scope: Scope) -> None:
    """Have the browser forget its session."""
    is_secure = _is_https(services, scope["scheme"])
    response.delete_cookie(COOKIE, path=prefix_of(scope) or "/", httponly=True, samesite="strict", secure=is_secure)


def _is_https(services: Services, scheme: str) -> bool:
    return scheme == "https" or (services.settings.public_origin or "").startswith("https://")


async def login_link(
    directory: Directory, account: str, *, now: datetime, session_s: float, lifetime_s: float = LINK_S, by: str = HOST
) -> str:
    """Make a login link and return the part of its address after the origin: `/login#ticket=...`.

    The account must exist. The session it begins ends with the bearer token made here, after `session_s`.
    """
    _, bearer = new_token(account, now=now, lifetime_s=session_s, label=LINK)
    text, ticket = new_token(account, now=now, use=TokenUse.TICKET, lifetime_s=lifetime_s, label=LINK, parent=bearer.id)
    await directory.put_token(bearer, by=by)
    await directory.put_token(ticket, by=by)
    return f"/login#ticket={text}"


async def memberships(services: Services, caller: Caller, *, also: str = "") -> list[Membership]:
    """The projects the caller can see, by name. Who is of every project sees those anybody is in, and `also`."""
    names = {*caller.account.roles, *([also] if also else [])}
    if EVERY_PROJECT in caller.account.roles or not caller.account.roles:
        for account in await services.directory.accounts():
            names |= set(account.roles)
        names.add("default")
    found = [
        Membership(name, sorted(caller.abilities_in(name))) for name in sorted(names - {EVERY_PROJECT, SYSTEM_PROJECT})
    ]
    return [one for one in found if one.abilities]
