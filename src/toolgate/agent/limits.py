"""When a run must stop: too many steps, too much time or money, or one call with one outcome over and over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import orjson

from toolgate.agent.history import AgentSaid, Made, Outcome, Said, ToolsSaid, parsed
from toolgate.ports.threads import Run


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
    if limits.cost is not None and (used.cost or 0.0) >= limits.cost:
        return f"it cost {used.cost or 0.0:.4f}, and {limits.cost:.4f} are allowed"
    return None


def repeats(said: Sequence[Said]) -> int:
    """How many steps in a row, up to the last, made one and the same call with one and the same outcome."""
    steps = [
        {_fingerprint(call, outcome) for call, outcome in zip(asked.calls, answered.outcomes, strict=True)}
        for asked, answered in pairwise(said)
        if isinstance(asked, AgentSaid) and isinstance(answered, ToolsSaid)
    ]
    if not steps:
        return 0
    same, count = steps[-1], 1
    for earlier in reversed(steps[:-1]):
        same = same & earlier
        if not same:
            break
        count += 1
    return count


def _fingerprint(call: Made, outcome: Outcome) -> tuple[str, bytes, str, bytes]:
    return call.name, _stable(parsed(call.arguments)), outcome.status, _stable(outcome.value)


def _stable(value: object) -> bytes:
    """A value in a form in which equal ones are equal."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
