"""The shell of the console and its sign-in pages, written by Jinja with everything escaped.

A session begins on a page that hands over its key: a script puts it where only pages of this origin find it, and who
runs no script goes on to pages whose path holds one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import orjson
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from toolgate.interfaces.console.assets import Assets
from toolgate.interfaces.server import sessions
from toolgate.interfaces.server.identity import COOKIE, PAGE_KEY, Caller, too_many
from toolgate.interfaces.server.operations import read_body
from toolgate.interfaces.server.problems import ProblemError
from toolgate.interfaces.server.services import Services
from toolgate.interfaces.server.shield import prefix_of
from toolgate.kernel.text.rendering import reveal

TEMPLATES = Path(__file__).parent / "templates"
MAX_FORM_BYTES = 64 * 1024
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Nothing to other sites; with `no-referrer` a form's own origin would be hidden from the shield as well.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), payment=()",
    "Cache-Control": "no-store",
}
SECRET_HEADERS = {**HEADERS, "Referrer-Policy": "no-referrer"}
"""Of pages whose path is a secret."""


class Pages:
    """Pages of the console that are not about one approval."""

    def __init__(self, services: Services, assets: Assets) -> None:
        self.services = services
        self._assets = assets
        self._templates = Environment(
            loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True
        )
        self._templates.filters["seen"] = lambda text: reveal(text).text

    def page(
        self,
        request: Request,
        template: str,
        *,
        status: int = 200,
        headers: Mapping[str, str] = HEADERS,
        **values: Any,
    ) -> Response:
        """Return a page with the headers every page of the console has."""
        prefix = prefix_of(request.scope)
        text = self._templates.get_template(template).render(prefix=prefix, base=prefix + self._assets.base, **values)
        return Response(text, status, headers, "text/html")

    async def caller(self, request: Request) -> Caller | None:
        """Who the cookie is of, which alone says no more than that; None where nobody is signed in."""
        if COOKIE not in request.cookies:
            return None
        headers = {b"cookie": request.headers.get("cookie", "").encode("latin-1")}
        try:
            caller = await self.services.authenticator.caller(
                headers, method="GET", address=address_of(request), takes_bare=True
            )
        except ProblemError as problem:
            if problem.status == 401:
                return None
            raise
        wait = await self.services.requests.take(caller.account.name)
        if wait:
            raise too_many(wait)
        return caller

    def problem(
        self, request: Request, problem: ProblemError, *, home: str = "/", headers: Mapping[str, str] = HEADERS
    ) -> Response:
        """A page that says what is not possible, and why, and leads back."""
        return self.page(
            request, "problem.html", status=problem.status, headers=headers, home=home, problem=problem.detail
        )

    async def shell(self, request: Request) -> Response:
        """The page everything else is drawn on; who is not signed in is sent to do so."""
        try:
            caller = await self.caller(request)
        except ProblemError as problem:
            return self.problem(request, problem)
        if caller is None:
            return going_to(request, "/login" + (f"?{request.url.query}" if request.url.query else ""))
        project = request.query_params.get("project", "")
        told = {
            "account": caller.account.name,
            "kind": caller.account.kind.value,
            "projects": [
                {"project_id": name, "abilities": abilities}
                for name, abilities in await sessions.memberships(self.services, caller, also=project)
            ],
        }
        return self.page(request, "shell.html", told=orjson.dumps(told).decode(), modules=self._assets.modules)

    async def login(self, request: Request) -> Response:
        return self._login(request, project=request.query_params.get("project", ""))

    def _login(self, request: Request, *, status: int = 200, **values: Any) -> Response:
        return self.page(
            request, "login.html", status=status, **{"problem": None, "project": "", "leaves": "", **values}
        )

    async def whose(self, request: Request) -> Response:
        """Tell the page that was opened by a login link whom it would sign in, and whose session that would end."""
        try:
            form = await form_of(request)
            link = await self._shown(form.get("token", "").strip(), address_of(request), spend=False)
            leaves = await self._other(request, link)
        except ProblemError as problem:
            return problem.response()
        told = {"account": reveal(link.name).text, "leaves": "" if leaves is None else leaves.name}
        return Response(orjson.dumps(told), 200, HEADERS, "application/json")

    async def sign_in(self, request: Request) -> Response:
        """Begin a session with a token or the ticket of a login link.

        Somebody else's on this browser is ended only if the form says whose.
        """
        project = ""
        try:
            form = await form_of(request)
            project = form.get("project", "")
            text, address = form.get("token", "").strip(), address_of(request)
            caller = await self._shown(text, address, spend=False)
            other = await self._other(request, caller)
            if other is not None and form.get("leaves") != other.name:
                told = (
                    f"{reveal(other.name).text} is signed in here, and what you gave is {reveal(caller.name).text}'s. "
                    "Give it once more to sign the one out and the other in."
                )
                return self._login(request, status=409, problem=told, project=project, leaves=other.name)
            caller = await self._shown(text, address, spend=True)
            was = await self.caller(request)
        except ProblemError as problem:
            why = "That token is not valid. It may be mistyped, expired or revoked; a login link works once."
            told = why if problem.status == 401 else problem.detail
            return self._login(request, status=problem.status, problem=told, project=project)
        assert caller.token is not None
        if was is not None and was.token is not None and await self._has_key(was, form.get("key", "")):
            await self.services.directory.revoke(was.token.id, now=self.services.now(), by=was.name)
        begun = await sessions.begin(self.services, caller.token)
        query = f"?{urlencode({'project': project})}" if project else ""
        response = self.page(request, "signed_in.html", key=begun.key, path=begun.path, query=query)
        sessions.put_cookie(response, self.services, begun.cookie, scope=request.scope)
        return response

    async def _has_key(self, caller: Caller, text: str) -> bool:
        """A cookie alone does not end its session; a page without a script leaves it to run out."""
        return bool(text) and await self.services.authenticator.has_key(caller, text, PAGE_KEY)

    async def _other(self, request: Request, caller: Caller) -> Caller | None:
        """Who else is signed in on this browser."""
        was = await self.caller(request)
        return was if was is not None and was.name != caller.name else None

    async def _shown(self, text: str, address: str, *, spend: bool) -> Caller:
        """Find whose token or login ticket was shown; raise the 401 of who shows neither."""
        authenticator = self.services.authenticator
        _, mark, ticket = text.rpartition("ticket=")
        if mark:
            caller = await authenticator.caller({}, method="POST", address=address, ticket=ticket, spend=spend)
            is_valid = caller.token is not None and caller.token.label == sessions.LINK
        else:
            headers = {b"authorization": f"Bearer {text}".encode()}
            caller = await authenticator.caller(headers, method="POST", address=address)
            is_valid = caller.token is not None  # a JWT begins no session
        if not is_valid:
            raise ProblemError(401, "not_signed_in", "This does not start a session.")
        return caller


async def form_of(request: Request) -> dict[str, str]:
    """Return the fields of a form that was sent."""
    raw = await read_body(dict(request.headers.raw), request.receive, MAX_FORM_BYTES)
    try:
        return dict(parse_qsl(raw.decode(), keep_blank_values=True, max_num_fields=50, strict_parsing=bool(raw)))
    except ValueError:
        raise ProblemError(400, "invalid_request", "The form cannot be read; load the page again.") from None


def going_to(request: Request, path: str, *, headers: Mapping[str, str] = HEADERS) -> RedirectResponse:
    """Send the browser to another page of the console."""
    return RedirectResponse(prefix_of(request.scope) + path, 303, dict(headers))


def address_of(request: Request) -> str:
    return request.client.host if request.client is not None else ""
