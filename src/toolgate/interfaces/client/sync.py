"""The client for plain threads: the same methods, blocking. They run on one background loop.

Nothing is written twice: each method is the async one, waited for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, Self, TypeVar

from toolgate.errors import UsageError
from toolgate.interfaces.client.approvals import Approvals
from toolgate.interfaces.client.calls import Calls
from toolgate.interfaces.client.client import Client
from toolgate.interfaces.client.delegations import Delegations
from toolgate.interfaces.client.grants import Grants
from toolgate.interfaces.client.remote import Remote
from toolgate.interfaces.client.sse import StreamEvent
from toolgate.interfaces.client.stream import EventStream
from toolgate.kernel.context import DEFAULT_PROJECT
from toolgate.pipeline.background import Background
from toolgate.pipeline.blocking import Blocking, iterated, next_of, waited

P = ParamSpec("P")
T = TypeVar("T")


def _streamed(
    method: Callable[Concatenate[Client, P], EventStream],
) -> Callable[Concatenate[SyncClient, P], SyncStream]:
    """The method, whose stream is read by a plain loop."""

    @wraps(method)
    def blocking(self: SyncClient, /, *args: P.args, **kwargs: P.kwargs) -> SyncStream:
        return SyncStream(self, method(self._target, *args, **kwargs))

    return blocking


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
            return self._client._wait(next_of(self._stream))
        except StopAsyncIteration:
            raise StopIteration from None

    def close(self) -> None:
        """End the connection."""
        self._client._wait(self._stream.aclose())


class _Face(Blocking):
    """What every face of the client says where it cannot wait."""

    _closed = "This client is closed; make a new one."
    _closed_meanwhile = "The client was closed while this waited."
    _ours = "This would wait for itself; use the async client here."
    _error = UsageError


class SyncCalls(_Face):
    """`calls` of a SyncClient."""

    get = waited(Calls.get)
    list = waited(Calls.list)


class SyncApprovals(_Face):
    """`approvals` of a SyncClient."""

    get = waited(Approvals.get)
    list = waited(Approvals.list)
    waiting = waited(Approvals.waiting)
    artifact = waited(Approvals.artifact)
    piece = waited(Approvals.piece)
    difference = waited(Approvals.difference)
    approve = waited(Approvals.approve)
    reject = waited(Approvals.reject)
    deny = waited(Approvals.deny)
    edit = waited(Approvals.edit)
    respond = waited(Approvals.respond)
    extend = waited(Approvals.extend)
    escalate = waited(Approvals.escalate)
    comment = waited(Approvals.comment)


class SyncGrants(_Face):
    """`grants` of a SyncClient."""

    get = waited(Grants.get)
    list = waited(Grants.list)
    preview = waited(Grants.preview)
    revoke = waited(Grants.revoke)


class SyncDelegations(_Face):
    """`delegations` of a SyncClient."""

    list = waited(Delegations.list)
    give = waited(Delegations.give)
    end = waited(Delegations.end)


class SyncRemote(_Face):
    """`remote` of a SyncClient."""

    claim = waited(Remote.claim)
    progress = waited(Remote.progress)
    result = waited(Remote.result)
    report = waited(Remote.report)


class SyncClient(_Face):
    """Blocks the calling thread until the answer is there: `with SyncClient(url, token=...) as client:`.

    Arguments and methods are those of Client; any number of threads may share one.
    """

    _target: Client

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
        client = Client(
            url,
            token=token,
            project=project,
            timeout_s=timeout_s,
            retry_s=retry_s,
            ca_file=ca_file,
            allow_plain_http=allow_plain_http,
            max_answer_bytes=max_answer_bytes,
        )
        background = Background("toolgate-client")
        super().__init__(client, background)
        self.calls = SyncCalls(client.calls, background)
        self.approvals = SyncApprovals(client.approvals, background)
        self.grants = SyncGrants(client.grants, background)
        self.delegations = SyncDelegations(client.delegations, background)
        self.remote = SyncRemote(client.remote, background)

    @property
    def project(self) -> str:
        """The project it speaks of."""
        return self._target.project

    @property
    def url(self) -> str:
        """The server's address."""
        return self._target.url

    def __repr__(self) -> str:
        return f"Sync{self._target!r}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection; whoever waits is told. Calls that were made go on."""
        if not self._background.is_closed:
            self._wait(self._target.aclose())
            self._background.close()

    audit = waited(Client.audit)
    call = waited(Client.call)
    cancel = waited(Client.cancel)
    cancel_run = waited(Client.cancel_run)
    brakes = waited(Client.brakes)
    chat_run = waited(Client.chat_run)
    chat_runs = waited(Client.chat_runs)
    conversations = waited(Client.conversations)
    events = waited(Client.events)
    explain = waited(Client.explain)
    follow = _streamed(Client.follow)
    get = waited(Client.get)
    health = waited(Client.health)
    history = iterated(Client.history)
    inbox = _streamed(Client.inbox)
    messages = waited(Client.messages)
    metrics = waited(Client.metrics)
    missing_project = waited(Client.missing_project)
    mode = waited(Client.mode)
    policy = waited(Client.policy)
    policy_source = waited(Client.policy_source)
    ready = waited(Client.ready)
    record = waited(Client.record)
    run = waited(Client.run)
    run_here = waited(Client.run_here)
    runs = waited(Client.runs)
    send = waited(Client.send)
    session = waited(Client.session)
    set_brake = waited(Client.set_brake)
    set_mode = waited(Client.set_mode)
    settle = waited(Client.settle)
    sign_in = waited(Client.sign_in)
    sign_out = waited(Client.sign_out)
    simulate = waited(Client.simulate)
    held_policy = waited(Client.held_policy)
    accept_policy = waited(Client.accept_policy)
    learn = waited(Client.learn)
    write_learned = waited(Client.write_learned)
    stream = _streamed(Client.stream)
    ticket = waited(Client.ticket)
    timeline = waited(Client.timeline)
    tools = waited(Client.tools)
    undo = waited(Client.undo)
    undo_run = waited(Client.undo_run)
    verify = waited(Client.verify)
    wait = waited(Client.wait)
