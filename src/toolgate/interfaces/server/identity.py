"""Who is asking: a bearer token, a session's cookie and key, a ticket or a JWT becomes a caller with abilities.

A browser sends a cookie to every port of a host, so that whoever serves one of them has it. So a cookie alone says who
sits there, and no more: what reads or changes anything takes the session's key as well, which a browser keeps for the
pages of one origin.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from http.cookies import CookieError, SimpleCookie
from typing import Protocol

from toolgate import authority
from toolgate.authority import Verb
from toolgate.errors import NotAllowedError, NotFoundError
from toolgate.interfaces.server.limits import Limit
from toolgate.interfaces.server.problems import ProblemError, problem_of
from toolgate.interfaces.server.tokens import PREFIX, digest_of
from toolgate.kernel.call import Call
from toolgate.kernel.context import SYSTEM_PROJECT, Context, Principal, PrincipalKind
from toolgate.ports.directory import Ability, Account, Directory, Token, TokenUse

COOKIE = "toolgate_session"
KEY_HEADER = b"x-toolgate-key"
PAGE_KEY, PATH_KEY = "page", "path"
"""The labels of a session's keys: of the one a script sends in a header, and of the one in the path of other pages."""
BROWSER = "browser"
"""The label of a ticket that a session made."""
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
Headers = dict[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who signed in. `token` is None for a JWT. One who `is_bare` showed a session's cookie and no key."""

    account: Account
    token: Token | None = None
    is_bare: bool = False

    def abilities_in(self, project: str) -> frozenset[Ability]:
        """What the caller may do there: the account's abilities, narrowed by the token. Nothing for a stranger."""
        token = self.token
        if token is not None and token.projects is not None and project not in token.projects:
            return frozenset()
        if project == SYSTEM_PROJECT and self.account.kind is not PrincipalKind.ADMIN:
            return frozenset()
        able = self.account.abilities_in(project)
        return able if token is None or token.abilities is None else able & token.abilities

    @property
    def name(self) -> str:
        return self.account.name

    @property
    def is_session(self) -> bool:
        return self.token is not None and self.token.use is TokenUse.SESSION

    def principal_in(self, project: str) -> Principal:
        return self.account.principal_in(project)

    def check(self, project: str, verb: Verb, call: Call | None = None) -> Principal:
        """Return the caller as a principal of this project; a stranger gets 404, one who may not gets 403."""
        try:
            return authority.check(verb, self, project, call)
        except (NotFoundError, NotAllowedError) as error:
            raise problem_of(error) from None

    def context(
        self,
        project: str,
        *,
        session_id: str | None,
        run_id: str | None,
        behavior: str | None,
        step_id: str | None = None,
    ) -> Context:
        """Who asks for a call, and in which behavior: what a person's client says, or what an agent may be in.

        What an agent says of itself is its claim; NotAllowedError where its account is in no such behavior.
        """
        if self.account.kind is PrincipalKind.AGENT:
            behavior = authority.behavior_of(self.principal_in(project), behavior)
        maker = self.maker(project, session_id=session_id, run_id=run_id)
        return replace(maker, behavior=behavior, step_id=step_id)

    def maker(self, project: str, *, session_id: str | None = None, run_id: str | None = None) -> Context:
        """Who the caller's calls are made by, in no behavior: to compare with, and nothing is asked for with it.

        What a person's client asks is asked by an agent of that person, who may then decide.
        """
        account = self.account
        is_human = account.kind in (PrincipalKind.PERSON, PrincipalKind.ADMIN)
        return Context(
            principal=f"agent:{account.name}" if is_human else account.name,
            user=account.name if is_human else account.acts_for,
            roles=account.roles_in(project) or frozenset(),
            project=project,
            session_id=session_id,
            run_id=run_id,
            claimed=account.kind is PrincipalKind.AGENT,
        )


class JwtReader(Protocol):
    """Checks a JWT and returns the name of its account, or None."""

    async def account_of(self, text: str) -> str | None: ...


class Authenticator:
    """Finds the caller of a request. Whoever shows nothing valid is told nothing but that."""

    def __init__(
        self,
        directory: Directory,
        *,
        failures: Limit,
        jwt: JwtReader | None = None,
        cookie_suffices: bool = False,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._directory = directory
        self._failures = failures
        self._jwt = jwt
        self._cookie_suffices = cookie_suffices
        self._now = now

    async def caller(
        self,
        headers: Headers,
        *,
        method: str,
        address: str,
        ticket: str | None = None,
        takes_bare: bool = False,
        spend: bool = True,
    ) -> Caller:
        """Return who asks; raise the 401 or 429 that answers who does not say.

        Who shows a session's cookie alone is returned where that `takes_bare`, and refused elsewhere. A ticket that is
        only looked at, without `spend`, can be shown again.
        """
        found = await self._find(headers, method, ticket, spend)
        if found is None:
            # Only failures count: others who share an address, behind a proxy, must not suffer for one who guesses.
            wait = await self._failures.take(address)
            if wait:
                raise too_many(wait)
            raise ProblemError(
                401,
                "not_signed_in",
                "A valid token is needed: `Authorization: Bearer TOKEN`, made with `toolgate token create`.",
                headers={"WWW-Authenticate": 'Bearer realm="toolgate"'},
            )
        if found.is_bare and not takes_bare:
            raise key_needed()
        return found

    async def _find(self, headers: Headers, method: str, ticket: str | None, spend: bool) -> Caller | None:
        shown = headers.get(b"authorization")
        if shown is not None:
            return await self._bearer(shown.decode("latin-1"))
        if ticket is not None:
            found = await self._token(ticket, TokenUse.TICKET, spend=spend)
            if found is not None:
                _check_page(found, headers)
            return found
        cookie = _cookie(headers)
        found = None if cookie is None else await self._token(cookie, TokenUse.SESSION)
        if found is None:
            return None
        key = headers.get(KEY_HEADER)
        if key is not None and await self.has_key(found, key.decode("latin-1"), PAGE_KEY):
            return found
        is_enough = self._cookie_suffices and (method in _SAFE or _is_own_page(headers))
        return found if is_enough else replace(found, is_bare=True)

    async def has_key(self, caller: Caller, text: str, label: str) -> bool:
        """Whether this is the key of that name of the caller's session."""
        found = await self._token(text, TokenUse.KEY)
        shown = None if found is None else found.token
        session = caller.token
        return shown is not None and session is not None and (shown.parent, shown.label) == (session.id, label)

    async def _bearer(self, header: str) -> Caller | None:
        scheme, _, text = header.partition(" ")
        text = text.strip()
        if scheme.lower() != "bearer":
            return None
        if text.startswith(PREFIX):
            return await self._token(text, TokenUse.BEARER)
        name = await self._jwt.account_of(text) if self._jwt is not None else None
        account = await self._directory.account(name) if name is not None else None
        return None if account is None else Caller(account)

    async def _token(self, text: str, use: TokenUse, *, spend: bool = False) -> Caller | None:
        found = await self._directory.find(digest_of(text), now=self._now(), spend=spend)
        if found is None or found[0].use is not use:
            return None
        return Caller(found[1], found[0])


def too_many(wait_s: float) -> ProblemError:
    return ProblemError(
        429,
        "rate_limited",
        f"Too many requests; try again in {wait_s:.1f} s.",
        headers={"Retry-After": f"{wait_s:.0f}"},
    )


def _cookie(headers: Headers) -> str | None:
    shown = headers.get(b"cookie")
    if shown is None:
        return None
    try:
        found = SimpleCookie(shown.decode("latin-1")).get(COOKIE)
    except CookieError:
        return None
    return None if found is None else found.value


def key_needed() -> ProblemError:
    return ProblemError(
        401,
        "key_needed",
        "A session's cookie alone is not enough: send the session's `key` in the header `X-Toolgate-Key`, or a ticket "
        "where no header can be sent. A page that has lost its key signs in again.",
    )


def _is_own_page(headers: Headers) -> bool:
    """Whether a browser vouches that a page of ours asks. The shield has refused foreign origins already."""
    return headers.get(b"sec-fetch-site", b"same-origin" if b"origin" in headers else b"") == b"same-origin"


def _check_page(caller: Caller, headers: Headers) -> None:
    """A ticket that a page's session made is for that page: no other program need know it."""
    if caller.token is not None and caller.token.label == BROWSER and not _is_own_page(headers):
        raise ProblemError(403, "wrong_origin", "This ticket is for the page that asked for it, in its own origin.")
