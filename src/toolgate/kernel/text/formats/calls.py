"""What became of a tool call that a model sent: resolved to a tool, or not, and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from toolgate.kernel.text.canonical import Limits
from toolgate.kernel.text.formats.read import Format

OURS = "tg_"
"""What our ids begin with: those of calls that came without one and could not be resolved."""


class Reason(StrEnum):
    """Why a call was not resolved."""

    UNKNOWN_TOOL = "unknown_tool"
    INVALID_ARGUMENTS = "invalid_arguments"
    MALFORMED = "malformed"
    TRUNCATED = "truncated"
    OVERSIZED = "oversized"
    DUPLICATE = "duplicate"
    AMBIGUOUS = "ambiguous"


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatLimits:
    """How much one payload may hold. Names and call ids are counted in characters."""

    arguments: Limits = field(default_factory=Limits)
    max_calls: int = 128
    max_name: int = 64
    max_call_id: int = 128


@dataclass(frozen=True, slots=True)
class ResolvedToolCall:
    """A call that names a registered tool and has arguments its schema accepts.

    `call_id` is empty where the provider gave none. `raw` is what was sent, `position` its place among all calls sent
    with it, resolved or not: providers without ids tell answers apart by their order.
    """

    tool: Any
    call_id: str
    name: str
    arguments: dict[str, Any]
    raw: Any = field(default=None, repr=False)
    format: Format = Format.PLAIN
    position: int = 0


@dataclass(frozen=True, slots=True)
class UnresolvedToolCall:
    """A call that must not run, and why: `error` in words, `reason` for programs.

    `call_id` is the provider's; where it gave none that can be used, `is_id_ours`, and the provider is not told it.
    `location` is a JSON Pointer into the arguments where the schema refuses them.
    """

    call_id: str
    name: str
    arguments: dict[str, Any]
    error: str
    raw: Any = field(default=None, repr=False)
    reason: Reason = Reason.MALFORMED
    location: str | None = None
    format: Format = Format.PLAIN
    is_id_ours: bool = False
    position: int = 0
