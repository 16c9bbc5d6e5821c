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

from toolgate.errors import UsageError
from toolgate.kernel.spelling import spelled_fields

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
        if data is not None and not isinstance(data, Mapping):
            raise UsageError(f"A stage's data is a mapping, not {type(data).__name__}; name it: ok(result=...).")
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


@spelled_fields
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
        if event_sink is not None:
            _way_in(event_sink)

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
        """Tell the event sink, through its `try_emit` or its `emit`; without one, the log.

        A plain sink, and one that is a coroutine where no loop runs, is told before this returns; where a loop runs,
        it is told when the loop comes to it. A sink that fails is logged, and the stage goes on.
        """
        if not isinstance(type, str) or not isinstance(data, Mapping):
            raise UsageError('An event is a name and a mapping: emit_event("tools.unresolved", {"call_id": ...}).')
        told = {**data, "stage": self.stage_name, "pipeline_run_id": self.to_dict()["pipeline_run_id"]}
        if self.event_sink is None:
            log.info("stage event %s", type)
            return
        _tell(_way_in(self.event_sink), type, told)

    try_emit_event = emit_event


def _way_in(sink: Any) -> Callable[..., Any]:
    emit = getattr(sink, "try_emit", None) or getattr(sink, "emit", None)
    if not callable(emit):
        raise UsageError(f"An event sink has a method `emit(type=..., data=...)`; {sink.__class__.__name__} has none.")
    return emit  # type: ignore[no-any-return]  # a sink may be any object


def _tell(emit: Callable[..., Any], type: str, told: dict[str, Any]) -> None:
    import asyncio
    import inspect

    async def wait(said: Any) -> None:
        try:
            await said
        except Exception as error:  # noqa: BLE001  # telling must not break the stage
            _report(error, type)

    try:
        said = emit(type=type, data=told)
    except Exception as error:  # noqa: BLE001  # as above
        _report(error, type)
        return
    if not inspect.isawaitable(said):
        return
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(wait(said))
        return
    task = loop.create_task(wait(said), name="toolgate-stage-event")
    _telling.add(task)
    task.add_done_callback(_telling.discard)


def _report(error: Exception, type: str) -> None:
    log.error("the event sink failed with %s on %s", error.__class__.__name__, type)


_telling: set[Any] = set()
