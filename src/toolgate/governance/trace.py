"""Trace correlation: one trace per request, one span per tool call, in the shape W3C trace context has."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TraceContext:
    """Where in a trace something happens. Ids are lower-case hexadecimal, 16 and 8 bytes."""

    trace_id: str = field(default_factory=lambda: secrets.token_hex(16))
    span_id: str | None = None
    parent_span_id: str | None = None

    @classmethod
    def new_trace(cls) -> TraceContext:
        """Start a trace."""
        return cls()

    def new_span(self) -> tuple[TraceContext, str]:
        """Return the context of a new span below this one, and the span's id."""
        span_id = secrets.token_hex(8)
        return TraceContext(self.trace_id, span_id, self.span_id), span_id
