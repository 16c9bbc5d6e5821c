"""The server's numbers in Prometheus' text form. Counts only: no project, account or argument is named."""

from __future__ import annotations

from collections import Counter as Counted
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from toolgate.kernel.call import Status
from toolgate.kernel.context import Mode
from toolgate.ports.store import CallQuery

if TYPE_CHECKING:
    from toolgate.interfaces.server.services import Services

CONTENT_TYPE = CONTENT_TYPE_LATEST
MOST_COUNTED = 10_000


class ServerMetrics:
    """The numbers of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "toolgate_http_requests", "Requests answered, by operation and status.", ["route", "status"],
            registry=self.registry,
        )  # fmt: skip
        self.seconds = Histogram(
            "toolgate_http_request_seconds", "How long requests took.", ["route"], registry=self.registry
        )
        self.streams = Gauge("toolgate_streams", "Streams and sockets that are open.", registry=self.registry)
        self.cut = Gauge("toolgate_streams_cut_total", "Streams cut off for being slow.", registry=self.registry)
        self.waiting = Gauge("toolgate_calls_without_runner", "Calls that wait for a client.", registry=self.registry)
        self.pending = Gauge("toolgate_approvals_pending", "Approvals that wait for a person.", registry=self.registry)
        self.unknown = Gauge("toolgate_calls_unknown", "Calls whose outcome nobody knows.", registry=self.registry)
        self.held = Gauge("toolgate_policy_held", "1 while a policy waits for a person's word.", registry=self.registry)
        self.brakes = Gauge("toolgate_brakes", "Brakes that are pulled, by mode.", ["mode"], registry=self.registry)


async def render(services: Services) -> bytes:
    """Return the numbers as they are now."""
    numbers = services.metrics
    numbers.streams.set(len(services.hub.connections))
    numbers.cut.set(services.hub.cut_count)
    numbers.waiting.set(services.clients.waiting_count)
    numbers.pending.set(len(await services.gate.pending(limit=MOST_COUNTED)))
    doubtful = CallQuery(statuses=frozenset({Status.UNKNOWN}), limit=MOST_COUNTED)
    numbers.unknown.set(len(await services.gate.calls.list(doubtful)))
    numbers.held.set(await services.gate.host.held_revision() is not None)
    pulled = Counted(brake.mode for brake in services.gate.brakes.active)
    for mode in Mode:
        numbers.brakes.labels(mode.value).set(pulled[mode])
    text: bytes = generate_latest(numbers.registry)
    return text
