"""The server as an ASGI application: operations, streams and the socket behind one shield."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache

import orjson
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute

from toolgate.adapters.runners.client import ClientRunner
from toolgate.errors import UsageError
from toolgate.gate import Gate
from toolgate.interfaces import console
from toolgate.interfaces.server.dispatch import Application, Paths
from toolgate.interfaces.server.hosting import ChatHost
from toolgate.interfaces.server.openapi import document
from toolgate.interfaces.server.operations import Endpoint
from toolgate.interfaces.server.problems import NOTHING_HERE, ProblemError
from toolgate.interfaces.server.routes import OPERATIONS
from toolgate.interfaces.server.services import Services, close
from toolgate.interfaces.server.settings import ServerSettings
from toolgate.interfaces.server.shield import Shield
from toolgate.interfaces.server.socket import SocketEndpoint
from toolgate.kernel.tool import Placement
from toolgate.ports.agent import Agent, ResidentAgent
from toolgate.ports.directory import Directory

SENT_HEADERS = ["Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID", "X-Toolgate-Key"]


def create_app(
    gate: Gate,
    directory: Directory,
    *,
    settings: ServerSettings | None = None,
    agent: Agent | ResidentAgent | None = None,
    owns_gate: bool = False,
) -> Application:
    """Return the server of a gate. With `owns_gate`, gate and directory are closed with it; a resident agent always is.

    Routes of your own can be added to what is returned, as to any Starlette application. Where it is mounted in another
    application, that one runs `async with app.running()` in its lifespan: mounting alone does not start it.
    """
    clients = gate.host.runner(Placement.CLIENT)
    if not isinstance(clients, ClientRunner):
        raise UsageError(
            "The server needs a gate with a client runner: open it with runners={'client': ClientRunner()}."
        )
    settings = settings or ServerSettings()
    services = Services(gate=gate, directory=directory, settings=settings, clients=clients, agent=agent)
    middleware = [Middleware(Shield, settings=settings)]
    if settings.allowed_origins:
        middleware.append(
            Middleware(
                CORSMiddleware,
                allow_origins=list(settings.allowed_origins),
                allow_methods=["GET", "POST", "PUT", "DELETE"],
                allow_headers=SENT_HEADERS,
            )
        )

    @asynccontextmanager
    async def lifespan(app: Application) -> AsyncIterator[None]:
        if isinstance(agent, ResidentAgent):
            await agent.begin(ChatHost(services))
        app.is_running = True
        yield
        app.is_running = False
        await close(services)
        if isinstance(agent, ResidentAgent):
            await agent.close()
        if owns_gate:
            await gate.aclose()
            await directory.close()

    app = Application(lifespan=lifespan, middleware=middleware, exception_handlers={HTTPException: _http_problem})
    app.prefix = settings.root_path
    app.state.services = services
    app.paths = Paths()
    for operation in OPERATIONS:
        endpoint = Endpoint(operation, services)
        app.paths.add(operation.method, operation.path, endpoint)
        app.router.routes.append(Route(operation.path, endpoint, methods=[operation.method]))
    if not settings.allowed_origins:  # answers to foreign pages need the middleware
        app.shield = Shield(app, settings=settings)
    app.router.routes.append(WebSocketRoute("/ws", SocketEndpoint(services)))
    app.router.routes.append(Route("/openapi.json", _openapi))
    console.mount(app, services)
    return app


@cache  # it is the same for every server of this process, and costs more than the rest of starting one
def _described() -> bytes:
    return orjson.dumps(document(OPERATIONS), option=orjson.OPT_INDENT_2)


async def _openapi(_request: Request) -> Response:
    return Response(await asyncio.to_thread(_described), media_type="application/json")


async def _http_problem(_request: Request, error: Exception) -> Response:
    """What the router itself refuses, in the shape of every other problem."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        allowed = dict(error.headers or {})
        return ProblemError(
            405, "method_not_allowed", "This path does not take this method.", headers=allowed
        ).response()
    return ProblemError(error.status_code, "not_found", NOTHING_HERE).response()


async def drain(app: Application) -> None:
    """Begin to shut down: no new streams, open ones end, waiting calls are answered with where they stand."""
    services: Services = app.state.services
    services.hub.drain()
