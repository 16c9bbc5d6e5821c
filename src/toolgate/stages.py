"""Agent stages as document 001 writes them: the context a stage gets, its kind, and what it returns.

There is no pipeline engine here: whoever runs stages makes the context and calls `stage.execute(ctx)`. Tool
calls a stage makes go through the gate like all others; `ctx.to_dict()` tells the gate who asks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from uuid import UUID

log = logging.getLogger("toolgate.stages")
Id = UUID | str


class StageKind(StrEnum):
    """What a stage is for."""

    TRANSFORM = "transform"
    ENRICH = "enrich"
    ROUTE = "route"
    GUARD = "guard"
    WORK = "work"
    AGENT = "agent"


class StageStatus(StrEnum):
    """How a stage ended."""

    OK = "ok"
    SKIP = "skip"
    CANCEL = "cancel"
    FAIL = "fail"
    RETRY = "retry"


@dataclass(frozen=True)
class StageOutput:
    """What a stage returns. The keywords of `ok` are its `data`."""

    status: StageStatus
    data: dict[str, Any] = field(default_factory=dict)
    error: str | None = None

    @property
    def success(self) -> bool:
        return self.status is StageStatus.OK

    @classmethod
    def ok(cls, data: Mapping[str, Any] | None = None, /, **named: Any) -> StageOutput:
        return cls(StageStatus.OK, {**(data or {}), **named})

    @classmethod
    def skip(cls, reason: str = "", /, **named: Any) -> StageOutput:
        return cls(StageStatus.SKIP, {"reason": reason, **named})

    @classmethod
    def cancel(cls, reason: str = "", /, **named: Any) -> StageOutput:
        return cls(StageStatus.CANCEL, {"cancel_reason": reason, **named})

    @classmethod
    def fail(cls, error: str, /, **named: Any) -> StageOutput:
        return cls(StageStatus.FAIL, named, error)

    @classmethod
    def retry(cls, error: str, /, **named: Any) -> StageOutput:
        return cls(StageStatus.RETRY, named, error)


@dataclass(frozen=True, kw_only=True)
class ContextSnapshot:
    """What was known when the stage began."""

    input_text: str | None = None
    pipeline_run_id: Id | None = None
    request_id: Id | None = None
    session_id: Id | None = None
    user_id: Id | None = None
    execution_mode: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


_IDS = ("pipeline_run_id", "request_id", "session_id", "user_id", "execution_mode")


class StageContext:
    """What a stage gets: the snapshot, who is told of events, and the ids tools are governed by.

    `snapshot` is a ContextSnapshot or any object or mapping with its fields; given by name, the fields make one.
    `event_sink` is anything with `emit(type=, data=)`.
    """

    def __init__(
        self,
        snapshot: Any = None,
        inputs: Any = None,
        stage_name: str = "",
        *,
        event_sink: Any = None,
        **named: Any,
    ) -> None:
        if isinstance(snapshot, Mapping):
            snapshot = ContextSnapshot(**{**snapshot, **named})
        elif isinstance(snapshot, str):
            snapshot = ContextSnapshot(input_text=snapshot, **named)
        elif snapshot is None:
            snapshot = ContextSnapshot(**named)
        elif named:
            raise TypeError(f"StageContext got a snapshot and also: {', '.join(sorted(named))}")
        self.snapshot = snapshot
        self.inputs = inputs
        self.stage_name = stage_name
        self.event_sink = event_sink

    def _known(self, name: str) -> Any:
        return getattr(self.snapshot, name, None)

    @property
    def pipeline_run_id(self) -> Id | None:
        return self._known("pipeline_run_id")  # type: ignore[no-any-return]  # a snapshot may be any object

    @property
    def request_id(self) -> Id | None:
        return self._known("request_id")  # type: ignore[no-any-return]  # as above

    @property
    def execution_mode(self) -> str | None:
        return self._known("execution_mode")  # type: ignore[no-any-return]  # as above

    behavior = execution_mode

    def to_dict(self) -> dict[str, Any]:
        """Return what tools are governed by, and the input, as JSON types."""
        told = {name: self._known(name) for name in _IDS}
        plain = {name: str(value) if isinstance(value, UUID) else value for name, value in told.items()}
        return {**plain, "stage_name": self.stage_name, "input_text": self._known("input_text")}

    def emit_event(self, type: str, data: Mapping[str, Any]) -> None:
        """Tell the event sink at once, through its `try_emit` or a plain `emit`; without one, the log.

        A sink whose only way in is a coroutine is told when the running loop comes to it.
        """
        told = {**data, "stage": self.stage_name, "pipeline_run_id": self.to_dict()["pipeline_run_id"]}
        emit: Callable[..., Any] | None = getattr(self.event_sink, "try_emit", None) or getattr(
            self.event_sink, "emit", None
        )
        if emit is None:
            log.info("stage event %s", type)
            return
        _see_through(emit(type=type, data=told), type)

    try_emit_event = emit_event


def _see_through(said: Any, type: str) -> None:
    import asyncio
    import inspect

    if not inspect.isawaitable(said):
        return

    async def wait() -> None:
        try:
            await said
        except Exception as error:  # noqa: BLE001  # telling must not break the stage
            log.error("the event sink failed with %s on %s", error.__class__.__name__, type)

    task = asyncio.get_running_loop().create_task(wait(), name="toolgate-stage-event")
    _telling.add(task)
    task.add_done_callback(_telling.discard)


_telling: set[Any] = set()
