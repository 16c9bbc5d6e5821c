"""The short way from a request to its operation: past the framework, whose layers cost every request and stream.

Whatever is not an operation of ours goes the long way, through FastAPI.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from toolgate.interfaces.server.shield import Shield


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


class Application(FastAPI):
    """A FastAPI application that serves our operations the short way."""

    paths: Paths
    shield: Shield | None = None
    """Set where the short way is open: then it checks what the middleware otherwise would."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.shield is not None and scope["type"] == "http":
            found = self.paths.find(scope["method"], scope["path"])
            if found is not None:
                refused = self.shield.refusal(scope)
                if refused is None:
                    endpoint, scope["path_params"] = found
                    await endpoint(scope, receive, send)
                    return
        await super().__call__(scope, receive, send)
