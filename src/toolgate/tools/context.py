"""From the caller's context, an object or a mapping, to the gate's Context."""

from __future__ import annotations

from typing import Any

from toolgate.kernel.context import Caller, Context, behavior_of, read
from toolgate.kernel.input import Action
from toolgate.kernel.record import evolve

_FIELDS = (
    ("run_id", "pipeline_run_id"),
    ("request_id", "request_id"),
    ("user", "user_id"),
    ("session_id", "session_id"),
    ("trace_id", "trace_id"),
)


def context_of(ctx: object, project: str, action: Action) -> Context:
    """Return the context of one call; handlers still get the caller's own object."""
    host = Caller(ctx, action)
    if isinstance(ctx, Context):
        return evolve(ctx, project=project, host=host)
    found: dict[str, Any] = {ours: read(ctx, theirs) for ours, theirs in _FIELDS}
    return Context(project=project, behavior=behavior_of(ctx), host=host, **found)
