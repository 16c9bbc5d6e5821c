"""The build fails where the server has a request, or a field of one, that the client cannot send."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any

import pytest
from tests.unit.interfaces.client.listener import Asked, listening

from toolgate.client import BrowserSession, Client, EventStream, SyncClient, SyncStream
from toolgate.errors import UsageError
from toolgate.interfaces.client import sync
from toolgate.interfaces.client.approvals import Approvals
from toolgate.interfaces.client.calls import Calls
from toolgate.interfaces.client.delegations import Delegations
from toolgate.interfaces.client.grants import Grants
from toolgate.interfaces.client.remote import Remote
from toolgate.interfaces.server.operations import Operation
from toolgate.interfaces.server.routes import OPERATIONS

FACES: dict[str, tuple[Any, Any]] = {
    "": (Client, SyncClient),
    "calls.": (Calls, sync.SyncCalls),
    "approvals.": (Approvals, sync.SyncApprovals),
    "grants.": (Grants, sync.SyncGrants),
    "delegations.": (Delegations, sync.SyncDelegations),
    "remote.": (Remote, sync.SyncRemote),
}
"""The client and its parts, each with its face for threads."""


def _public(face: Any) -> set[str]:
    return {name for name in dir(face) if not name.startswith("_") and inspect.isroutine(getattr(face, name))}


REQUESTS = sorted(
    f"{part}{name}" for part, (face, _) in FACES.items() for name in _public(face) - {"aclose", "run_here"}
)
SAMPLES: dict[str, Any] = {
    "after": 7,
    "against": "recorded",
    "agent": "bot",
    "approval_id": "a1",
    "approval_timeout_s": 5.0,
    "artifacts": [1],
    "before": "x",
    "behavior": "b",
    "call_id": "c1",
    "claim": "so",
    "claim_id": "c" * 24,
    "content": "hello",
    "data": {"x": 1},
    "delegate": "bob",
    "delegation_id": "d1",
    "digest": "0" * 64,
    "distinct": True,
    "error": "broken",
    "fence": "f",
    "files": {"a.yaml": ""},
    "force": True,
    "full": True,
    "giver": "ann",
    "grant_id": "g1",
    "happened": True,
    "limit": 5,
    "live": False,
    "message": "half",
    "mode": "ALERT",
    "network": True,
    "offset": 3,
    "on_behalf_of": "ann",
    "order": "newest",
    "part": "arguments",
    "arguments": {"x": 1},
    "pattern": {"x": "any"},
    "preview": True,
    "progress": 0.5,
    "raised": ["ValueError"],
    "reason": "because",
    "remember": {"uses": 2},
    "repeat_of": "c0",
    "requester": "ann",
    "size": 9,
    "restart": True,
    "listen": True,
    "response": "no",
    "revised": "1" * 12,
    "revision": "0" * 12,
    "result": {"x": 1},
    "run": "r1",
    "run_id": "r1",
    "seconds": 5.0,
    "since": datetime(2026, 1, 1, tzinfo=UTC),
    "since_seconds": 60.0,
    "session_id": "s1",
    "skip_failures": True,
    "status": "pending",
    "step_id": "s1",
    "text": "words",
    "to": "bob",
    "tool": "t",
    "tool_name": "t",
    "tools": ["t", "u"],
    "undo": {"x": 1},
    "uses": 3,
    "wait": False,
    "session": BrowserSession(account="ann", cookie="secret", key="secret", expires_in=1.0),
}
OWN = {
    ("chat_runs", "status"): "waiting",
    ("simulate", "after"): "c1",
    ("remote.report", "status"): "completed",
    ("remote.result", "status"): "completed",
    ("stream", "undo"): True,
    ("undo_run", "undo"): True,
}
NOT_SENT = {"on_lost", "on_open", "retry_s", "timeout"}
CONSTANT = {"decision", "ticket"}
"""Fields that have one value, and the ticket of who cannot send a header."""


async def send(client: Client, name: str) -> None:
    """Call a method with everything it takes; the server refuses it all."""
    method = attrgetter(name)(client)
    given: dict[str, Any] = {}
    more: list[Any] = []
    for word, parameter in inspect.signature(method).parameters.items():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            more.append("owner")
        elif word not in NOT_SENT:
            given[word] = OWN.get((name, word), SAMPLES[word])
    called = method(*given.values(), *more) if more else method(**given)
    if isinstance(called, EventStream | AsyncIterator):
        called = _first(called)
    with pytest.raises(UsageError, match="Written down"):
        await called


async def _first(called: EventStream | AsyncIterator[Any]) -> None:
    await anext(called)


def operation_of(asked: Asked) -> Operation:
    """The operation that serves a request: of several, the one with fewer holes in its path."""
    for operation in sorted(OPERATIONS, key=lambda one: one.path.count("{")):
        pattern = re.sub(r"\{\w+\}", "[^/]+", operation.path)
        if operation.method == asked.method and re.fullmatch(pattern, asked.path):
            return operation
    raise AssertionError(f"The server has no {asked.method} {asked.path}.")


@pytest.fixture(scope="module")
def sent() -> dict[tuple[str, str], list[Asked]]:
    """What every method sends, by the operation that serves it."""
    return asyncio.run(_sent())


async def _sent() -> dict[tuple[str, str], list[Asked]]:
    found: dict[tuple[str, str], list[Asked]] = {}
    async with listening() as server, Client(server.url, token="tg_x", project="demo") as client:
        for name in REQUESTS:
            await send(client, name)
            operation = operation_of(server.asked[-1])
            found.setdefault((operation.method, operation.path), []).append(server.asked[-1])
    return found


def test_every_request_of_the_server_has_a_method(sent: dict[tuple[str, str], list[Asked]]) -> None:
    assert sorted((one.method, one.path) for one in OPERATIONS) == sorted(sent)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: f"{one.method} {one.path}")
def test_every_field_can_be_sent(operation: Operation, sent: dict[tuple[str, str], list[Asked]]) -> None:
    requests = sent.get((operation.method, operation.path), [])
    if operation.body is not None:
        named = {name for asked in requests for name in asked.body or {}}
        assert set(operation.body.model_fields) - CONSTANT <= named
        for asked in requests:
            operation.body.model_validate(asked.body)
    if operation.query is not None:
        named = {name for asked in requests for name in asked.query}
        assert set(operation.query.model_fields) - CONSTANT - {"after"} <= named
        for asked in requests:
            operation.query.model_validate(asked.query)


def test_threads_have_every_method_with_the_same_parameters() -> None:
    for face, plain in FACES.values():
        assert _public(plain) - {"close"} == _public(face) - {"aclose"}
        for name in _public(face) - {"aclose"}:
            assert inspect.signature(getattr(plain, name)) == inspect.signature(getattr(face, name))
    with SyncClient("http://127.0.0.1:1", project="demo") as client:
        own = vars(Client("http://127.0.0.1:1"))
        assert {name for name in own if not name.startswith("_")} <= {*dir(client), "project"}
        assert (client.project, client.url) == ("demo", "http://127.0.0.1:1")
    streams = {name for name in dir(EventStream) if not name.startswith("_")} - {"aclose"}
    assert streams <= {name for name in dir(SyncStream) if not name.startswith("_")}
    assert inspect.signature(Client) == inspect.signature(SyncClient)
