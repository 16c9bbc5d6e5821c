"""What a server may send a runner: strictly read, because the server may be anybody's by now.

A signal says what to run; whether it runs is not decided here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from toolgate.errors import UsageError
from toolgate.kernel.effect import MOST_BYTES
from toolgate.wire.ids import CallId

Id = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=128, pattern=r"^[^\x00-\x1f\x7f]+$")]
Name = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_./:-]+$")]
LONGEST_LEASE_S = 24 * 3600.0
SHOWN = 200
EffectKey = Annotated[str, StringConstraints(strict=True, max_length=MOST_BYTES, pattern=r"^[\x21-\x7e]*$")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """One call to run here, or with `undo_of` one to take back. `lease_s` is how long it is ours without a report.

    `effect_key` is the identity of its effect, which the server's call holds: empty where it has none, None where the
    server knows of no such keys.
    """

    tool_id: str
    tool_name: str
    fence: str
    attempt: int
    lease_s: float
    params: dict[str, Any] = field(default_factory=dict, repr=False)
    undo_of: str | None = None
    effect_key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """The server wants a call to stop."""

    tool_id: str
    reason: str


class _Sent(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False)

    tool_id: CallId


class _Work(_Sent):
    tool_name: Name
    fence: Id
    attempt: int = Field(ge=0, le=1_000_000)
    timeout_seconds: float = Field(gt=0, strict=False)


class _Execution(_Work):
    tool_params: dict[str, Any]
    effect_key: EffectKey | None = None


class _Undo(_Work):
    undo_of: CallId


class _Recall(_Sent):
    reason: str = ""


def signal_of(name: str, data: dict[str, Any]) -> Signal | Recall | None:
    """Return what an event asks of a runner, None where it asks nothing; UsageError where it cannot be read."""
    try:
        if name == "tool.execution_signal":
            run = _Execution.model_validate(data)
            told = (run.effect_key or "") if "effect_key" in run.model_fields_set else None
            return _signal(run, params=run.tool_params, effect_key=told)
        if name == "tool.undo_signal":
            undo = _Undo.model_validate(data)
            return _signal(undo, undo_of=undo.undo_of)
        if name == "tool.cancel_signal":
            recall = _Recall.model_validate(data)
            return Recall(tool_id=recall.tool_id, reason=printable(recall.reason))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = printable(".".join(map(str, first["loc"])))
        raise UsageError(f"The server sent a `{name}` that cannot be read: {where}: {first['msg']}.") from None
    return None


def _signal(
    work: _Work,
    *,
    params: dict[str, Any] | None = None,
    undo_of: str | None = None,
    effect_key: str | None = None,
) -> Signal:
    return Signal(
        tool_id=work.tool_id,
        tool_name=work.tool_name,
        fence=work.fence,
        attempt=work.attempt,
        lease_s=min(work.timeout_seconds, LONGEST_LEASE_S),
        params=params or {},
        undo_of=undo_of,
        effect_key=effect_key,
    )


def printable(text: str, most: int = SHOWN) -> str:
    """Return others' words as one short line that cannot move a terminal's cursor."""
    shown = "".join(char if char.isprintable() else " " for char in text[: most * 2])
    return " ".join(shown.split())[:most]
