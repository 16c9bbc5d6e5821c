"""One server: requests with limits, retries and errors that say what to do. Knows no endpoint.

Nothing is taken from the environment: no proxy, no .netrc, no certificates. Redirects are not followed, answers are
not decompressed, and none is read beyond its limit: what listens there may be anything.
"""

from __future__ import annotations

import asyncio
import secrets
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import httpx2
import orjson
from pydantic import BaseModel, ValidationError

from toolgate import __version__
from toolgate.errors import (
    AnswerLostError,
    BadAnswerError,
    ServerBusyError,
    ServerError,
    ServerUnreachableError,
    UsageError,
)
from toolgate.interfaces.client import address, problems
from toolgate.interfaces.client.backoff import delays

A = TypeVar("A", bound=BaseModel)
CONNECT_S = 5.0
CONNECTIONS = 2000
_PASSING = frozenset({502, 503, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How patient and how trusting a client is."""

    timeout_s: float = 30.0
    retry_s: float = 10.0
    ca_file: Path | str | None = None
    allow_plain_http: bool = False
    max_answer_bytes: int = 32 * 2**20


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent. `headers` replace the token; `key` tells the server which requests are one and the same."""

    method: str
    path: str
    content: bytes | None = None
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] | None = None
    wait_s: float = 0.0
    key: str | None = None


class Reply(NamedTuple):
    """A success: its bytes and its headers."""

    content: bytes
    headers: httpx2.Headers


class Connection:
    """Sends requests to one server as one account."""

    def __init__(self, url: str, token: str | None, options: Options) -> None:
        self.url = address.checked_url(url)
        token = address.checked_token(token)
        address.check_is_private(self.url, token, allow_plain_http=options.allow_plain_http)
        self.options = options
        self._sign = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._http = httpx2.AsyncClient(
            base_url=self.url,
            headers={"Accept-Encoding": "identity", "User-Agent": f"toolgate/{__version__}"},
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            verify=_context(options.ca_file) if self.url.startswith("https:") else False,
            timeout=httpx2.Timeout(options.timeout_s, connect=min(CONNECT_S, options.timeout_s)),
            limits=httpx2.Limits(max_connections=CONNECTIONS, max_keepalive_connections=20, keepalive_expiry=10),
            follow_redirects=False,
            trust_env=False,
        )

    async def close(self) -> None:
        await self._http.aclose()

    def _check_open(self) -> None:
        if self._http.is_closed:
            raise UsageError("This client is closed; make a new one.")

    async def ask(
        self,
        returns: type[A],
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
        repeats: bool = False,
        retry_s: float | None = None,
        wait_s: float = 0.0,
    ) -> A:
        """Return the answer. `wait_s` is how much longer than usual it may take.

        What cannot have reached the server is tried again for `retry_s`; with `repeats`, which says that doing it
        twice is like doing it once, so is what may have.
        """
        content = None if body is None else _dumps(body)
        request = Request(method, path, content, _params(query), wait_s=wait_s)
        reply = await self.send(request, repeats=repeats, retry_s=retry_s)
        return self.read(returns, request, reply)

    def read(self, returns: type[A], request: Request, reply: Reply) -> A:
        """What a reply says."""
        try:
            return returns.model_validate_json(reply.content)
        except ValidationError:
            raise BadAnswerError(
                f"The answer of {self.url} to {request.method} {request.path} is not what this version of the client "
                "understands. Check the address, and that client and server are of the same version."
            ) from None

    async def send(self, request: Request, *, repeats: bool = False, retry_s: float | None = None) -> Reply:
        """Send a request until it is answered, cannot be or must not be repeated."""
        if request.method == "POST" and request.key is None:
            request = replace(request, key=secrets.token_urlsafe(18))
        now = asyncio.get_running_loop().time
        until = now() + (self.options.retry_s if retry_s is None else retry_s)
        waits = delays()
        while True:
            try:
                return await self._once(request)
            except ServerError as error:
                pause_s = max(next(waits), error.retry_after_s or 0.0)
                if not is_passing(error, repeats=repeats) or now() + pause_s > until:
                    raise
            await asyncio.sleep(pause_s)

    async def _once(self, request: Request) -> Reply:
        self._check_open()
        longest_s = self.options.timeout_s + request.wait_s
        headers = {"Accept": "application/json", **(self._sign if request.headers is None else request.headers)}
        if request.content is not None:
            headers["Content-Type"] = "application/json"
        if request.key is not None:
            headers["Idempotency-Key"] = request.key
        try:
            async with (
                asyncio.timeout(2 * longest_s),  # what trickles is given up, too
                self._http.stream(
                    request.method,
                    request.path,
                    content=request.content,
                    params=request.query,
                    headers=headers,
                    timeout=httpx2.Timeout(longest_s, connect=min(CONNECT_S, longest_s)),
                ) as response,
            ):
                raw = await self._read(response)
        except (httpx2.TransportError, TimeoutError) as error:
            raise problems.of_transport(error, self.url) from None
        if response.is_success:
            return Reply(raw, response.headers)
        raise problems.of_answer(response.status_code, response.headers, raw, self.url)

    async def _read(self, response: httpx2.Response) -> bytes:
        _check_encoding(response, self.url)
        limit = self.options.max_answer_bytes
        parts, size = [], 0
        async for part in response.aiter_raw():
            size += len(part)
            if size > limit:
                raise BadAnswerError(
                    f"The answer of {self.url} is larger than {limit:,} bytes and was not read. Ask for less, or raise "
                    "max_answer_bytes."
                )
            parts.append(part)
        return b"".join(parts)

    @asynccontextmanager
    async def open_stream(
        self, path: str, query: Mapping[str, Any], *, last_id: int | None, silence_s: float
    ) -> AsyncIterator[httpx2.EventSource]:
        """Open an event stream; its events as they come. Raises when nothing comes for `silence_s`."""
        self._check_open()
        headers = dict(self._sign)
        if last_id is not None:
            headers["Last-Event-ID"] = str(last_id)
        timeout = httpx2.Timeout(self.options.timeout_s, read=silence_s, connect=min(CONNECT_S, self.options.timeout_s))
        limit = self.options.max_answer_bytes
        try:
            async with self._http.sse(
                path, params=_params(query), headers=headers, timeout=timeout, max_event_size=limit
            ) as source:
                response = source.response
                if not response.is_success:
                    async with asyncio.timeout(self.options.timeout_s):
                        raw = await self._read(response)
                    raise problems.of_answer(response.status_code, response.headers, raw, self.url)
                _check_encoding(response, self.url)
                if not response.headers.get("content-type", "").startswith("text/event-stream"):
                    raise BadAnswerError(f"{self.url} answered a stream with something else. Check the address.")
                yield source
        except httpx2.SSEError:
            raise BadAnswerError(f"An event of {self.url} is larger than {limit:,} bytes and was not read.") from None
        except (httpx2.TransportError, TimeoutError) as error:
            raise problems.of_transport(error, self.url) from None


def is_passing(error: ServerError, *, repeats: bool) -> bool:
    """Whether trying again may help and can do no harm."""
    if isinstance(error, ServerUnreachableError):
        return not error.is_lasting
    if isinstance(error, ServerBusyError):
        return True
    return repeats and is_uncertain(error)


def is_uncertain(error: ServerError) -> bool:
    """Whether the request may have been carried out, and trying again may help."""
    return isinstance(error, AnswerLostError) or error.status in _PASSING


def _context(ca_file: Path | str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"The certificates in {ca_file} cannot be used ({type(error).__name__}).") from None


def _check_encoding(response: httpx2.Response, url: str) -> None:
    if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise BadAnswerError(
            f"{url} sent a compressed answer, which was not asked for. Check the proxies between client and server."
        )


def given(**fields: Any) -> dict[str, Any]:
    """The fields that were given: the server has the defaults of the others."""
    return {name: value for name, value in fields.items() if value is not None}


def _dumps(body: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(dict(body))
    except TypeError as error:
        raise UsageError(f"What is to be sent has no JSON form: {error}.") from None


def _params(query: Mapping[str, Any] | None) -> dict[str, str]:
    return {name: _text(value) for name, value in (query or {}).items() if value is not None}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
