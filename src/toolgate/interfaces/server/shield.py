"""What every request passes before anything else: is it for this host, from a page we know, and while we serve?

Pure ASGI. Adds the security headers to every answer.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolgate.interfaces.server.problems import ProblemError
from toolgate.interfaces.server.settings import ServerSettings

SECURITY_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'"),
]
_NO_STORE = (b"cache-control", b"no-store")
SECRET_PAGES = "/pages/"
_PROBES = frozenset({"/healthz", "/readyz"})
"""Asked by machinery that knows only an address; they tell nothing."""


def own_path(scope: Scope) -> str:
    """The path of a request as our own routes know it: without what the application is mounted or served under."""
    path: str = scope["path"]
    prefix: str = scope.get("root_path", "")
    return path[len(prefix) :] if prefix and path.startswith(f"{prefix}/") else path


def prefix_of(scope: Scope) -> str:
    """What browsers put before our own paths: nothing, or what the application is mounted or served under."""
    prefix = str(scope.get("root_path", "")).strip("/")
    return f"/{prefix}" if prefix else ""  # one slash: two would lead a browser to another host


class Shield:
    """Refuses foreign hosts and origins, and adds security headers."""

    def __init__(self, app: ASGIApp, *, settings: ServerSettings) -> None:
        self._app = app
        self._hosts = settings.hosts
        self._origins = frozenset(origin.lower().rstrip("/") for origin in settings.allowed_origins)
        self._public = None if settings.public_origin is None else settings.public_origin.lower().rstrip("/")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        refused = self.refusal(scope)
        if refused is not None:
            await refuse(refused, scope, receive, send)
        elif scope["type"] == "websocket":
            await self._app(scope, receive, send)
        else:
            await self._app(scope, receive, _guarded(send))

    def refusal(self, scope: Scope) -> ProblemError | None:
        """Why a request is not served here, whatever it asks; None where it may go on."""
        if own_path(scope) in _PROBES:
            return None
        shown = b""
        origin = b""
        for name, value in scope["headers"]:
            if name == b"host":
                shown = value
            elif name == b"origin":
                origin = value
        host = shown.decode("latin-1").lower()
        if not self._is_known(host):
            return ProblemError(421, "wrong_host", "This server does not answer to that host name; see allowed_hosts.")
        # Pages without a script tell nobody where they are, and a browser then keeps their origin back as well: what
        # they send is proved by the secret in their path.
        is_secret_page = origin == b"null" and scope["type"] == "http" and own_path(scope).startswith(SECRET_PAGES)
        if origin and not is_secret_page and not self._is_ours(origin.decode("latin-1").lower(), host):
            return ProblemError(403, "wrong_origin", "Pages of that origin may not use this server.")
        return None

    def _is_known(self, host: str) -> bool:
        if host in self._hosts:
            return True
        name, _, port = host.rpartition(":")
        return bool(name) and port.isdigit() and name in self._hosts

    def _is_ours(self, origin: str, host: str) -> bool:
        if origin in self._origins or origin == self._public:
            return True
        parts = urlsplit(origin)
        return parts.scheme in ("http", "https") and parts.netloc == host


def secured(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return an answer's headers with those every answer has."""
    is_kept = False
    for name, _ in headers:
        if name == b"x-content-type-options":
            return headers
        is_kept |= name == b"cache-control"
    return [*headers, *SECURITY_HEADERS] if is_kept else [*headers, *SECURITY_HEADERS, _NO_STORE]


def _guarded(send: Send) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = secured(list(message["headers"]))
        await send(message)

    return guarded


async def refuse(problem: ProblemError, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request, or the beginning of a socket, with a problem."""
    if scope["type"] == "http":
        await problem.response()(scope, receive, _guarded(send))
        return
    await receive()
    await send({"type": "websocket.close", "code": 4403, "reason": problem.code})
