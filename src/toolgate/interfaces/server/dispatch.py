"""The short way from a request to its operation: past the framework, whose layers cost every request and stream.

Whatever is not an operation of ours goes the long way, through the routes and middleware of Starlette.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from toolgate.interfaces.server.problems import ProblemError
from toolgate.interfaces.server.shield import Shield, own_path, refuse


class Paths:
    """Operations by method and path. A word of the path beats a parameter in its place."""

    def __init__(self) -> None:
        self._root: dict[Any, Any] = {}

    def add(self, method: str, path: str, endpoint: ASGIApp) -> None:
        node, names = self._root, []
        for part in path.split("/")[1:]:
            is_name = part.startswith("{")
            names += [part[1:-1]] if is_name else []
            node = node.setdefault(None if is_name else part, {})
        node.setdefault("/", {})[method] = (endpoint, tuple(names))  # no part of a path holds a slash

    def find(self, method: str, path: str) -> tuple[ASGIApp, dict[str, str]] | None:
        """Return the endpoint of a request and the path's parameters; None where there is none."""
        values: list[str] = []
        node = self._root
        for part in path.split("/")[1:]:
            found = node.get(part)
            if found is None:
                found = node.get(None)
                values.append(part)
            if found is None or not part:
                return None
            node = found
        endpoint = node.get("/", {}).get(method)
        return None if endpoint is None else (endpoint[0], dict(zip(endpoint[1], values, strict=True)))


class Application(Starlette):
    """A Starlette application that serves our operations the short way.

    It may be mounted in another one or served under a prefix: a request's `root_path` stands before our own paths.
    """

    paths: Paths
    prefix = ""
    """What stands before our own paths where a proxy serves us so, whether it takes that away or not."""
    shield: Shield | None = None
    """Set where the short way is open: then it checks what the middleware otherwise would."""
    is_running = False
    """Whether it was started, by its server or by `running`."""

    def running(self) -> AbstractAsyncContextManager[Any]:
        """Start it, and end it with the block: for the lifespan of an application it is mounted in."""
        return self.router.lifespan_context(self)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan" and not self.is_running:
            await refuse(_NOT_STARTED, scope, receive, send)
            return
        if self.prefix:
            scope["root_path"] = self.prefix
        if self.shield is not None and scope["type"] == "http":
            found = self.paths.find(scope["method"], own_path(scope))
            if found is not None:
                refused = self.shield.refusal(scope)
                if refused is None:
                    endpoint, scope["path_params"] = found
                    await endpoint(scope, receive, send)
                    return
        await super().__call__(scope, receive, send)


_NOT_STARTED = ProblemError(
    503,
    "not_started",
    "This application was not started: an application it is mounted in must run `async with toolgate_app.running()` "
    "in its own lifespan.",
)
