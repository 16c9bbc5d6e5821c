"""When a run must stop: too many steps, too much time or money, or one call with one outcome over and over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import orjson

from toolgate.agent.history import AgentSaid, Made, Outcome, Said, ToolsSaid, parsed
from toolgate.ports.threads import Run

_Print = tuple[str, bytes, str, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one run may take. None means no limit. Time spent waiting for people does not count."""

    steps: int = 25
    seconds: float | None = 600.0
    tokens: int | None = 400_000
    cost: float | None = None
    repeats: int = 3
    """How often the same call may end the same way before the run is stopped."""
    history: int = 400
    """How many messages of the conversation a model is told, at most."""


def exceeded(run: Run, limits: Limits) -> str | None:
    """Say which limit the run has reached, for people; None where it may go on."""
    used = run.usage
    if run.steps >= limits.steps:
        return f"it took {run.steps} steps, and {limits.steps} are allowed"
    if limits.seconds is not None and run.worked_s >= limits.seconds:
        return f"it worked for {run.worked_s:.0f} seconds, and {limits.seconds:.0f} are allowed"
    tokens = used.input_tokens + used.output_tokens
    if limits.tokens is not None and tokens >= limits.tokens:
        return f"it used {tokens:,} tokens, and {limits.tokens:,} are allowed"
    if limits.cost is not None and used.cost is None and tokens:
        return f"the price of its model is not known, and it may cost {limits.cost:.4f}; limit its tokens instead"
    if limits.cost is not None and (used.cost or 0.0) >= limits.cost:
        return f"it cost {used.cost or 0.0:.4f}, and {limits.cost:.4f} are allowed"
    return None


def repeats(said: Sequence[Said]) -> int:
    """How many steps in a row, up to the last, made one and the same call with one and the same outcome."""
    steps = _steps(said)
    if not steps:
        return 0
    same, count = set(steps[-1]), 1
    for earlier in reversed(steps[:-1]):
        same &= earlier.keys()
        if not same:
            break
        count += 1
    return count


def repeated(said: Sequence[Said]) -> frozenset[str]:
    """The ids of those calls of the last step that the step before made as well, with the same outcome."""
    steps = _steps(said)
    if len(steps) < 2:
        return frozenset()
    return frozenset(call_id for print_, call_id in steps[-1].items() if print_ in steps[-2])


def _steps(said: Sequence[Said]) -> list[dict[_Print, str]]:
    """The calls of each step: what tells one with its outcome from others, and its id."""
    return [
        {_fingerprint(made, came): made.call_id for made, came in zip(asked.calls, answered.outcomes, strict=True)}
        for asked, answered in pairwise(said)
        if isinstance(asked, AgentSaid) and isinstance(answered, ToolsSaid)
    ]


def _fingerprint(call: Made, outcome: Outcome) -> _Print:
    return call.name, _stable(parsed(call.arguments)), outcome.status, _stable(outcome.value)


def _stable(value: object) -> bytes:
    """A value in a form in which equal ones are equal."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
