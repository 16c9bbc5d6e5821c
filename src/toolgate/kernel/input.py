"""What a handler receives: the action, its payload, the caller's context and a way to report progress."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import orjson

from toolgate.errors import UsageError
from toolgate.kernel.context import DEFAULT_CONTEXT, Context, as_id, behavior_of, read
from toolgate.kernel.record import evolve


@dataclass
class Action:
    """A request in the documents' shape: an id, the action type that names the tool, and a payload."""

    id: UUID | str = field(default_factory=uuid4)
    type: str = ""
    payload: dict[str, Any] = field(default_factory=dict)


def _no_progress(fraction: float | None = None, message: str | None = None, data: object = None) -> Any:
    raise UsageError("Progress can be reported only while the gate runs the handler.")


def _no_call(tool: str, arguments: Mapping[str, object] | None = None) -> Any:
    raise UsageError("Other tools can be called only while the gate runs the handler.")


def _never() -> bool:
    return False


class ToolInput:
    """One handler's input. `payload` is a copy: changing it changes nothing anybody else sees.

    `context` is the gate's Context; `ctx` is the host's own object where it gave one, else the same. `behavior`,
    `pipeline_run_id` and `request_id` are the context's, or, outside a gate, the host's. `effect_key` is the call's: an
    idempotency token for whoever has the effect. `approver` names the people who said yes to this very call; None where
    nobody was asked, or a grant or the policy answered. `prepared` is what its `prepare` hook gave as preconditions.

    Built from fields, from an action object, or from a plain mapping of arguments; `.action` always
    has a `.payload`.
    """

    __slots__ = (
        "_action",
        "_call",
        "_cancelled",
        "_prepared",
        "_report",
        "action_id",
        "approver",
        "context",
        "ctx",
        "effect_key",
        "payload",
        "tool_name",
    )

    def __init__(
        self,
        action_id: UUID | str | None = None,
        tool_name: str | None = None,
        payload: dict[str, Any] | None = None,
        ctx: Any = None,
        *,
        action: Any = None,
        context: Context = DEFAULT_CONTEXT,
        behavior: str | None = None,
        pipeline_run_id: UUID | str | None = None,
        request_id: UUID | str | None = None,
        effect_key: str | None = None,
        approver: str | None = None,
        prepared: bytes | None = None,
    ) -> None:
        if action is not None:
            action = _as_action(action)
            action_id = action.id if action_id is None else action_id
            tool_name = action.type or None if tool_name is None else tool_name
            payload = action.payload if payload is None else payload
        self.action_id = action_id
        self.tool_name = tool_name
        self.payload: dict[str, Any] = {} if payload is None else payload
        self.ctx = ctx
        if behavior is not None or pipeline_run_id is not None or request_id is not None:
            context = evolve(
                context,
                behavior=context.behavior if behavior is None else behavior,
                run_id=context.run_id if pipeline_run_id is None else str(pipeline_run_id),
                request_id=context.request_id if request_id is None else str(request_id),
            )
        self.context = context
        self.effect_key = effect_key
        self.approver = approver
        self._prepared = prepared
        self._action = action
        self._report: Callable[..., Any] = _no_progress
        self._cancelled: Callable[[], bool] = _never
        self._call: Callable[..., Any] = _no_call

    @classmethod
    def from_action(cls, action: Any, tool_name: str | None = None, ctx: Any = None) -> ToolInput:
        """Return an input with the action's id and a deep copy of its payload."""
        source = _as_action(action)
        own = Action(id=source.id, type=source.type, payload=copy.deepcopy(source.payload))
        context = ctx if isinstance(ctx, Context) else DEFAULT_CONTEXT
        return cls(tool_name=tool_name, ctx=ctx, action=own, context=context)

    @property
    def action(self) -> Any:
        """The action this input came from, made up from the fields where there was none."""
        if self._action is None:
            self._action = Action(id=self.action_id or "", type=self.tool_name or "", payload=self.payload)
        return self._action

    @property
    def behavior(self) -> str | None:
        """The behavior the call is made in."""
        return self.context.behavior or (behavior_of(self.ctx) if self.context is DEFAULT_CONTEXT else None)

    @property
    def pipeline_run_id(self) -> UUID | str | None:
        """The run the call belongs to."""
        return self._known_id("run_id", "pipeline_run_id")

    @property
    def request_id(self) -> UUID | str | None:
        """The request the call was made for."""
        return self._known_id("request_id", "request_id")

    def _known_id(self, ours: str, theirs: str) -> UUID | str | None:
        text: str | None = getattr(self.context, ours)
        if text is None and self.context is DEFAULT_CONTEXT:
            text = read(self.ctx, theirs)
        return None if text is None else as_id(text)

    def to_dict(self) -> dict[str, Any]:
        """Return what the input says, ids as text; the payload is the input's own and not masked."""
        ids = {name: getattr(self, name) for name in ("action_id", "pipeline_run_id", "request_id")}
        told = {"tool_name": self.tool_name, "payload": self.payload, "behavior": self.behavior}
        return told | {name: None if id is None else str(id) for name, id in ids.items()}

    @property
    def prepared(self) -> Any:
        """What the `prepare` hook of this call gave as preconditions, a copy; None where it gave none yet."""
        return None if self._prepared is None else orjson.loads(self._prepared)

    @property
    def is_cancelled(self) -> bool:
        """Whether somebody asked this call to stop; a long sync handler should look now and then."""
        return self._cancelled()

    def progress(self, fraction: float | None = None, message: str | None = None, data: object = None) -> Any:
        """Report progress as a `tool.progress` event.

        In an async handler the returned awaitable must be awaited; in a sync handler the event is
        recorded when this returns.
        """
        return self._report(fraction, message, data)

    def call(self, tool: str, arguments: Mapping[str, object] | None = None) -> Any:
        """Call another tool through the same gate, for the same caller, with this call recorded as its parent.

        In an async handler the returned awaitable must be awaited; in a sync handler this waits. Gives a
        Result; the time it takes, a person's answer included, is part of this handler's own.
        """
        return self._call(tool, arguments)

    def attach(
        self, report: Callable[..., Any], cancelled: Callable[[], bool], call: Callable[..., Any] | None = None
    ) -> None:
        """Connect this input to the run that feeds it."""
        self._report, self._cancelled, self._call = report, cancelled, call or _no_call

    def __repr__(self) -> str:
        return f"ToolInput(action_id={self.action_id!r}, tool_name={self.tool_name!r})"


def _as_action(action: Any) -> Any:
    """Return something with `.id`, `.type` and a mapping `.payload`; a bare mapping is a payload."""
    if isinstance(action, Mapping):
        return Action(id=uuid4(), type="", payload=dict(action))
    payload = getattr(action, "payload", None)
    if payload is None:
        payload = {}
    if not isinstance(payload, Mapping):
        raise UsageError(f"An action's payload must be a mapping, not {type(payload).__name__}.")
    return Action(
        id=getattr(action, "id", None) or uuid4(),
        type=getattr(action, "type", "") or "",
        payload=dict(payload),
    )
