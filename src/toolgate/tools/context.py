"""From the caller's context, an object or a mapping, to the gate's Context."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any
from uuid import UUID

from toolgate.kernel.context import Caller, Context
from toolgate.kernel.input import Action
from toolgate.kernel.record import evolve

_FIELDS = (
    ("run_id", "pipeline_run_id"),
    ("request_id", "request_id"),
    ("user", "user_id"),
    ("session_id", "session_id"),
    ("trace_id", "trace_id"),
)


def read(ctx: object, name: str) -> str | None:
    """Return an id or name out of a context as text; None where there is none or it is something else."""
    value = ctx.get(name) if isinstance(ctx, Mapping) else getattr(ctx, name, None)
    if isinstance(value, Enum):
        value = value.value
    return str(value) if isinstance(value, str | UUID | int) and not isinstance(value, bool) else None


def behavior_of(ctx: object) -> str | None:
    """Return the behavior a context is in: its `behavior`, else its `execution_mode`."""
    return read(ctx, "behavior") or read(ctx, "execution_mode")


def context_of(ctx: object, project: str, action: Action) -> Context:
    """Return the context of one call; handlers still get the caller's own object."""
    host = Caller(ctx, action)
    if isinstance(ctx, Context):
        return evolve(ctx, project=project, host=host)
    found: dict[str, Any] = {ours: read(ctx, theirs) for ours, theirs in _FIELDS}
    return Context(project=project, behavior=behavior_of(ctx), host=host, **found)
