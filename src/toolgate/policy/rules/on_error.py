"""How a call ends whose handler raised, or ran out of time, after it had started.

Where no file says, a tool with declared effects ends `unknown` unless it may be repeated, and any other `failed`. Of
several layers, `unknown` counts.
"""

from __future__ import annotations

from typing import Literal

from toolgate.kernel.policy import OnError
from toolgate.policy.values import Share, Site, Surroundings

SPEC = Literal["unknown", "failed"]


def build(spec: str, _site: Site, _surroundings: Surroundings) -> Share:
    return Share(on_error=OnError(spec))
