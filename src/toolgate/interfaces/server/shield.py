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
_PROBES = frozenset({"/healthz", "/readyz"})
"""Asked by machinery that knows only an address; they tell nothing."""


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
        host = origin = b""
        for name, value in scope["headers"]:
            if name == b"host":
                host = value
            elif name == b"origin":
                origin = value
        refused = self._refusal(scope, host.decode("latin-1").lower(), origin.decode("latin-1").lower())
        if refused is not None:
            await _refuse(refused, scope, receive, send)
            return
        if scope["type"] == "websocket":
            await self._app(scope, receive, send)
            return
        await self._app(scope, receive, _guarded(send))

    def _refusal(self, scope: Scope, host: str, origin: str) -> ProblemError | None:
        if scope["path"] in _PROBES:
            return None
        if not self._is_known(host):
            return ProblemError(421, "wrong_host", "This server does not answer to that host name; see allowed_hosts.")
        if origin and not self._is_ours(origin, host):
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


def _guarded(send: Send) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [*message["headers"], *SECURITY_HEADERS]
            if not any(name == b"cache-control" for name, _ in headers):
                headers.append(_NO_STORE)
            message["headers"] = headers
        await send(message)

    return guarded


async def _refuse(problem: ProblemError, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        await problem.response()(scope, receive, _guarded(send))
        return
    await receive()
    await send({"type": "websocket.close", "code": 4403, "reason": problem.code})
