"""What machinery asks: alive, ready, and the numbers."""

from __future__ import annotations

from starlette.responses import Response

from toolgate.errors import ToolgateError
from toolgate.interfaces.server.metrics import CONTENT_TYPE, render
from toolgate.interfaces.server.operations import Ask, Operation
from toolgate.interfaces.server.problems import ProblemError
from toolgate.kernel.context import SYSTEM_PROJECT
from toolgate.wire.schemas import Health


async def alive(_ask: Ask) -> Health:
    return Health(status="ok")


async def ready(ask: Ask) -> Health:
    """Whether requests can be served: the store answers and the server is not shutting down."""
    if ask.services.hub.is_draining:
        raise ProblemError(503, "draining", "The server is shutting down.")
    try:
        await ask.services.gate.events(project=SYSTEM_PROJECT, limit=1)
        await ask.services.directory.account("")
    except ToolgateError as error:
        raise ProblemError(503, error.code, "The store cannot be used now.") from None
    return Health(status="ready")


async def metrics(ask: Ask) -> Response:
    return Response(await render(ask.services), media_type=CONTENT_TYPE)


OPERATIONS = (
    Operation(
        method="GET",
        path="/healthz",
        summary="Is the process alive?",
        handler=alive,
        verb=None,
        returns=Health,
        tag="health",
    ),
    Operation(
        method="GET",
        path="/readyz",
        summary="Can it serve?",
        handler=ready,
        verb=None,
        returns=Health,
        problems=(503,),
        tag="health",
    ),
    Operation(
        method="GET",
        path="/metrics",
        summary="Numbers for Prometheus",
        handler=metrics,
        verb=None,
        media="text/plain",
        tag="health",
    ),
)
