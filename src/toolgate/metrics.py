"""Metrics of every gate in this process, in Prometheus form."""

from __future__ import annotations

from toolgate.adapters.telemetry.metrics import METRICS

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def render() -> str:
    """Return the metrics as Prometheus text: `tool_execution_duration_ms` and counters by tool and outcome."""
    return METRICS.render()


def clear() -> None:
    """Begin again at zero, for tests."""
    METRICS.clear()
