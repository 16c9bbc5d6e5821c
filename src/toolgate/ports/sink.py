"""Sink: somebody outside who is told of events as they happen. The store's own record does not depend on it."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Protocol


class Sink(Protocol):
    """Told of each event in order, at least once. A sink that raises, or never returns, is told again later.

    A sink that has `try_emit` with the same parameters is told through that instead, without waiting.
    """

    def emit(self, *, type: str, data: dict[str, Any]) -> Awaitable[None] | None: ...
