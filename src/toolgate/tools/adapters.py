"""A mapping in the shape of a context object, for who needs one: executors and registries take a mapping as it is."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from toolgate.errors import UsageError
from toolgate.kernel.context import as_id, read

log = logging.getLogger("toolgate.tools")

__all__ = ["DictContextAdapter", "adapt_context"]


class DictContextAdapter:
    """Gives a mapping the attributes of a context. An id that is no UUID is None."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = dict(data)

    @property
    def pipeline_run_id(self) -> UUID | None:
        return self._uuid("pipeline_run_id")

    @property
    def request_id(self) -> UUID | None:
        return self._uuid("request_id")

    @property
    def execution_mode(self) -> str | None:
        return read(self._data, "execution_mode")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._data:
            raise AttributeError(name)
        return self._data[name]

    def to_dict(self) -> dict[str, Any]:
        """Return a copy of the mapping."""
        return dict(self._data)

    def try_emit_event(self, type: str, data: Mapping[str, Any]) -> None:
        """Log that there was an event, not what it says: a mapping has no sink."""
        log.debug("event %s of a context without a sink, with %d fields", type, len(data))

    def _uuid(self, name: str) -> UUID | None:
        found = as_id(read(self._data, name) or "")
        return found if isinstance(found, UUID) else None


def adapt_context(ctx: Any) -> Any:
    """Return a mapping as a context, and a context object as it is; raise UsageError for anything else."""
    if isinstance(ctx, Mapping):
        return DictContextAdapter(ctx)
    if hasattr(ctx, "pipeline_run_id") and hasattr(ctx, "to_dict"):
        return ctx
    raise UsageError(f"A context is a mapping or has `pipeline_run_id` and `to_dict`; {type(ctx).__name__} is neither.")
