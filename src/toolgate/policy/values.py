"""The values policy files are written with: durations, sizes, words, names; and what every rule is built from."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple, Protocol

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from toolgate.kernel.call import Call
from toolgate.kernel.effect import EffectKey
from toolgate.kernel.policy import Meter, OnError, Rule
from toolgate.kernel.terms import ApprovalTerms, SandboxTerms
from toolgate.kernel.tool import Placement, Thresholds

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([smhdw])\Z")


class Spec(BaseModel):
    """Base of what a key's value may look like: no unknown keys, no conversions, never changed."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def _seconds(value: object) -> object:
    if isinstance(value, str):
        found = _DURATION.match(value.strip())
        if found is None:
            raise ValueError("write a duration as a number and s, m, h, d or w, such as 30s, 5m, 1h")
        return float(found[1]) * _UNITS[found[2]]
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


Duration = Annotated[float, BeforeValidator(_seconds), Field(gt=0, le=10 * 365 * 86400)]
"""Seconds as a number, or a number with a unit: s, m, h, d, w."""

WordName = Literal["allow", "ask", "deny"]
ModeName = Literal["NORMAL", "ALERT", "DEGRADED", "LOCKDOWN", "RECOVERY"]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Expression = Annotated[str, Field(min_length=1, max_length=1000)]
"""A pattern in the syntax of RE2."""
Positive = Annotated[int, Field(gt=0)]


Per = Literal["project", "principal", "user", "session", "run"]


def whose(call: Call, per: Per) -> str:
    """Return who shares a rate or budget with this call, within its project."""
    context = call.context
    if context.claimed and per in ("session", "run"):
        return f"{per} of {context.principal}"  # who may name another one for each call shares one for all
    who = {
        "project": "",
        "principal": context.principal,
        "user": context.user or context.principal,
        "session": context.session_id or "",
        "run": context.run_id or "",
    }[per]
    return f"{per}={who}"


class Site(NamedTuple):
    """Where a rule stands: the layer, the file, the section (`tools.write_file`) and the line."""

    layer: str
    file: str
    section: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.section}"


class Surroundings(NamedTuple):
    """What a file is read in: who `$HOME` and `${WORKSPACE}` are, and where relative patterns begin."""

    home: str
    workspace: str

    def expand(self, text: str) -> str:
        """Replace `$HOME` and `${WORKSPACE}`; raise ValueError for any other variable and for `~`."""
        known = {"HOME": self.home, "WORKSPACE": self.workspace}

        def put(found: re.Match[str]) -> str:
            name = found[1] or found[2]
            if name not in known:
                raise ValueError(f"`{found[0]}` is not known here; use $HOME or ${{WORKSPACE}}")
            return known[name]

        if text.startswith("~"):
            raise ValueError("`~` is not expanded; write $HOME")
        return _VARIABLE.sub(put, text)


_VARIABLE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([^}]*)\})")


class Limit(Meter, Protocol):
    """A meter of a policy file: of several limits on the same uses the lowest counts."""

    @property
    def limit(self) -> int: ...

    def shares_with(self, other: object, /) -> bool: ...


@dataclass(slots=True)
class Share:
    """What one key of one entry contributes to the stance on a tool. Empty where it says nothing."""

    rules: list[Rule] = field(default_factory=list)
    meters: list[Limit] = field(default_factory=list)
    terms: ApprovalTerms | None = None
    thresholds: Thresholds | None = None
    undo_asks: bool = False
    refuses_unchecked_undo: bool = False
    undo_ttl_s: float | None = None
    approved_for_s: float | None = None
    placement: Placement | None = None
    sandbox: SandboxTerms | None = None
    may_retry: bool | None = None
    on_error: OnError | None = None
    nothing_happened: frozenset[str] | None = None
    effect: EffectKey | None = None
    settles_modes: bool = False
    path_arguments: tuple[str, ...] = ()
    command_argument: str | None = None
    url_arguments: tuple[str, ...] = ()
    judges_paths: bool = False
    reads_arguments: bool = False


Build = Callable[[Any, Site, Surroundings], Share]


class Key(NamedTuple):
    """One key of an entry, as its file in `rules/` describes it: `aliases` are other spellings of its fields."""

    name: str
    spec: Any
    build: Build
    aliases: Mapping[str, str]
    doc: str
