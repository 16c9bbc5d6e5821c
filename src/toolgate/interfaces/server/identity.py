"""Who is asking: a bearer token, a session cookie, a ticket or a JWT becomes a caller with abilities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from http.cookies import CookieError, SimpleCookie
from typing import Protocol

from toolgate import authority
from toolgate.authority import Verb
from toolgate.errors import NotAllowedError, NotFoundError
from toolgate.interfaces.server.limits import Limit
from toolgate.interfaces.server.problems import ProblemError, problem_of
from toolgate.interfaces.server.tokens import PREFIX, digest_of, is_csrf_of
from toolgate.kernel.call import Call
from toolgate.kernel.context import SYSTEM_PROJECT, Context, Principal, PrincipalKind
from toolgate.ports.directory import Ability, Account, Directory, Token, TokenUse

COOKIE = "toolgate_session"
CSRF_HEADER = b"x-toolgate-csrf"
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
Headers = dict[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who signed in. `token` is None for a JWT; `session` is the text of a session's cookie."""

    account: Account
    token: Token | None = None
    session: str | None = None

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

    def principal_in(self, project: str) -> Principal:
        return self.account.principal_in(project)

    def check(self, project: str, verb: Verb, call: Call | None = None) -> Principal:
        """Return the caller as a principal of this project; a stranger gets 404, one who may not gets 403."""
        try:
            return authority.check(verb, self, project, call)
        except (NotFoundError, NotAllowedError) as error:
            raise problem_of(error) from None

    def context(self, project: str, *, session_id: str | None, run_id: str | None, behavior: str | None) -> Context:
        """Who asks for a call. What a person's client asks is asked by an agent of that person, who may then decide.

        What an agent says of itself is its claim.
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
            behavior=behavior,
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
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._directory = directory
        self._failures = failures
        self._jwt = jwt
        self._now = now

    async def caller(self, headers: Headers, *, method: str, address: str, ticket: str | None = None) -> Caller:
        """Return who asks; raise the 401 or 429 that answers who does not say."""
        found = await self._find(headers, method, ticket)
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
        return found

    async def _find(self, headers: Headers, method: str, ticket: str | None) -> Caller | None:
        shown = headers.get(b"authorization")
        if shown is not None:
            return await self._bearer(shown.decode("latin-1"))
        if ticket is not None:
            return await self._token(ticket, TokenUse.TICKET)
        session = _cookie(headers)
        if session is None:
            return None
        found = await self._token(session, TokenUse.SESSION)
        if found is not None and method not in _SAFE:
            _check_csrf(headers, session)
        return found

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

    async def _token(self, text: str, use: TokenUse) -> Caller | None:
        found = await self._directory.find(digest_of(text), now=self._now(), spend=use is TokenUse.TICKET)
        if found is None or found[0].use is not use:
            return None
        return Caller(found[1], found[0], text if use is TokenUse.SESSION else None)


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


def _check_csrf(headers: Headers, session: str) -> None:
    """A cookie is sent by the browser, whoever made the page: what changes something must come from our own page.

    Either the page read the session's CSRF value and sends it, or the browser itself vouches for the page's origin.
    """
    if headers.get(b"sec-fetch-site") == b"same-origin":
        return
    if not is_csrf_of(headers.get(CSRF_HEADER, b"").decode("latin-1"), session):
        raise ProblemError(403, "csrf", "Send the session's `csrf` value in the header `X-Toolgate-CSRF`.")
