"""The client for plain threads: the same methods, blocking. They run on one background loop.

Nothing is written twice: each method is the async one, waited for.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from toolgate.errors import GateClosedError, UsageError
from toolgate.interfaces.client.client import Client
from toolgate.interfaces.client.sse import StreamEvent
from toolgate.interfaces.client.stream import EventStream
from toolgate.kernel.context import DEFAULT_PROJECT
from toolgate.pipeline.background import Background

P = ParamSpec("P")
T = TypeVar("T")


def _waited(
    method: Callable[Concatenate[Client, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[SyncClient, P], T]:
    """The method, waited for."""

    @wraps(method)
    def blocking(self: SyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._wait(method(self._client, *args, **kwargs))

    return blocking


def _streamed(
    method: Callable[Concatenate[Client, P], EventStream],
) -> Callable[Concatenate[SyncClient, P], SyncStream]:
    """The method, whose stream is read by a plain loop."""

    @wraps(method)
    def blocking(self: SyncClient, /, *args: P.args, **kwargs: P.kwargs) -> SyncStream:
        return SyncStream(self, method(self._client, *args, **kwargs))

    return blocking


def _iterated(
    method: Callable[Concatenate[Client, P], AsyncIterator[T]],
) -> Callable[Concatenate[SyncClient, P], Iterator[T]]:
    """The method, whose items come one by one."""

    @wraps(method)
    def blocking(self: SyncClient, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        items = method(self._client, *args, **kwargs)
        while True:
            try:
                item = self._wait(_next(items))
            except StopAsyncIteration:
                return
            yield item

    return blocking


async def _next(items: AsyncIterator[T]) -> T:
    return await anext(items)


class SyncStream:
    """An event stream in a plain loop: `with client.stream() as events: for event in events: ...`.

    Closing it from another thread ends the loop.
    """

    def __init__(self, client: SyncClient, stream: EventStream) -> None:
        self._client = client
        self._stream = stream

    @property
    def last_id(self) -> int | None:
        """Where the stream is."""
        return self._stream.last_id

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> StreamEvent:
        try:
            return self._client._wait(_next(self._stream))
        except StopAsyncIteration:
            raise StopIteration from None

    def close(self) -> None:
        """End the connection."""
        self._client._wait(self._stream.aclose())


class SyncClient:
    """Blocks the calling thread until the answer is there: `with SyncClient(url, token=...) as client:`.

    Arguments and methods are those of Client; any number of threads may share one.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        project: str = DEFAULT_PROJECT,
        timeout_s: float = 30.0,
        retry_s: float = 10.0,
        ca_file: Path | str | None = None,
        allow_plain_http: bool = False,
        max_answer_bytes: int = 32 * 2**20,
    ) -> None:
        self._client = Client(
            url,
            token=token,
            project=project,
            timeout_s=timeout_s,
            retry_s=retry_s,
            ca_file=ca_file,
            allow_plain_http=allow_plain_http,
            max_answer_bytes=max_answer_bytes,
        )
        self._background = Background("toolgate-client")

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        if self._background.is_closed or self._background.is_current:
            coroutine.close()
            if self._background.is_closed:
                raise UsageError("This client is closed; make a new one.")
            raise UsageError("This would wait for itself; use the async client here.")
        try:
            future = self._background.submit(coroutine)
        except GateClosedError:
            raise UsageError("This client is closed; make a new one.") from None
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise
        except CancelledError:
            raise UsageError("The client was closed while this waited.") from None

    @property
    def project(self) -> str:
        """The project it speaks of."""
        return self._client.project

    @property
    def url(self) -> str:
        """The server's address."""
        return self._client.url

    def __repr__(self) -> str:
        return f"Sync{self._client!r}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection; whoever waits is told. Calls that were made go on."""
        if not self._background.is_closed:
            self._wait(self._client.aclose())
            self._background.close()

    approval = _waited(Client.approval)
    approvals = _waited(Client.approvals)
    approve = _waited(Client.approve)
    artifact = _waited(Client.artifact)
    audit = _waited(Client.audit)
    call = _waited(Client.call)
    calls = _waited(Client.calls)
    cancel = _waited(Client.cancel)
    cancel_run = _waited(Client.cancel_run)
    claim = _waited(Client.claim)
    chat_run = _waited(Client.chat_run)
    chat_runs = _waited(Client.chat_runs)
    comment = _waited(Client.comment)
    conversations = _waited(Client.conversations)
    difference = _waited(Client.difference)
    edit = _waited(Client.edit)
    escalate = _waited(Client.escalate)
    events = _waited(Client.events)
    execute = _waited(Client.execute)
    explain = _waited(Client.explain)
    extend = _waited(Client.extend)
    follow = _streamed(Client.follow)
    grant = _waited(Client.grant)
    grants = _waited(Client.grants)
    health = _waited(Client.health)
    history = _iterated(Client.history)
    inbox = _streamed(Client.inbox)
    messages = _waited(Client.messages)
    metrics = _waited(Client.metrics)
    mode = _waited(Client.mode)
    policy = _waited(Client.policy)
    policy_source = _waited(Client.policy_source)
    preview_grant = _waited(Client.preview_grant)
    progress = _waited(Client.progress)
    ready = _waited(Client.ready)
    record = _waited(Client.record)
    reject = _waited(Client.reject)
    deny = _waited(Client.deny)
    report = _waited(Client.report)
    respond = _waited(Client.respond)
    result = _waited(Client.result)
    revoke_grant = _waited(Client.revoke_grant)
    run = _waited(Client.run)
    run_here = _waited(Client.run_here)
    runs = _waited(Client.runs)
    send = _waited(Client.send)
    session = _waited(Client.session)
    missing_project = _waited(Client.missing_project)
    set_mode = _waited(Client.set_mode)
    settle = _waited(Client.settle)
    sign_in = _waited(Client.sign_in)
    sign_out = _waited(Client.sign_out)
    simulate = _waited(Client.simulate)
    stream = _streamed(Client.stream)
    ticket = _waited(Client.ticket)
    timeline = _waited(Client.timeline)
    tools = _waited(Client.tools)
    undo = _waited(Client.undo)
    undo_run = _waited(Client.undo_run)
    verify = _waited(Client.verify)
    wait = _waited(Client.wait)
    waiting = _waited(Client.waiting)
