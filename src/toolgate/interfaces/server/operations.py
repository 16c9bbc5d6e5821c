"""One operation of the API: who may do it, what goes in and out; and how a request becomes its answer.

Operations are plain Starlette routes; `openapi.py` describes them from the same table.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any

import orjson
from pydantic import BaseModel, ValidationError
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from toolgate.authority import RIGHTS, Verb
from toolgate.errors import InvalidIdError, ToolgateError, ToolInputError
from toolgate.interfaces.server.idempotency import fingerprint_of, key_of
from toolgate.interfaces.server.identity import Caller, Headers, too_many
from toolgate.interfaces.server.problems import ProblemError, problem_of, unexpected
from toolgate.interfaces.server.shield import secured
from toolgate.kernel.call import Call
from toolgate.kernel.context import Principal
from toolgate.kernel.payload import LARGE
from toolgate.kernel.text.canonical import Limits, parse_strict
from toolgate.pipeline.lane import aside
from toolgate.wire.ids import check_path, fault_in
from toolgate.wire.schemas import Body, Query

if TYPE_CHECKING:
    from toolgate.interfaces.server.services import Services

MAX_DEPTH = 128
BODY_S = 30.0
"""How long a client may take to send the next part of its body."""
BODY_BYTES_PER_S = 8192
"""How much of a body must have come for each further second that it takes."""
SWALLOWED = 2**20
"""How much of a body that is too large is read and thrown away."""


@dataclass(slots=True)
class Ask:
    """One request on its way to its answer. `principal` is the caller in the project the path names."""

    services: Services
    scope: Scope
    headers: Headers
    params: dict[str, str]
    verb: Verb | None = None
    caller: Caller | None = None
    principal: Principal | None = None
    body: Any = None
    query: Any = None
    body_digest: bytes = b""
    """Of the body as it was sent, where the request has an `Idempotency-Key`."""

    @property
    def project(self) -> str:
        return self.params["project_id"]

    @property
    def who(self) -> Principal:
        assert self.principal is not None, "only operations with a verb ask who"
        return self.principal

    @property
    def by(self) -> Caller:
        assert self.caller is not None, "only operations that need a caller ask for one"
        return self.caller

    async def call(self) -> Call:
        """The call the path names, if the operation may be done to it by who asks."""
        found = await self.services.gate.calls.get(self.params["tool_id"], project=self.project)
        if self.verb is not None:
            self.by.check(self.project, self.verb, found)
        return found


Handler = Callable[[Ask], Awaitable[Any]]
Stream = Callable[[Ask, Receive, Send], Awaitable[None]]


def strict_json(raw: bytes, limit: int) -> Any:
    """Read a body as strictly as arguments are: no duplicate keys, no numbers others would round."""
    return parse_strict(raw, limits=Limits(max_bytes=max(limit, 1), max_depth=MAX_DEPTH))


def plain_json(raw: bytes, _limit: int) -> Any:
    """Read a body with its numbers as they are: what a client's tool gave is not for us to judge."""
    return orjson.loads(raw)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """`verb` None: nobody need sign in. A path without a project asks only that somebody did.

    `handler` returns a model, a (status, model) pair or a response; `stream` speaks ASGI itself. `also` are
    the further statuses a success can have. `takes_bare`: a session's cookie is enough, for what is no secret.
    """

    method: str
    path: str
    summary: str
    handler: Handler | None = None
    stream: Stream | None = None
    verb: Verb | None = Verb.READ
    body: type[Body] | None = None
    query: type[Query] | None = None
    returns: type[BaseModel] | None = None
    status: int = 200
    also: tuple[int, ...] = ()
    parse: Callable[[bytes, int], Any] = strict_json
    takes_ticket: bool = False
    takes_bare: bool = False
    tag: str = "project"
    media: str = "application/json"
    problems: tuple[int, ...] = field(default=())

    @property
    def ability(self) -> str:
        """The ability it takes, as the description of the API names it."""
        return "none" if self.verb is None else RIGHTS[self.verb].ability.value


class Endpoint:
    """Serves one operation as an ASGI application."""

    def __init__(self, operation: Operation, services: Services) -> None:
        self.operation = operation
        self._services = services
        self._seconds = services.metrics.seconds.labels(operation.path)
        self._counts: dict[int, Any] = {}

    def _count(self, status: int, seconds: float) -> None:
        count = self._counts.get(status)
        if count is None:
            count = self._counts[status] = self._services.metrics.requests.labels(self.operation.path, status)
        count.inc()
        self._seconds.observe(seconds)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        operation, began = self.operation, perf_counter()
        try:
            if operation.stream is not None:
                await operation.stream(await self._admit(scope), receive, send)
                return
            ask = await self._admit(scope)
            key = key_of(ask.headers) if operation.method == "POST" and ask.caller is not None else None
            if operation.body is not None:
                ask.body = await self._body(ask, receive, is_keyed=key is not None)
            response = await (self._handled(ask) if key is None else self._once(ask, key))
        except ProblemError as error:
            response = error.response()
        except ToolgateError as error:
            response = problem_of(error).response()
        except Exception as error:  # noqa: BLE001  # the edge of the process: told without its text
            response = unexpected(error, f"{operation.method} {operation.path}").response()
        self._count(response.status_code, perf_counter() - began)
        await reply(response, send)

    async def _handled(self, ask: Ask) -> Response:
        assert self.operation.handler is not None
        return response_of(self.operation.status, await self.operation.handler(ask))

    async def _once(self, ask: Ask, key: str) -> Response:
        """Answer a request with a key: a refusal is an answer like any other, and is given again too."""

        async def run() -> Response:
            try:
                return await self._handled(ask)
            except ProblemError as error:
                return error.response()
            except ToolgateError as error:
                return problem_of(error).response()

        fingerprint = fingerprint_of(ask, makes_credentials=self.operation.tag == "session")
        return await self._services.repeats.once(ask.by.account.name, key, fingerprint, run)

    async def _admit(self, scope: Scope) -> Ask:
        """Find out who asks, whether they may and what for; everything is refused before the body is read."""
        operation, services = self.operation, self._services
        headers: Headers = dict(scope["headers"])
        ask = Ask(services, scope, headers, scope.get("path_params", {}), operation.verb)
        if operation.verb is not None:
            query = _query_text(scope) if operation.takes_ticket or operation.query is not None else {}
            address = (scope.get("client") or ("",))[0]
            ask.caller = await services.authenticator.caller(
                headers,
                method=operation.method,
                address=address,
                ticket=query.get("ticket") if operation.takes_ticket else None,
                takes_bare=operation.takes_bare,
            )
            wait = await services.requests.take(ask.caller.account.name)
            if wait:
                raise too_many(wait)
            if "project_id" in ask.params:
                ask.principal = ask.caller.check(ask.params["project_id"], operation.verb)
                check_path(ask.params)
            if operation.query is not None:
                ask.query = _validated(operation.query, query)
        return ask

    async def _body(self, ask: Ask, receive: Receive, *, is_keyed: bool) -> Any:
        assert self.operation.body is not None
        limit = self._services.settings.max_body_bytes
        raw = await read_body(ask.headers, receive, limit)
        if is_keyed:
            ask.body_digest = hashlib.sha256(raw).digest()
        if not raw.strip():
            raw = b"{}"  # a body whose fields all have defaults may be left out
        try:
            parse = self.operation.parse
            value = parse(raw, limit) if len(raw) <= LARGE else await aside(parse, raw, limit)
        except (ToolInputError, orjson.JSONDecodeError) as error:
            raise ProblemError(400, "invalid_json", f"The body is not usable JSON. {_why(error)}") from None
        if not isinstance(value, dict):
            raise ProblemError(400, "invalid_body", "The body must be one JSON object.")
        return _validated(self.operation.body, value)


def _why(error: Exception) -> str:
    return str(error) if isinstance(error, ToolInputError) else f"It cannot be parsed ({type(error).__name__})."


def _query_text(scope: Scope) -> dict[str, str]:
    from urllib.parse import parse_qsl

    return dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True, max_num_fields=50))


def _validated(model: type[Any], value: dict[str, Any]) -> Any:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        if (fault := fault_in(error)) is not None:
            raise InvalidIdError(fault) from None
        problems = [
            {"field": ".".join(map(str, one["loc"])) or "body", "problem": one["msg"]}
            for one in error.errors(include_url=False, include_input=False, include_context=False)[:20]
        ]
        listed = "; ".join(f"{one['field']}: {one['problem']}" for one in problems)
        raise ProblemError(400, "invalid_request", f"The request does not fit: {listed}.", errors=problems) from None


async def read_body(headers: Headers, receive: Receive, limit: int) -> bytes:
    """Return the body; refuse one that is too large before it is in memory, and one that never ends."""
    declared = headers.get(b"content-length", b"0")
    if not declared.isdigit() or int(declared) > limit:
        raise await _too_large(receive, limit)
    pace = Pace()
    message = await pace.next(receive)
    body: bytes = message.get("body", b"")
    if message.get("more_body", False):
        parts = [body]
        size = len(body)
        while message.get("more_body", False) and size <= limit:
            message = await pace.next(receive)
            parts.append(message.get("body", b""))
            size += len(parts[-1])
        body = b"".join(parts)
    if len(body) > limit:
        raise await _too_large(receive, limit)
    return body


async def _too_large(receive: Receive, limit: int) -> ProblemError:
    """The 413 of a body that is too large; a little more of it is read, so that its sender hears the answer."""
    pace, more = Pace(), True
    with contextlib.suppress(ProblemError):
        while more and pace.size < SWALLOWED:
            more = (await pace.next(receive)).get("more_body", False)
    return ProblemError(413, "too_large", f"The body is larger than {limit:,} bytes.", headers={"Connection": "close"})


class Pace:
    """Takes the parts of a body as long as they come, and do so quickly enough."""

    def __init__(self) -> None:
        self.size = 0
        self._began = monotonic()

    async def next(self, receive: Receive) -> Any:
        """Return the next part; ProblemError where it does not come in time."""
        left = BODY_S + self.size / BODY_BYTES_PER_S - (monotonic() - self._began)
        try:
            async with asyncio.timeout(max(0.0, min(BODY_S, left))):
                message = await receive()
        except TimeoutError:
            close = {"Connection": "close"}
            raise ProblemError(400, "body_timeout", "The body did not arrive in time.", headers=close) from None
        if message["type"] == "http.disconnect":
            raise ProblemError(400, "disconnected", "The client went away while sending its body.")
        self.size += len(message.get("body", b""))
        return message


async def reply(response: Response, send: Send) -> None:
    """Send an answer with the headers every answer has."""
    headers = secured(response.raw_headers)
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": response.body})


def response_of(status: int, given: Any) -> Response:
    """What a handler gave as a response: a model, a (status, model) pair, or a response already."""
    if isinstance(given, Response):
        return given
    if isinstance(given, tuple):
        status, given = given
    content: bytes = given.__pydantic_serializer__.to_json(given)
    return Response(content, status, media_type="application/json")
