"""Counts what becomes of calls, by tool and outcome, and how long handlers run; rendered in Prometheus form.

Counting is a few additions per call. The Prometheus library is loaded when somebody wants to read.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any

from toolgate.kernel.approval import Approval
from toolgate.kernel.call import Call
from toolgate.kernel.change import Change

BUCKETS_MS = (1.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0, 5000.0, 10_000.0, 30_000.0)
UNKNOWN_TOOL = "(unknown)"
"""What calls of tools nobody registered are counted under: their names are the caller's, and without end."""

UNNAMED = "(unnamed)"
"""What is counted of event sinks without a name."""

Labels = tuple[str, str]


class _Durations:
    """One series of a histogram."""

    __slots__ = ("counts", "sum_ms")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS_MS) + 1)
        self.sum_ms = 0.0


class Metrics:
    """Counts the changes of any number of gates; safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: dict[Labels, int] = {}
        self._undos: dict[Labels, int] = {}
        self._settled: dict[Labels, int] = {}
        self._approvals: dict[Labels, int] = {}
        self._durations: dict[Labels, _Durations] = {}
        self._sinks: dict[Labels, int] = {}

    def clear(self) -> None:
        """Begin again at zero."""
        with self._lock:
            for counts in (
                self._calls, self._undos, self._settled, self._approvals, self._durations, self._sinks,
            ):  # fmt: skip
                counts.clear()

    def count(self, change: Change) -> None:
        """Count a change: one that ends a call, or asks for or closes an approval."""
        call = change.call
        if call is not None and call.status.is_final:
            with self._lock:
                self._count_call(call)
                if change.events and change.events[0][0] == "tool.settled":
                    labels = (call.tool_name, call.status)
                    self._settled[labels] = self._settled.get(labels, 0) + 1
        if change.approvals:
            with self._lock:
                self._count_approvals(change.approvals)

    def count_sink(self, sink: str, outcome: str, times: int) -> None:
        """Count what an event sink `missed`, or how often telling it `failed`."""
        labels = (sink or UNNAMED, outcome)
        with self._lock:
            self._sinks[labels] = self._sinks.get(labels, 0) + times

    def _count_call(self, call: Call) -> None:
        tool = call.tool_name if call.definition_hash or call.undo_of is not None else UNKNOWN_TOOL
        labels = (tool, call.status)  # written in small letters when somebody reads
        counts = self._calls if call.undo_of is None else self._undos
        counts[labels] = counts.get(labels, 0) + 1
        taken_ms = call.duration_ms
        if taken_ms is None or call.undo_of is not None:
            return
        series = self._durations.get(labels)
        if series is None:
            series = self._durations[labels] = _Durations()
        series.counts[bisect_left(BUCKETS_MS, taken_ms)] += 1
        series.sum_ms += taken_ms

    def _count_approvals(self, approvals: Iterable[Approval]) -> None:
        for approval in approvals:
            outcome = "requested" if approval.is_pending else approval.status.value
            labels = (approval.tool_name, outcome)
            self._approvals[labels] = self._approvals.get(labels, 0) + 1

    def collect(self) -> Iterator[Any]:
        """Yield the metric families, as the Prometheus library asks its collectors for them."""
        from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

        with self._lock:
            counted = (
                ("tool_calls", "tool", "Calls that ended, by tool and how.", dict(self._calls)),
                ("tool_undos", "tool", "Undos that ended, by the tool of what they undid and how.", dict(self._undos)),
                (
                    "tool_settled",
                    "tool",
                    "Calls of unknown outcome, settled as what.",
                    dict(self._settled),
                ),
                ("tool_approvals", "tool", "What became of approvals, by tool.", dict(self._approvals)),
                ("sink_events", "sink", "Events that sinks missed for good, and failures to tell.", dict(self._sinks)),
            )
            timed = {labels: (list(series.counts), series.sum_ms) for labels, series in self._durations.items()}
        duration = HistogramMetricFamily(
            "tool_execution_duration_ms", "How long handlers ran, in milliseconds.", labels=("tool", "outcome")
        )
        for (tool, outcome), (buckets, sum_ms) in sorted(timed.items()):
            duration.add_metric((tool, outcome.lower()), _cumulated(buckets), sum_ms)
        yield duration
        for name, of, meaning, counts in counted:
            family = CounterMetricFamily(name, meaning, labels=(of, "outcome"))
            for (what, outcome), count in sorted(counts.items()):
                family.add_metric((what, outcome.lower()), count)
            yield family

    def render(self) -> str:
        """Return everything counted as Prometheus text."""
        from prometheus_client import CollectorRegistry, generate_latest

        registry = CollectorRegistry()
        registry.register(self)
        return generate_latest(registry).decode()


def _cumulated(counts: list[int]) -> list[tuple[str, float]]:
    bounds = (*(str(bound) for bound in BUCKETS_MS), "+Inf")
    total, buckets = 0, []
    for bound, count in zip(bounds, counts, strict=True):
        total += count
        buckets.append((bound, float(total)))
    return buckets


METRICS = Metrics()
"""What every gate opened in this process counts into."""
